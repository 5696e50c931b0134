"""Pictures as lists of boxes, lines and texts, without a library: layouts of networks, charts, and SVG.

`layout` places the boxes of a directed graph, `network` draws a structure, `chart` has axes, `svg` writes a picture.
`milpbn.plotting` draws the same pictures with matplotlib, as PNG and PDF.
"""
