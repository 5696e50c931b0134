"""The frame of the page and of its pictures: head and styles, for wide and narrow screens, light and dark."""

from __future__ import annotations

from html import escape

from milpbn.drawing.html import picture, words
from milpbn.drawing.scene import COLOURS, Scene
from milpbn.drawing.svg import FONTS

#: Width of charts: letters can still be read where a phone shows them at three quarters of it.
CHART = 480.0
#: Width of the page's text, beyond which a picture is smaller than drawn on any screen.
_PAGE = 1032.0


def _variables(index: int) -> str:
    return "".join(f"--{role}:{colours[index]};" for role, colours in COLOURS.items())


_STYLE = f"""
:root{{color-scheme:light dark;{_variables(0)}}}
@media (prefers-color-scheme:dark){{:root{{{_variables(1)}}}}}
*{{box-sizing:border-box}}
body{{margin:0;background:var(--paper);color:var(--ink);font:16px/1.55 {FONTS}}}
main{{max-width:1080px;margin:0 auto;padding:20px 24px 60px}}
h1{{font-size:1.7em;line-height:1.25;margin:.4em 0 .3em;overflow-wrap:anywhere}}
h2{{font-size:1.25em;margin:2em 0 .5em;border-bottom:1px solid var(--grid);padding-bottom:.2em}}
h3{{font-size:1.02em;margin:1.4em 0 .4em;overflow-wrap:anywhere}}
p,li{{max-width:46em}}
.lead{{font-size:1.1em}}
.numbers{{display:flex;flex-wrap:wrap;gap:12px;margin:18px 0}}
.numbers div{{flex:1 1 150px;border:1px solid var(--grid);border-radius:8px;padding:10px 14px}}
.numbers b{{display:block;font-size:1.3em;font-variant-numeric:tabular-nums;overflow-wrap:anywhere}}
.numbers span,figcaption,.muted{{color:var(--muted);font-size:.88em}}
table{{border-collapse:collapse;font-variant-numeric:tabular-nums}}
th,td{{text-align:left;vertical-align:top;padding:4px 18px 4px 0;border-bottom:1px solid var(--grid)}}
td{{overflow-wrap:anywhere}}
thead th,.mb-facts th{{color:var(--muted);font-weight:normal}}
td.n,th.n{{text-align:right}}
.mb-scroll{{overflow-x:auto;margin:8px 0}}
.mb-picture{{display:block;max-width:100%;height:auto}}
figure{{margin:8px 0}}
.full{{display:none;color:var(--muted);font-size:.88em;cursor:pointer;padding:6px 0}}
.wide .full{{display:inline-block}}
.fit:has(input:checked) .mb-picture{{max-width:none}}
details{{margin:8px 0}}
summary{{cursor:pointer;padding:4px 0}}
pre{{background:var(--unused);padding:12px 14px;border-radius:6px;overflow-x:auto;font-size:.88em;line-height:1.45}}
nav a{{margin-right:14px;white-space:nowrap}}
a{{color:var(--feature-edge)}}
@media (max-width:600px){{main{{padding:12px 14px 40px}}h1{{font-size:1.35em}}body{{font-size:15px}}
th,td{{padding-right:10px}}pre{{white-space:pre-wrap;overflow-wrap:anywhere}}.full{{display:inline-block}}}}
@media print{{main{{max-width:none}}nav,.full,.wide .full{{display:none}}h2{{break-after:avoid}}}}
"""


def page(title: str, body: str) -> str:
    """Return a whole HTML document of a title, as plain text, and the HTML of the page."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )


def figure(scene: Scene, caption: str = "") -> str:
    """Return a picture that is as wide as the page at most, with a switch to its full size where it is wider."""
    wide = " wide" if scene.width > _PAGE else ""
    switch = (
        '<label class="full"><input type="checkbox"> full size, scrolls sideways</label>'
        if scene.width > CHART
        else ""
    )
    below = f"<figcaption>{words(caption)}</figcaption>" if caption else ""
    return f'<figure class="fit{wide}">{switch}{picture(scene)}{below}</figure>'
