"""User constraints on structures: by name as a user gives them, and by variable index as the search reads them."""

from __future__ import annotations

import itertools
import numbers
import operator
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from milpbn.errors import InputError
from milpbn.util.graphs import families_with_class, separated, with_ancestors
from milpbn.util.jsonable import finite_number
from milpbn.util.plurals import counted

Arc = tuple[str, str]

#: The most variables that an error message lists.
SHOWN = 20
#: The JSON form of each constraint, as `Constraints.from_dict` reads it.
JSON_FORMS = {
    "required": '[["A", "B"], ...]',
    "forbidden": '[["A", "B"], ...]',
    "tiers": '[["A", "B"], ["C"], ...]',
    "max_children": '{"A": 2, "*": 3, ...}',
    "max_features": "3",
    "fixed": '{"A": ["B", "C"], ...}',
    "allowed": '{"A": ["B", "C"], ...}',
    "arc_weights": '[["A", "B", 1.5], ...]',
    "ancestors": '[["A", "B"], ...]',
    "no_ancestors": '[["A", "B"], ...]',
    "independences": '[["A", "B", ["C", "D"]], ...]',
}
#: Largest arc weight in nats. A larger one would cost the digits of the score in a sum.
LARGEST_WEIGHT = 1e6


@dataclass(frozen=True, kw_only=True)
class Constraints:
    """What a user knows about the structure, in names.

    Attributes
    ----------
    required, forbidden : tuples of (parent, child)
        Arcs that must, or must not, be in the structure.
    tiers : tuple of tuples of str
        A partial order: no arc leads from a variable of a later tier to one of an earlier tier. Variables in
        no tier are free.
    max_children : mapping of name to int
        The most children that a variable may have. The key ``"*"`` applies to every feature without a key of its
        own. It does not apply to the class, because the children of the class make the classifier.
    max_features : int or None
        The most features on which predictions depend: those in the Markov blanket of the class
        (`Structure.markov_blanket`), which are its parents, its children and their other parents. None for no limit.
    fixed : mapping of name to tuple of str
        The exact parent sets of some variables: a given part of the structure.
    allowed : mapping of name to tuple of str
        The only variables that may be parents of a variable.
    arc_weights : mapping of (parent, child) to float
        Prior weight in nats, added to the score of every structure with the arc.
    ancestors, no_ancestors : tuples of (ancestor, descendant)
        Variables between which there must, or must not, be a directed path.
    independences : tuple of (name, name, tuple of names)
        Two variables that the structure d-separates given the others, if there are any: every distribution that factors
        by the structure has this conditional independence.

    Raises
    ------
    InputError
        If an attribute does not have the form above.
    """

    required: tuple[Arc, ...] = ()
    forbidden: tuple[Arc, ...] = ()
    tiers: tuple[tuple[str, ...], ...] = ()
    max_children: Mapping[str, int] = field(default_factory=dict)
    max_features: int | None = None
    fixed: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    allowed: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    arc_weights: Mapping[Arc, float] = field(default_factory=dict)
    ancestors: tuple[Arc, ...] = ()
    no_ancestors: tuple[Arc, ...] = ()
    independences: tuple[tuple[str, str, tuple[str, ...]], ...] = ()

    def __post_init__(self) -> None:
        key = ""
        try:
            for key in ("required", "forbidden", "arc_weights", "ancestors", "no_ancestors"):
                for a, b in getattr(self, key):
                    _text(a), _text(b)
            for key in ("tiers", "fixed", "allowed"):
                groups = getattr(self, key)
                for names in groups if key == "tiers" else groups.values():
                    _texts(tuple(names) if isinstance(names, set | frozenset) else names)
            key = "independences"
            for a, b, given in self.independences:
                _texts((a, b)), _texts(given)
            key = "max_children"
            for limit in self.max_children.values():
                operator.index(limit)
            key = "max_features"
            if self.max_features is not None:
                object.__setattr__(self, key, operator.index(self.max_features))
            key = "arc_weights"
            for weight in self.arc_weights.values():
                if isinstance(weight, bool) or not isinstance(weight, numbers.Real):
                    raise TypeError
        except (TypeError, ValueError, AttributeError):
            raise InputError(
                f"The constraints: the value of {key!r} does not have the form that milpbn.Constraints documents, with "
                "names as strings."
            ) from None

    def __bool__(self) -> bool:
        return self.max_features is not None or any(getattr(self, key) for key in JSON_FORMS)

    @property
    def names(self) -> frozenset[str]:
        """The variables that the constraints name, and ``"*"`` where `max_children` has it."""
        arcs = (*self.required, *self.forbidden, *self.arc_weights, *self.ancestors, *self.no_ancestors)
        sets = ((child, *parents) for of in (self.fixed, self.allowed) for child, parents in of.items())
        apart = ((a, b, *given) for a, b, given in self.independences)
        return frozenset(itertools.chain(*arcs, *self.tiers, *sets, *apart, self.max_children))

    @property
    def path_options(self) -> str:
        """The constraints on paths that there are, as options of the command line; empty without any."""
        given = {
            "--ancestor": self.ancestors,
            "--no-ancestor": self.no_ancestors,
            "--independence": self.independences,
        }
        return ", ".join(option for option, values in given.items() if values)

    def to_dict(self) -> dict[str, object]:
        """Return the constraints as JSON-safe values, the form that `from_dict` reads; `max_features` only if set."""
        weights = [[*arc, weight] for arc, weight in self.arc_weights.items()]
        values = {key: getattr(self, key) for key in JSON_FORMS} | {"arc_weights": weights}
        return {key: _listed(value) for key, value in values.items() if value is not None}

    @classmethod
    def from_dict(cls, values: Mapping[str, object], where: str = "The constraints") -> Constraints:
        """Build constraints from parsed JSON: the keys of the attributes, arcs as ``[parent, child]`` lists.

        If a key is unknown or a value has the wrong form, the message of the InputError begins with `where`.
        """
        if not isinstance(values, Mapping):
            raise InputError(f"{where}: they must be an object with the keys {', '.join(JSON_FORMS)}.")
        unknown = [k for k in values if k not in JSON_FORMS]
        if unknown:
            raise InputError(
                f"{where}: there is no constraint {unknown[0]!r}; choose from {', '.join(JSON_FORMS)}."
            )
        key = ""
        try:
            parts = {}
            for key, value in values.items():
                parts[key] = _READERS[key](value)
            return cls(**parts)
        except (TypeError, ValueError, AttributeError):
            raise InputError(
                f"{where}: the value of {key!r} does not have the form {JSON_FORMS[key]} with names of variables."
            ) from None


