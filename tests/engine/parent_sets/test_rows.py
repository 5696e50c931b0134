"""Rows hold for every acyclic structure, and their multipliers bound every cost."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

from milpbn.engine.parent_sets.blocks import gauge, small_integers, violated_block
from milpbn.engine.parent_sets.clusters import support_of, violated_clusters
from milpbn.engine.parent_sets.paths import broken_independences, violated_path_rows
from milpbn.engine.parent_sets.rows import (
    ARCS,
    BLOCK,
    CLOSED,
    CLUSTER,
    LARGEST_BLOCK,
    LIMIT,
    REACHED,
    Row,
    activities,
    block_terms,
    cheaper_sides,
    entries,
    lagrangian,
    pack,
)
from milpbn.engine.parent_sets.sets import ParentSets, list_sets, members_of
from milpbn.network.structure import topological_order
from milpbn.problem.candidates import Candidates
from milpbn.problem.constraints import Rules


def all_sets(n, *, most=3, shift=0):
    """Return all parent sets of n variables, with random terms; `shift` variables without parents come first."""
    names = tuple(f"v{i}" for i in range(n + shift))
    own = range(shift, n + shift)
    sets = tuple(((),) for _ in range(shift)) + tuple(
        tuple(s for k in range(most + 1) for s in itertools.combinations([j for j in own if j != i], k))
        for i in own
    )
    candidates = Candidates(names, sets)
    terms = -np.random.default_rng(n).random(candidates.n_sets) * 10
    return list_sets(candidates, terms, dominated=True).sets


def structures(sets):
    """Return the parent sets of all acyclic structures, int64 array, shape (n, V)."""
    members = [members_of(mask) for mask in sets.masks]
    blocks = [range(a, b) for a, b in itertools.pairwise(sets.offsets)]
    return np.array(
        [c for c in itertools.product(*blocks) if topological_order([members[p] for p in c]) is not None]
    )


def random_rows(n, rng, shift=0):
    """Return clusters, blocks with random nondecreasing functions, and limits."""
    rows = []
    for _ in range(12):
        members = tuple(sorted(shift + rng.choice(n, size=rng.integers(2, n + 1), replace=False)))
        members = tuple(int(v) for v in members)
        f = rng.integers(0, 9, 1 << len(members))
        f[0] = 0
        for s in range(len(f)):  # nondecreasing
            f[s] = max([f[s], *(f[s & ~(1 << k)] for k in range(len(members)) if s >> k & 1)])
        rows += [Row(CLUSTER, members), Row(BLOCK, members, tuple(f.tolist()))]
    return rows


@pytest.mark.parametrize(("n", "shift"), [(3, 0), (4, 0), (4, 62)])
def test_rows_hold_for_every_acyclic_structure(n, shift):
    sets = all_sets(n, shift=shift)
    packed = pack(random_rows(n, np.random.default_rng(7 * n + shift), shift), sets.n_variables)
    tight = np.zeros(len(packed.kind), dtype=bool)
    for choice in structures(sets):
        excess = activities(sets, choice, np.ones(len(choice)), packed)
        assert (excess <= 0).all()
        tight |= excess == 0
    # Clusters are facets: for each, some structure has no slack.
    assert tight[packed.kind == CLUSTER].all()


@pytest.mark.parametrize(
    ("kind", "shift"), [("ancestors", 0), ("ancestors", 62), ("no_ancestors", 0), ("independences", 62)]
)
def test_rows_of_paths_hold_for_what_obeys_and_cut_off_what_does_not(kind, shift):
    sets = all_sets(4, shift=shift)
    a, b, c = shift, shift + 2, shift + 3
    rules = Rules(**{kind: frozenset([(a, b, frozenset([c]))] if kind == "independences" else [(a, b)])})
    obeying, rows = [], set()
    for choice in structures(sets):
        point = support_of(sets, choice, np.ones(len(choice)))
        found = violated_path_rows(point, rules) + broken_independences(point, rules)
        if rules.keeps_paths([members_of(sets.masks[p]) for p in choice]):
            assert not found
            obeying.append(choice)
            continue
        assert (activities(sets, choice, np.ones(len(choice)), pack(found, 4 + shift)) > 0).all()
        assert found
        rows.update(found)
    packed = pack(rows, 4 + shift)
    assert all((activities(sets, choice, np.ones(4 + shift), packed) <= 0).all() for choice in obeying)


@pytest.mark.parametrize("bits", [2**53 + 1, 0x7FF0000000000001, 0xFFF0000000000001, 2**64 - 2, 1])
def test_no_bit_of_the_parents_of_arcs_is_lost(bits):
    """Words of parents stand among floats, where some of them are no number."""
    n = 130
    parents = bits | bits << 64
    rows = pack([Row(ARCS, (128,), (parents,))], n).followed_by(pack([Row(ARCS, (129,), (parents,))], n))
    rows = rows.selected(np.array([True, True]))
    assert rows.terms.view(np.uint64).tolist() == [bits, bits, 0] * 2
    least = bits & -bits
    masks = np.array([[bits, bits, 0], [bits ^ least, bits, 0]], dtype=np.uint64)
    offsets = np.array([0] * 129 + [0, 2])
    sets = ParentSets(offsets, np.array([129, 129]), masks, np.zeros(2))
    for place, with_all in ((0, 1.0), (1, 0.0)):
        assert activities(sets, np.array([place]), np.ones(1), rows).tolist() == [0.0, with_all]


def test_terms_of_a_block_are_those_of_the_definition():
    f = np.array([0, 1, 1, 2, 0, 2, 3, 5], dtype=float)
    terms = block_terms(f)
    for i, s in itertools.product(range(3), range(8)):
        if not s >> i & 1:
            above = [u for u in range(8) if u & s == s and not u >> i & 1]
            assert terms[i, s] == min(f[u | 1 << i] - f[u] for u in above)


def test_a_limit_counts_children():
    sets = all_sets(4)
    packed = pack([Row(LIMIT, (2,), (1,))], 4)
    for choice in structures(sets)[::7]:
        children = sum(int(sets.masks[p, 0]) >> 2 & 1 for p in choice)
        assert activities(sets, choice, np.ones(4), packed) == children - 1


@pytest.mark.parametrize("seed", range(5))
def test_the_bound_is_below_every_cost_and_close_to_its_exact_value(seed):
    rng = np.random.default_rng(seed)
    sets = all_sets(4)
    rows = random_rows(4, rng)
    packed = pack(rows, 4)
    multipliers = rng.random(len(rows)) * (rng.random(len(rows)) < 0.5) * 10.0 ** rng.integers(-3, 6)
    allowed = rng.random(sets.n_sets) < 0.8
    allowed[sets.offsets[:-1]] = True
    reduced, least = np.empty(sets.n_sets), np.empty(4)
    bound = lagrangian(sets, packed, multipliers, allowed, reduced, least)
    # Rows of one parent set each give its terms.
    terms = np.array(
        [activities(sets, np.array([p]), np.ones(1), packed) + packed.right for p in range(sets.n_sets)]
    )
    y = [Fraction(float(v)) for v in multipliers]
    own = [
        Fraction(float(sets.costs[p])) + sum(v * Fraction(float(a)) for v, a in zip(y, terms[p], strict=True))
        for p in range(sets.n_sets)
    ]
    best = [min(own[p] for p in range(*block) if allowed[p]) for block in itertools.pairwise(sets.offsets)]
    exact = sum(best) - sum(v * Fraction(float(b)) for v, b in zip(y, packed.right, strict=True))
    size = float(sum(best) + sum(v * Fraction(float(b)) for v, b in zip(y, packed.right, strict=True)))
    assert Fraction(float(bound)) <= exact
    assert float(exact) - bound <= 1e-13 * size
    for choice in structures(sets)[::11]:
        if allowed[choice].all():
            assert bound <= sets.costs[choice].sum()


@pytest.mark.parametrize("by_row", [True, False])
def test_entries_are_the_terms_without_what_whole_variables_share(by_row):
    rng = np.random.default_rng(3)
    sets = all_sets(4)
    of_paths = [Row(CLOSED, (0, 2)), Row(REACHED, (1, 2), (0,)), Row(ARCS, (1, 3), (0b1, 0b110))]
    packed = pack(random_rows(4, rng) + of_paths, 4)
    columns = rng.permutation(sets.n_sets)[:20]
    side = cheaper_sides(sets, columns, packed)
    outer = len(packed.kind) if by_row else len(columns)
    place, value = np.empty(1000, dtype=np.int32), np.empty(1000)
    starts = np.empty(outer, dtype=np.int32)
    n = entries(sets, columns, packed, side, by_row, place, value, starts)
    matrix = np.zeros((len(packed.kind), len(columns)))
    for k, (a, b) in enumerate(itertools.pairwise([*starts, n])):
        for p, v in zip(place[a:b], value[a:b], strict=True):
            matrix[(k, p) if by_row else (p, k)] = v
    for c, p in enumerate(columns):
        natural = activities(sets, np.array([p]), np.ones(1), packed) + packed.right
        shifted = side[:, 0] >> np.uint64(sets.child[p]) & np.uint64(1)
        assert (matrix[:, c] == natural - shifted).all()


def point_of(sets, rng, n_vertices):
    """Return the support of an average of cyclic choices, which rows may cut off."""
    choice = [[rng.integers(a, b) for a, b in itertools.pairwise(sets.offsets)] for _ in range(n_vertices)]
    columns, counts = np.unique(np.array(choice), return_counts=True)
    return support_of(sets, columns, counts / n_vertices)


@pytest.mark.parametrize("seed", range(20))
def test_separated_rows_are_violated(seed):
    rng = np.random.default_rng(seed)
    sets = all_sets(4, shift=62 if seed % 2 else 0)
    point = point_of(sets, rng, 3)
    rows = violated_clusters(point, seed)
    members = np.full(LARGEST_BLOCK, -1)
    members[:4] = np.arange(sets.n_variables - 4, sets.n_variables)
    block = violated_block(point, members)
    rows += [] if block is None else [block[0]]
    excess = activities(sets, point.used, point.shares, pack(rows, sets.n_variables))
    assert (excess > 0).all()


def test_the_gauge_finds_a_row_exactly_where_the_point_is_outside_the_hull():
    from scipy.optimize import linprog

    sets = all_sets(3)
    vertices = structures(sets)
    found = outside = 0
    for seed in range(40):
        point = point_of(sets, np.random.default_rng(seed), 2 + seed % 4)
        x = np.zeros(sets.n_sets)
        x[point.used] = point.shares
        matrix = np.zeros((sets.n_sets, len(vertices)))
        for k, choice in enumerate(vertices):
            matrix[choice, k] = 1.0
        hull = linprog(np.zeros(len(vertices)), A_eq=matrix, b_eq=x).status == 0
        members = np.full(LARGEST_BLOCK, -1)
        members[:3] = np.arange(3)
        row = violated_block(point, members)
        assert (row is None) == hull
        found += row is not None
        outside += not hull
    assert 5 < found == outside < 40


def test_functions_become_small_integers():
    assert small_integers(np.array([0.0, 0.5, 0.5, 1.0])) == (0, 1, 1, 2)
    assert small_integers(np.array([0.0, 1 / 3, 2 / 3, 1.0])) == (0, 1, 2, 3)
    rough = small_integers(np.array([0.0, 0.1234567, 0.7654321, 1.0]))
    assert rough == (0, 123, 765, 1000)
    f = np.empty(4)
    # Two variables that are each other's only parent: the gauge of shares 0.6 and 0.9 is 1.5.
    assert gauge(2, np.array([0, 1]), np.array([2, 1]), np.array([0.6, 0.9]), f) == pytest.approx(1.5)
    assert f.tolist() == [0, 0, 0, 1]


@pytest.mark.parametrize("shares", [(1.0,), (0.5, 0.5)])
def test_long_cycles_are_cut_off_by_their_clusters(shares):
    n = 30  # every variable follows its predecessor on a cycle, or half of it the one before that
    listed = [[(), *(((i - k) % n,) for k in (1, 2))] for i in range(n)]
    candidates = Candidates(tuple(f"v{i}" for i in range(n)), tuple(tuple(sorted(own)) for own in listed))
    sets = list_sets(candidates, np.zeros(candidates.n_sets), dominated=True).sets
    columns = np.array(
        [
            next(p for p in range(*sets.offsets[i : i + 2]) if members_of(sets.masks[p]) == ((i - k) % n,))
            for i in range(n)
            for k in (1, 2)[: len(shares)]
        ]
    )
    point = support_of(sets, columns, np.tile(shares, n))
    rows = violated_clusters(point, 0)
    assert Row(CLUSTER, tuple(range(n))) in rows
    assert (activities(sets, point.used, point.shares, pack(rows, n)) > 0.9).all()
