"""Files of pictures: SVG, and by matplotlib PNG and PDF."""

from __future__ import annotations

import os
import warnings
from contextlib import suppress
from functools import cache
from typing import Any, Literal

from milpbn.drawing.scene import COLOURS, DASHES, Box, Label, Path, Scene
from milpbn.drawing.svg import to_svg
from milpbn.errors import InputError, MilpbnWarning, warn
from milpbn.util.atomic import atomic_path, atomic_write_text
from milpbn.util.extras import import_extra
from milpbn.util.printing import printable

#: Fonts that have Chinese, Japanese or Korean characters, or other ones that the first font lacks.
# fmt: off
_FURTHER = (
    "Noto Sans CJK JP", "Noto Sans JP", "IPAexGothic", "IPAGothic", "TakaoPGothic", "VL PGothic", "Hiragino Sans",
    "Yu Gothic", "Meiryo", "MS Gothic", "Noto Sans CJK SC", "Microsoft YaHei", "PingFang SC", "WenQuanYi Micro Hei",
    "Noto Sans CJK KR", "Malgun Gothic", "Arial Unicode MS", "Noto Sans", "Noto Emoji",
)
# fmt: on
_FIRST = "DejaVu Sans"
#: Dots per inch of a PNG, and the largest number of its dots in one direction.
_DPI, _LARGEST = 144.0, 30000.0
_INCH = 96.0
_SIDES: dict[str, Literal["left", "center", "right"]] = {"start": "left", "middle": "center", "end": "right"}
#: Picture formats that can be written.
SUFFIXES = (".png", ".svg", ".pdf")


def write_with_matplotlib(scene: Scene, path: str | os.PathLike[str]) -> None:
    """Write a picture in the format of the path's suffix; warn if no installed font has some of the characters."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(scene.width / _INCH, scene.height / _INCH))
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set_xlim(0.0, scene.width)
    axes.set_ylim(scene.height, 0.0)
    axes.set_axis_off()
    families = _families({c for item in scene.items if isinstance(item, Label) for c in printable(item.text)})
    for order, item in enumerate(scene.items):
        artist = _text(item, families) if isinstance(item, Label) else _patch(item)
        artist.set_zorder(order)
        axes.add_artist(artist) if isinstance(item, Label) else axes.add_patch(artist)
    dpi = min(_DPI, _DPI * _LARGEST / (max(scene.width, scene.height) * _DPI / _INCH))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")  # `_families` has said so
        figure.savefig(path, dpi=dpi, facecolor=COLOURS["paper"][0])


def _colour(role: str) -> str:
    return COLOURS[role][0] if role else "none"


def _points(pixels: float) -> float:
    return pixels * 72.0 / _INCH


def _text(item: Label, families: list[str]) -> Any:
    from matplotlib.text import Text

    return Text(
        item.x,
        item.y,
        printable(item.text),
        fontsize=_points(item.size),
        family=families,
        weight="bold" if item.bold else "normal",
        color=_colour(item.colour),
        horizontalalignment=_SIDES[item.anchor],
        verticalalignment="baseline",
        parse_math=False,
    )


def _patch(item: Box | Path) -> Any:
    from matplotlib import patches
    from matplotlib import path as paths

    width = item.line_width if isinstance(item, Box) else item.width
    style: dict[str, Any] = {
        "facecolor": _colour(item.fill),
        "edgecolor": _colour(item.edge),
        "linewidth": _points(width) if item.edge else 0.0,
        # Matplotlib counts dashes in line widths, SVG in pixels.
        "linestyle": (0, tuple(length / width for length in DASHES)) if item.dashed else "-",
        "capstyle": "butt",
    }
    if isinstance(item, Box):
        corner = (item.x, item.y)
        if not item.radius:
            return patches.Rectangle(corner, item.width, item.height, **style)
        radius = min(item.radius, item.width / 2, item.height / 2)
        rounded = patches.BoxStyle("Round", pad=0.0, rounding_size=radius)
        return patches.FancyBboxPatch(corner, item.width, item.height, boxstyle=rounded, **style)
    vertices, codes = [], []
    for k, step in enumerate(item.steps):
        vertices += [step[j : j + 2] for j in range(0, len(step), 2)]
        first = paths.Path.MOVETO if k == 0 else paths.Path.LINETO
        codes += [first] if len(step) == 2 else [paths.Path.CURVE4] * 3
    if item.fill:
        vertices.append(item.steps[0])
        codes.append(paths.Path.CLOSEPOLY)
    return patches.PathPatch(paths.Path(vertices, codes), **style)


def _families(characters: set[str]) -> list[str]:
    """Return the installed fonts that have these characters, the first font first."""
    from matplotlib import font_manager

    families, left = [_FIRST], {c for c in characters if ord(c) not in _charmap(_FIRST)}
    if left:
        _find_new_fonts()
    installed = {entry.name for entry in font_manager.fontManager.ttflist} if left else set()
    for name in _FURTHER:
        if left and name in installed:
            has = {c for c in left if ord(c) in _charmap(name)}
            families += [name] if has else []
            left -= has
    if left:
        few = "".join(sorted(left)[:8])
        warn(
            f"No installed font has the characters {few}{'...' if len(left) > 8 else ''}, so that the picture shows "
            "empty boxes; install a font such as Noto Sans CJK, or write an .svg file, which keeps texts as text.",
            MilpbnWarning,
        )
    return families


@cache
def _find_new_fonts() -> None:
    """Add the fonts that were installed after matplotlib listed them in its cache."""
    from matplotlib import font_manager

    listed = {entry.fname for entry in font_manager.fontManager.ttflist}
    for path in set(font_manager.findSystemFonts()) - listed:
        with suppress(OSError, RuntimeError, UnicodeDecodeError):  # what is no font, or a damaged one
            font_manager.fontManager.addfont(path)


@cache
def _charmap(family: str) -> frozenset[int]:
    """Return the code points that a font has."""
    from matplotlib import font_manager
    from matplotlib.ft2font import FT2Font

    try:
        path = font_manager.findfont(font_manager.FontProperties(family=family), fallback_to_default=False)
    except ValueError:
        return frozenset()
    return frozenset(FT2Font(path).get_charmap())


def check_picture(path: str | os.PathLike[str]) -> None:
    """Raise `InputError` if a file's suffix is not one of `SUFFIXES`, or needs the extra ``[plot]`` and lacks it."""
    suffix = os.path.splitext(path)[1].lower()
    if suffix not in SUFFIXES:
        raise InputError(f"A picture file ends in {', '.join(SUFFIXES)}; {os.fspath(path)!r} does not.")
    if suffix != ".svg":
        import_extra("matplotlib", "plot", "A PNG or PDF file", "SVG needs nothing else: name an .svg file.")


def save(scene: Scene, path: str | os.PathLike[str]) -> None:
    """Write a picture, whole or not at all.

    Parameters
    ----------
    scene : Scene
        What one of the functions ``draw_...`` returned.
    path : path
        ``.png``, ``.svg`` or ``.pdf``.

    Raises
    ------
    InputError
        If the suffix is another, the file cannot be written, or the extra ``[plot]`` is missing for a PNG or PDF.
    """
    check_picture(path)
    if os.path.splitext(path)[1].lower() == ".svg":
        atomic_write_text(path, to_svg(scene))
        return
    with atomic_path(path) as temporary:
        write_with_matplotlib(scene, temporary)