def _listed(value: Any) -> Any:
    """Return a value with lists in the place of tuples and sets."""
    if isinstance(value, Mapping):
        return {key: _listed(item) for key, item in value.items()}
    return value if isinstance(value, str) or not isinstance(value, Iterable) else list(map(_listed, value))


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _texts(values: object) -> tuple[str, ...]:
    if not isinstance(values, list | tuple):
        raise TypeError
    return tuple(_text(v) for v in values)


def _count(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError
    return value


def _number(value: object) -> float:
    number = finite_number(value)
    if number is None:
        raise TypeError
    return number


def _arcs(value: Any) -> tuple[Arc, ...]:
    return tuple((_text(a), _text(b)) for a, b in value)


def _sets(value: Any) -> dict[str, tuple[str, ...]]:
    return {_text(name): _texts(members) for name, members in value.items()}


#: How a value of each key of the JSON form is read; TypeError, ValueError or AttributeError if it has another form.
_READERS: dict[str, Callable[[Any], Any]] = {
    "required": _arcs,
    "forbidden": _arcs,
    "tiers": lambda value: tuple(map(_texts, value)),
    "max_children": lambda value: {_text(name): _count(limit) for name, limit in value.items()},
    "max_features": _count,
    "fixed": _sets,
    "allowed": _sets,
    "arc_weights": lambda value: {(_text(a), _text(b)): _number(weight) for a, b, weight in value},
    "ancestors": _arcs,
    "no_ancestors": _arcs,
    "independences": lambda value: tuple((_text(a), _text(b), _texts(given)) for a, b, given in value),
}


@dataclass(frozen=True)
class Rules:
    """Constraints by variable index, as the candidate sets and the model read them; arcs are pairs (parent, child).

    `forbidden` includes the arcs that tiers and allowed parents rule out. `fixed` has exact parent sets, `max_children`
    the most children of a variable, and `arc_weights` nats. `max_features` is the most features in the Markov blanket
    of the class, None for no limit; as the children of the class are among them, `max_children` has it for the class,
    too. `ancestors` and `no_ancestors` are pairs (ancestor, descendant), and `independences` triples of two variables
    and those that d-separate them.
    """

    required: frozenset[tuple[int, int]] = frozenset()
    forbidden: frozenset[tuple[int, int]] = frozenset()
    fixed: Mapping[int, frozenset[int]] = field(default_factory=dict)
    max_children: Mapping[int, int] = field(default_factory=dict)
    max_features: int | None = None
    arc_weights: Mapping[tuple[int, int], float] = field(default_factory=dict)
    ancestors: frozenset[tuple[int, int]] = frozenset()
    no_ancestors: frozenset[tuple[int, int]] = frozenset()
    independences: frozenset[tuple[int, int, frozenset[int]]] = frozenset()

    @property
    def on_paths(self) -> bool:
        """Whether there are rules on paths, which one parent set alone can neither obey nor break."""
        return bool(self.ancestors or self.no_ancestors or self.independences)

    def broken_by(self, certain: Sequence[Collection[int]]) -> bool:
        """Whether these arcs break a rule on several parent sets already, whatever other arcs are added."""
        return not self.within_limits(certain) or not self._keeps_apart(certain)

    def keeps_paths(self, parents: Sequence[Collection[int]]) -> bool:
        """Whether an acyclic structure, given by all parent sets, obeys the rules on paths."""
        reached = all(a in with_ancestors(parents, [b]) for a, b in self.ancestors)
        return reached and self._keeps_apart(parents)

    def _keeps_apart(self, parents: Sequence[Collection[int]]) -> bool:
        """Whether arcs make no path and no active trail that is excluded; if so, any subset of them makes none."""
        return all(a not in with_ancestors(parents, [b]) for a, b in self.no_ancestors) and all(
            separated(parents, a, b, given) for a, b, given in self.independences
        )

    def admits(self, child: int, parents: Iterable[int]) -> bool:
        """Whether one parent set obeys the required, forbidden and fixed arcs into `child`."""
        members = frozenset(parents)
        if child in self.fixed and members != self.fixed[child]:
            return False
        if any((j, child) in self.forbidden for j in members):
            return False
        return all(j in members for j, i in self.required if i == child)

    def within_limits(self, parents: Sequence[Collection[int]]) -> bool:
        """Whether all parent sets, or a part of the arcs, exceed neither a child limit nor the number of features."""
        return self.over_limit(parents) is None and not self.too_many_features(parents)

    def too_many_features(self, parents: Sequence[Collection[int]]) -> bool:
        """Whether the Markov blanket of the class, the last variable, has more than `max_features` features."""
        return self.max_features is not None and len(families_with_class(parents)) - 1 > self.max_features

    def over_limit(self, parents: Sequence[Collection[int]]) -> int | None:
        """Return the first variable with more children than `max_children` allows, given all parent sets, or None."""
        for j, limit in self.max_children.items():
            if sum(j in members for members in parents) > limit:
                return j
        return None


@dataclass(frozen=True)
class Atom:
    """One single constraint, with the text that names it in the message about a conflict."""

    text: str
    rules: Rules


def atoms(constraints: Constraints, names: Sequence[str]) -> list[Atom]:
    """Split constraints into single ones over variable indices (the class is the last name).

    InputError if a constraint names a variable that is not in the data, an arc from a variable to itself, a variable in
    two tiers, a negative child limit, or a weight that is not finite or too large.
    """
    index = {name: i for i, name in enumerate(names)}

    def at(name: str, what: str) -> int:
        if name not in index:
            known = ", ".join(names[:SHOWN]) + (", ..." if len(names) > SHOWN else "")
            raise InputError(f"{what} names {name!r}, which is not a variable of the data ({known}).")
        return index[name]

    def arc(pair: Arc, what: str) -> tuple[int, int]:
        j, i = at(pair[0], what), at(pair[1], what)
        if i == j:
            raise InputError(f"{what} names {pair[0]!r} twice; name two variables.")
        return j, i

    result = []
    for key in ("required", "forbidden"):
        for a, b in getattr(constraints, key):
            arcs: Any = {key: frozenset([arc((a, b), f"A {key} arc")])}
            result.append(Atom(f"{key} arc {a} -> {b}", Rules(**arcs)))
    for key, what in (("ancestors", "An ancestor"), ("no_ancestors", "A pair without a path")):
        for a, b in getattr(constraints, key):
            j, i = arc((a, b), what)
            # The arc against a path would close a cycle, and an arc is a path.
            against = frozenset([(i, j) if key == "ancestors" else (j, i)])
            pair: Any = {key: frozenset([(j, i)])}
            verb = "is" if key == "ancestors" else "is not"
            result.append(Atom(f"{a} {verb} an ancestor of {b}", Rules(forbidden=against, **pair)))
    for a, b, given in constraints.independences:
        j, i = arc((a, b), "An independence")
        between = frozenset(at(name, "An independence") for name in given)
        if between & {j, i}:
            raise InputError(
                f"The independence of {a!r} and {b!r} is given one of the two; leave it out there."
            )
        told = f" given {', '.join(given)}" if given else ""
        apart = Rules(forbidden=frozenset([(j, i), (i, j)]), independences=frozenset([(j, i, between)]))
        result.append(Atom(f"{a} and {b} are independent{told}", apart))
    tier_of: dict[int, int] = {}
    for level, tier in enumerate(constraints.tiers):
        for name in tier:
            i = at(name, "A tier")
            if tier_of.setdefault(i, level) != level:
                raise InputError(f"The variable {name!r} is in two tiers; leave it in one.")
    for j, later in tier_of.items():
        for i, earlier in tier_of.items():
            if later > earlier:
                text = f"tiers: {names[j]} comes after {names[i]}"
                result.append(Atom(text, Rules(forbidden=frozenset([(j, i)]))))
    for key, what in (("fixed", "A fixed parent set"), ("allowed", "The allowed parents")):
        for name, members in getattr(constraints, key).items():
            i = at(name, what)
            parents = frozenset(arc((p, name), what)[0] for p in members)
            others = frozenset((j, i) for j in range(len(names)) if j != i and j not in parents)
            rules = Rules(fixed={i: parents}) if key == "fixed" else Rules(forbidden=others)
            result.append(Atom(f"{what.split(' ', 1)[1]} of {name}: {{{', '.join(members)}}}", rules))
    result += _limits(constraints, names, at)
    for (a, b), weight in constraints.arc_weights.items():
        pair = arc((a, b), "An arc weight")
        if not abs(weight) <= LARGEST_WEIGHT:
            raise InputError(
                f"The weight of the arc {a} -> {b} must be a finite number of at most {LARGEST_WEIGHT:g} nats, got "
                f"{weight:g}; to force or exclude an arc, make it required or forbidden."
            )
        result.append(Atom(f"weight of arc {a} -> {b}", Rules(arc_weights={pair: weight})))
    return result


def _limits(constraints: Constraints, names: Sequence[str], at: Callable[[str, str], int]) -> Iterator[Atom]:
    """Yield the limits on children and features; `at` finds a variable, or refuses it for what names it."""
    given = constraints.max_children
    limits = dict.fromkeys(range(len(names) - 1), given["*"]) if "*" in given else {}
    limits |= {at(n, "max_children"): c for n, c in given.items() if n != "*"}
    for i, limit in limits.items():
        if limit < 0:
            raise InputError(f"max_children of {names[i]!r} must be at least 0, got {limit}.")
        most = min(limit, len(names))  # no variable has more; the user's number may be huge
        yield Atom(f"at most {limit} children of {names[i]}", Rules(max_children={i: most}))
    if (count := constraints.max_features) is not None:
        if count < 0:
            raise InputError(f"max_features must be at least 0, got {count}.")
        most = min(count, c := len(names) - 1)
        yield Atom(f"at most {counted(count, 'feature')}", Rules(max_children={c: most}, max_features=most))


def combine(parts: Iterable[Atom]) -> Rules:
    """Join single constraints that do not fix two different parent sets of one variable (`conflicts` checks that)."""
    parts = list(parts)
    fixed: dict[int, frozenset[int]] = {}
    max_children: dict[int, int] = {}
    arc_weights: dict[tuple[int, int], float] = {}
    for part in parts:
        fixed |= part.rules.fixed
        for i, limit in part.rules.max_children.items():
            max_children[i] = min(limit, max_children.get(i, limit))
        arc_weights |= part.rules.arc_weights
    joined: Any = {
        key: frozenset[Any]().union(*(getattr(part.rules, key) for part in parts))
        for key in ("required", "forbidden", "ancestors", "no_ancestors", "independences")
    }
    features = [part.rules.max_features for part in parts if part.rules.max_features is not None]
    most = min(features, default=None)
    return Rules(fixed=fixed, max_children=max_children, max_features=most, arc_weights=arc_weights, **joined)
