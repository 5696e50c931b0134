"""What a classifier has learnt, and why it predicts a class, as exact sums of logarithms.

log P(c, z) is a sum with one term per family. So the log-odds of two classes are an exact sum of log-ratios: nothing is
sampled, and no other model stands in for the classifier. `local` explains predictions, `overall` the whole classifier,
and `evidence` has its tables, also as text.
"""

from milpbn.network.explanation.evidence import FamilyTable, family_tables
from milpbn.network.explanation.local import (
    Contribution,
    LocalExplanation,
    SeveralLocalExplanations,
    explain_rows,
)
from milpbn.network.explanation.overall import (
    FamilyImportance,
    GlobalExplanation,
    LowMargin,
    Margins,
    SeveralGlobalExplanations,
    explain_tables,
)

__all__ = [
    "Contribution",
    "FamilyImportance",
    "FamilyTable",
    "GlobalExplanation",
    "LocalExplanation",
    "LowMargin",
    "Margins",
    "SeveralGlobalExplanations",
    "SeveralLocalExplanations",
    "explain_rows",
    "explain_tables",
    "family_tables",
]
