"""Files of pictures."""

from __future__ import annotations

import sys

import pytest
from test_results import RESULT

from milpbn.drawing.scene import Path, Scene
from milpbn.errors import InputError, MilpbnWarning
from milpbn.network.structure import Structure
from milpbn.plotting import check_picture, draw_result, draw_structure, save

STARTS = {"png": b"\x89PNG", "svg": b"<svg", "pdf": b"%PDF"}


@pytest.mark.parametrize("suffix", STARTS)
def test_a_picture_is_written(tmp_path, suffix):
    if suffix != "svg":
        pytest.importorskip("matplotlib")
    path = tmp_path / f"result.{suffix}"
    save(draw_result(RESULT), path)
    assert path.read_bytes().startswith(STARTS[suffix])
    assert path.stat().st_size > 1000
    assert list(tmp_path.iterdir()) == [path]


def test_another_suffix_is_refused(tmp_path):
    with pytest.raises(InputError, match="ends in"):
        save(draw_result(RESULT), tmp_path / "result.txt")


def test_svg_needs_no_matplotlib(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    save(draw_result(RESULT), tmp_path / "result.svg")
    with pytest.raises(InputError, match="pip install"):
        check_picture("result.png")


def test_dashes_of_a_png_do_not_grow_with_the_width_of_the_line(tmp_path):
    image = pytest.importorskip("matplotlib.image")
    counts = []
    for width in (1.0, 4.5):
        line = Path(((10.0, 10.0), (100.0, 10.0)), "line", width=width, dashed=True)
        save(Scene(110.0, 20.0, [line]), tmp_path / "line.png")
        dark = image.imread(tmp_path / "line.png")[15, :, 0] < 0.6  # 1.5 dots for every pixel of the scene
        counts.append(int((dark[1:] & ~dark[:-1]).sum()))
    assert counts == [10, 10]  # 5 pixels of line, 4 of gap


def test_characters_without_a_font_are_told(tmp_path):
    pytest.importorskip("matplotlib")
    scene = draw_structure(Structure(("\U00016a40", "class"), ((1,), ())))
    with pytest.warns(MilpbnWarning, match=r"No installed font|empty boxes"):
        save(scene, tmp_path / "private.png")
