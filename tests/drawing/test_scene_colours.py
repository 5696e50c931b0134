"""Colours: texts can be read on what is behind them (WCAG 2.2, level AA: 4.5 to 1), marks be told from the ground."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from graphs import dag, forest

from milpbn.drawing.chart import Bar, bars, frame
from milpbn.drawing.network import draw_network
from milpbn.drawing.scene import COLOURS, Box, Label, Path, Scene
from milpbn.drawing.text import text_width

THEMES = {"light": 0, "dark": 1}


def luminance(colour: str) -> float:
    """Return the relative luminance as WCAG defines it."""
    parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    r, g, b = (v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in parts)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def contrast(one: str, other: str, theme: int) -> float:
    low, high = sorted(luminance(COLOURS[role][theme]) for role in (one, other))
    return (high + 0.05) / (low + 0.05)


def grounds(scene: Scene) -> set[tuple[str, str]]:
    """Return the pairs of the colours of each text and of what is behind some of it."""
    pairs = set()
    for k, label in enumerate(scene.items):
        if not isinstance(label, Label) or not label.text:
            continue
        wide = text_width(label.text, label.size) * 0.8  # the estimate is an upper one
        left = label.x - wide * {"start": 0.0, "middle": 0.5, "end": 1.0}[label.anchor]
        for x in np.linspace(left, left + wide, 9):
            behind = "paper"
            for item in scene.items[:k]:
                if item.__class__ is Box and item.fill:
                    inside = item.x <= x <= item.x + item.width
                    if inside and item.y <= label.y - 0.35 * label.size <= item.y + item.height:
                        behind = item.fill
            pairs.add((label.colour, behind))
    return pairs


def networks() -> list[Scene]:
    scenes = []
    for make in (forest, dag):
        parents = make(30, 1)
        names = [f"feature {i}" for i in range(30)] + ["class"]
        losses = {(j, i): 0.5 * i for i, above in enumerate(parents) for j in above}
        scenes += [draw_network(names, parents), draw_network(names, parents, losses=losses, proved=[])]
    return scenes


def charts() -> list[Scene]:
    rows = [Bar("a", 0.0, 1.0, "1", interval=(0.5, 1.2)), Bar("b", 1.0, 0.2, "-0.8", "class-edge")]
    notes = [("feature", "x"), ("shade", "y")]
    return [
        bars(rows, title="t", label="l", notes=notes, lines=["line"]),
        bars([replace(row, start=None) for row in rows], title="t"),
        frame(400.0, 300.0, (0.0, 1.0), (0.0, 1.0), title="t", labels=("x", "y"), notes=notes).scene,
    ]


@pytest.mark.parametrize("theme", THEMES)
def test_texts_can_be_read_on_what_is_behind_them(theme):
    pairs = set().union(*(grounds(scene) for scene in [*networks(), *charts()]))
    # Tables of a family and pages of reports add these.
    pairs |= {("ink", "unused"), ("ink", "feature"), ("feature-edge", "paper")}
    assert {("ink", "class"), ("muted", "feature"), ("muted", "unused"), ("muted", "paper")} <= pairs
    for text, ground in sorted(pairs):
        assert contrast(text, ground, THEMES[theme]) >= 4.5, (text, ground)


@pytest.mark.parametrize("theme", THEMES)
def test_marks_can_be_told_from_the_ground(theme):
    """WCAG asks for 3 to 1 for what is not a text; a pale fill has an edge."""
    marks = {(role, "paper") for role in ("line", "class-edge", "feature-edge", "unused-edge")}
    for mark, ground in sorted(marks | {("class-edge", "feature")}):
        assert contrast(mark, ground, THEMES[theme]) >= 3.0, (mark, ground)
    for scene in charts():
        for item in scene.items:
            if isinstance(item, (Box, Path)) and item.fill in ("feature", "shade"):
                assert item.edge
