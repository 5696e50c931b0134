"""Which column of a table is the class, and which ones are features."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from milpbn.data.column import Column
from milpbn.data.left_out import Why, chosen_features, default_target, describe_left_out, look_alikes
from milpbn.data.row_index import is_unnamed
from milpbn.data.sources import Loaded
from milpbn.errors import DataWarning, InputError, warn


@dataclass(frozen=True, kw_only=True)
class ColumnOptions:
    """What the user says about columns, by their names; the attributes are options of `milpbn.data.read_table`."""

    target: str | None
    drop: tuple[str, ...]
    features: tuple[str, ...]
    continuous: tuple[str, ...]
    nominal: tuple[str, ...]

    @property
    def declared(self) -> tuple[str, ...]:
        """The columns whose kind is declared."""
        return *self.continuous, *self.nominal


@dataclass(frozen=True, eq=False)
class ChosenColumns:
    """The columns of a table by their use.

    Attributes
    ----------
    columns : dict of str to Column
        The features in their order, and the class last.
    candidates : dict of str to Column
        These and the columns that were left out because of what they look like.
    undeclared : tuple of str
        Features that neither an option nor the catalog says anything of.
    left_out : dict of str to str
        Why each of the other columns is left out.
    notes : list of str
        Sentences about the choice.
    """

    columns: dict[str, Column]
    candidates: dict[str, Column]
    undeclared: tuple[str, ...]
    left_out: dict[str, Why]
    notes: list[str]


def choose_columns(columns: Mapping[str, Column], loaded: Loaded, options: ColumnOptions) -> ChosenColumns:
    """Choose the class and the features, and warn of columns that are left out because of what they look like.

    Parameters
    ----------
    columns : mapping from name to Column
        All columns but that of the weights, in their order.
    loaded : Loaded
        The table's source.
    options : ColumnOptions
        A target that it names exists.

    Raises
    ------
    InputError
        If an option names a column that does not exist, options contradict one another, or no feature is left.
    """
    where, entry = loaded.where, loaded.entry
    target = last = list(columns)[-1]
    if options.target is not None:
        target = options.target
    elif not loaded.has_class and (entry is None or is_unnamed(last)):
        target = default_target(columns, options.nominal, loaded.index) or last
    columns = {name: columns[name] for name in (*(n for n in columns if n != target), target)}
    asked = chosen_features(list(columns), target, where, drop=options.drop, features=options.features)
    _require_kept(asked, options.declared)
    undeclared = [name for name in columns if name not in (*asked, *options.declared, target)]
    if options.features:
        undeclared = []
    elif entry is not None:  # it says what the columns are, if they have names
        undeclared = [name for name in undeclared if is_unnamed(name)]
    left_out = {**asked, **look_alikes(columns, undeclared, loaded.index)}
    notes = describe_left_out(columns, left_out)
    if options.target is None and target != last:
        notes.append(f"The class is the last of the other columns, {target!r}.")
    if len(left_out) == len(columns) - 1:
        raise InputError(f"No column of {where} is left as a feature. {' '.join(notes)}")
    if by_themselves := notes[bool(asked) :]:
        warn(" ".join(by_themselves), DataWarning)
    return ChosenColumns(
        {name: column for name, column in columns.items() if name not in left_out},
        {name: column for name, column in columns.items() if name not in asked},
        tuple(name for name in undeclared if name not in left_out),
        left_out,
        notes,
    )


def _require_kept(asked: Mapping[str, str], declared: Collection[str]) -> None:
    """Refuse a declared kind of a column that the options leave out."""
    for name in declared:
        if name in asked:
            raise InputError(
                f"Column {name!r} is declared nominal or continuous, but 'drop' or 'features' leaves it out; keep one."
            )
