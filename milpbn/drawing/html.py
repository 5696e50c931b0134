"""Parts of web pages: tables of two columns, and cards for notebooks."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from milpbn.drawing.scene import COLOURS, Scene
from milpbn.drawing.svg import to_svg
from milpbn.util.printing import printable


def words(text: object) -> str:
    """Return a text for HTML."""
    return escape(printable(str(text)))


def facts(rows: Iterable[tuple[str, object]]) -> str:
    """Return a table of names and values; values that are None are left out."""
    body = "".join(
        f'<tr><th scope="row">{words(name)}</th><td>{words(value)}</td></tr>'
        for name, value in rows
        if value is not None
    )
    return f'<table class="mb-facts"><tbody>{body}</tbody></table>'


def picture(scene: Scene) -> str:
    """Return a picture in a box that scrolls sideways if the page is narrower than the picture."""
    return f'<div class="mb-scroll" tabindex="0">{to_svg(scene, inline=True)}</div>'


def note(text: str) -> str:
    """Return a sentence."""
    return f"<p>{words(text)}</p>"


def folded(heading: str, inner: str, *, opened: bool = False) -> str:
    """Return HTML that is shown when its heading is clicked on, or hidden if it is open at first; without a script."""
    return f"<details{' open' if opened else ''}><summary>{words(heading)}</summary>{inner}</details>"


def card(title: str, rows: Iterable[tuple[str, object]], below: str = "") -> str:
    """Return what a notebook shows of an object: a title, a table of facts, and further HTML, such as a picture."""
    return f'<div class="mb-card"><style>{_CARD}</style><strong>{words(title)}</strong>{facts(rows)}{below}</div>'


def _theme(index: int) -> str:
    paper, ink, muted, grid = (COLOURS[role][index] for role in ("paper", "ink", "muted", "grid"))
    return (
        f".mb-card{{background:{paper};color:{ink};border-color:{grid}}}"
        f".mb-card .mb-facts th{{color:{muted}}}.mb-card .mb-facts tr{{background:{paper};color:{ink}}}"
    )


_CARD = (
    ".mb-card{border:1px solid;border-radius:6px;padding:10px 12px;max-width:100%;box-sizing:border-box;"
    "font:14px/1.45 sans-serif}"
    ".mb-card .mb-facts{border-collapse:collapse;margin:6px 0;font:inherit}"
    ".mb-card .mb-facts th,.mb-card .mb-facts td{border:0;text-align:left;padding:1px 14px 1px 0;font-weight:normal}"
    ".mb-card .mb-scroll{overflow-x:auto}.mb-card p{margin:6px 0}"
    ".mb-card summary{cursor:pointer;padding:3px 0}"
    + _theme(0)
    + "@media (prefers-color-scheme:dark){"
    + _theme(1)
    + "}"
)
