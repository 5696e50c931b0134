"""SVG documents."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from milpbn.drawing.scene import Box, Label, Path, Scene
from milpbn.drawing.svg import to_svg

SCENE = Scene(
    100.0,
    50.0,
    [
        Box(1, 2, 30, 20, "feature", "feature-edge", 3, title="<b>"),
        Label(5, 12, "年齢 & \x00", title="y"),
        Path(((0, 0), (5, 5), (6, 6, 7, 7, 8, 8)), "line", dashed=True),
    ],
    "what & it shows",
)


def test_texts_stay_texts():
    root = ET.fromstring(to_svg(SCENE))
    space = "{http://www.w3.org/2000/svg}"
    [text] = root.findall(f"{space}text")
    assert "".join(text.itertext()).endswith("年齢 & \\x00")
    assert root.find(f"{space}title").text == "what & it shows"
    assert root.get("viewBox") == "0 0 100 50"


def test_only_pictures_in_pages_follow_the_readers_choice_of_colours():
    assert "prefers-color-scheme" not in to_svg(SCENE)
    assert "prefers-color-scheme:dark" in to_svg(SCENE, inline=True)
