"""Search parameters: fields of frozen dataclasses with a unit, an effect, and the evidence for their value."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import Field, field, fields, is_dataclass
from typing import Any

#: Evidence of a value that was compared with its half and its double, or in one thread and in two.
COMPARED = "results/tuning.json"


def parameter(default: Any, unit: str, effect: str, evidence: str = COMPARED) -> Any:
    """Return a field of a frozen dataclass that is a search parameter.

    For a share, the unit is the quantity of which it is a share. The effect is one sentence, the evidence a heading of
    docs/decisions.md in quotation marks, or a file of results/.
    """
    return field(default=default, metadata={"unit": unit, "effect": effect, "evidence": evidence})


def parameters(kind: Any) -> Iterator[Field[Any]]:
    """Return the search parameters of a dataclass, without those of nested dataclasses."""
    return (f for f in fields(kind) if not is_dataclass(f.default))


def as_table(kind: type) -> str:
    """Return a Markdown table of the search parameters of a dataclass."""
    rows = ["| parameter | value | unit | effect | evidence |", "|---|---|---|---|---|"]
    for f in parameters(kind):
        value = f"{f.default:,}" if isinstance(f.default, int) else f"{f.default:g}"
        cells = " | ".join(f.metadata[key] for key in ("unit", "effect", "evidence"))
        rows.append(f"| `{f.name}` | {value} | {cells} |")
    return "\n".join(rows)
