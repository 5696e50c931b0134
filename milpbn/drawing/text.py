"""Sizes of texts before they are drawn: an upper estimate for common sans-serif fonts, and the wrapping of names."""

from __future__ import annotations

import re
import unicodedata

from milpbn.util.printing import printable

#: Advance widths in em, rounded up, of the characters of DejaVu Sans, which is wider than most sans-serif fonts.
_WIDTHS = {
    0.3: "'IJijl",
    0.35: " ,./:;\\|",
    0.4: "()-[]ft",
    0.45: "!r",
    0.5: '"*_`',
    0.55: "?csz",
    0.6: "FLkvxy",
    0.65: "$0123456789EPSTYabdeghnopqu{}",
    0.7: "ABCKRVXZ",
    0.75: "NU",
    0.8: "&DGHOQ",
    0.85: "#+<=>^w~",
    0.9: "M",
    1.0: "%@Wm",
}
_WIDTH = {character: width for width, characters in _WIDTHS.items() for character in characters}
#: Width of characters that are not in the table: East Asian wide ones have 1 em, and so do the widest Cyrillic ones.
_OTHER = 1.05
#: Height of a line, relative to the font size.
LINE = 1.25
#: How much wider bold letters are at most: give the size times this for the width of a bold text.
BOLD = 1.16


def text_width(text: str, size: float = 12.0) -> float:
    """Return an upper estimate of the width of a line of text, in the unit of the font size.

    Latin letters with accents count as their base letters, combining marks as nothing, and all characters without a
    known width, Japanese ones for instance, as a full em.
    """
    return size * sum(map(_advance, text))


def _advance(character: str) -> float:
    if character in _WIDTH:
        return _WIDTH[character]
    if unicodedata.combining(character):
        return 0.0
    if unicodedata.east_asian_width(character) == "H":
        return 0.65
    base = unicodedata.normalize("NFD", character)[0]
    return _WIDTH.get(base, _OTHER)


def shortened(text: str, width: float, size: float = 12.0) -> str:
    """Return a text that is at most this wide; what does not fit is cut out of its middle, where a … stands."""
    if text_width(text, size) <= width:
        return text
    left, right = "", ""
    while len(left) + len(right) < len(text):
        longer = (
            (left + text[len(left)], right)
            if len(left) <= len(right)
            else (left, text[len(text) - len(right) - 1] + right)
        )
        if text_width(longer[0] + "…" + longer[1], size) > width:
            break
        left, right = longer
    return f"{left}…{right}"


def wrapped(name: str, width: float, size: float = 12.0, most: int = 3) -> tuple[str, ...]:
    """Return a name as lines that are at most this wide; one of more than `most` lines is shortened in its middle.

    Lines end behind spaces, punctuation and words in camel case where there are any, and anywhere else in long words.
    Characters that cannot be shown are written as in Python.
    """
    name = printable(name).strip() or "''"
    pieces = [p for p in re.split(r"(?<=[\s\-_./,:;=()])|(?<=[a-z0-9])(?=[A-Z])", name) if p]
    lines = [""]
    for piece in pieces:
        if lines[-1] and text_width((lines[-1] + piece).rstrip(), size) > width:
            lines.append("")
        for character in piece:
            if lines[-1] and text_width((lines[-1] + character).rstrip(), size) > width:
                lines.append("")
            lines[-1] += character
    lines = [line.strip() for line in lines if line.strip()]
    if len(lines) <= most:
        return tuple(lines)
    return (*lines[: most - 1], shortened("".join(lines[most - 1 :]), width, size))
