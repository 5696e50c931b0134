"""Pictures as SVG text: texts stay texts, and no library is needed."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from milpbn.drawing.scene import COLOURS, DASHES, Box, Item, Label, Path, Scene
from milpbn.util.printing import printable

FONTS = "'DejaVu Sans', Verdana, 'Noto Sans', 'Noto Sans CJK JP', 'Hiragino Sans', 'Yu Gothic', Meiryo, sans-serif"


def to_svg(scene: Scene, *, inline: bool = False) -> str:
    """Return a picture as an SVG document, on white, or `inline` for a page, in light or dark as the reader chooses."""
    width, height = _number(scene.width), _number(scene.height)
    head = (
        f'<svg class="mb-picture" role="img" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
        f' font-family="{escape(FONTS)}" xmlns="http://www.w3.org/2000/svg">'
    )
    named = ((item.colour,) if isinstance(item, Label) else (item.fill, item.edge) for item in scene.items)
    used = sorted({role for roles in named for role in roles if role} | {"paper"})
    body = [head, f"<title>{_text(scene.description)}</title>" if scene.description else ""]
    body.append(f"<style>{''.join(_styles(used, inline))}</style>")
    body.append(f'<rect class="mb-f-paper" width="{width}" height="{height}"/>')
    body.extend(_element(item) for item in scene.items)
    return "\n".join([part for part in body if part] + ["</svg>"]) + "\n"


def _styles(roles: list[str], inline: bool) -> Iterator[str]:
    def rules(index: int) -> str:
        return "".join(
            f".mb-f-{role}{{fill:{COLOURS[role][index]}}}.mb-s-{role}{{stroke:{COLOURS[role][index]}}}"
            for role in roles
        )

    yield rules(0)
    if inline:
        yield "@media (prefers-color-scheme:dark){" + rules(1) + "}"


def _element(item: Item) -> str:
    if isinstance(item, Label):
        return _label(item)
    fill = f"mb-f-{item.fill}" if item.fill else ""
    edge = f"mb-s-{item.edge}" if item.edge else ""
    style = f' class="{" ".join(filter(None, (fill, edge)))}"'
    if not item.fill:
        style += ' fill="none"'
    if item.edge:
        style += f' stroke-width="{_number(item.line_width if isinstance(item, Box) else item.width)}"'
        if item.dashed:
            style += f' stroke-dasharray="{" ".join(map(_number, DASHES))}"'
    if isinstance(item, Box):
        shape = f'<rect x="{_number(item.x)}" y="{_number(item.y)}" width="{_number(item.width)}"'
        shape += f' height="{_number(item.height)}"'
        if item.radius:
            shape += f' rx="{_number(item.radius)}"'
    else:
        shape = f'<path d="{_commands(item)}"'
    if item.title:
        return f"{shape}{style}><title>{_text(item.title)}</title></{shape[1:5]}>"
    return f"{shape}{style}/>"


def _label(item: Label) -> str:
    anchor = "" if item.anchor == "start" else f' text-anchor="{item.anchor}"'
    bold = ' font-weight="bold"' if item.bold else ""
    title = f"<title>{_text(item.title)}</title>" if item.title else ""
    return (
        f'<text class="mb-f-{item.colour}" x="{_number(item.x)}" y="{_number(item.y)}"'
        f' font-size="{_number(item.size)}"{anchor}{bold}>{title}{_text(item.text)}</text>'
    )


def _commands(path: Path) -> str:
    parts = []
    for k, step in enumerate(path.steps):
        letter = "M" if k == 0 else ("L" if len(step) == 2 else "C")
        parts.append(letter + " ".join(_number(v) for v in step))
    return "".join(parts) + ("Z" if path.fill else "")


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") or "0"


def _text(text: str) -> str:
    """Return a text for XML; characters that it cannot hold are written as in Python."""
    return escape(printable(text), quote=False)
