"""What a result says of a classifier that averages several networks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Self

from milpbn.claims.parts import Claim
from milpbn.util.declared import Count, Within
from milpbn.util.jsonable import Fields


@dataclass(frozen=True, kw_only=True)
class Average(Claim):
    """What a run says of a classifier that averages several networks.

    All else in the result is about the first network.

    Attributes
    ----------
    asked : int
        Number of networks that were asked for.
    networks : int
        Number of networks in the classifier. With 1 it is a single network.
    interrupted : bool
        Whether the user stopped the run before it had all networks.
    note : str
        Why there are fewer than were asked for, as a clause; empty if there are not.
    """

    asked: Count
    networks: Annotated[int, Within(1, "asked")]
    interrupted: bool = False
    note: str = ""

    def describe(self) -> list[str]:
        """Return sentences for the user."""
        said = [f"average of {self.networks} networks; score, bound, gap and certificate are of the first"]
        if self.networks == 1:
            said = ["one network, not an average"]
        return said + ([f"{self.asked} were asked for: {self.note}"] if self.networks < self.asked else [])

    @classmethod
    def read(cls, f: Fields) -> Self:
        """Read what `to_dict` returned."""
        read = super().read(f)
        missing = read.networks < read.asked
        if missing != bool(read.note) or (read.interrupted and not missing):
            raise f.contradiction("it says why networks are missing although none is, or the reverse")
        return read
