"""Pictures of results, classifiers, explanations and comparisons, as SVG, PNG and PDF.

The functions return a `Scene`; `save` writes it. SVG needs no further library, PNG and PDF need the extra ``[plot]``.
"""

from milpbn.plotting.canvas import SUFFIXES, check_picture, save
from milpbn.plotting.curves import CURVES, draw_curve, draw_sets
from milpbn.plotting.explanations import draw_importances, draw_margins, draw_prediction, draw_table
from milpbn.plotting.figures import draw_choice, draw_comparison, draw_points, draw_shifts, draw_widths
from milpbn.plotting.results import draw_result, draw_structure, draw_trace

__all__ = [
    "CURVES",
    "SUFFIXES",
    "check_picture",
    "draw_choice",
    "draw_comparison",
    "draw_curve",
    "draw_importances",
    "draw_margins",
    "draw_points",
    "draw_prediction",
    "draw_result",
    "draw_sets",
    "draw_shifts",
    "draw_structure",
    "draw_table",
    "draw_trace",
    "draw_widths",
    "save",
]
