"""Orderings and candidate parents against pictures drawn by hand and definitions."""

from __future__ import annotations

import numpy as np
import pytest
from running import random_data

from milpbn.errors import InputError
from milpbn.heuristics.spanning import tan_structure
from milpbn.learners.differentiable.orderings import (
    STRUCTURES,
    candidate_choices,
    centre_ordering,
    diagonal_ordering,
    nearest_parents,
    predecessors,
    random_ordering,
    row_ordering,
)


def picture(order, side):
    """The place of every pixel in the order, as an image."""
    image = np.full((side, side), -1)
    for place, pixel in enumerate(order):
        image[pixel] = place
    return image.tolist()


def test_orderings_of_images_follow_their_definitions() -> None:
    assert picture(row_ordering(3), 3) == [[0, 1, 2], [3, 4, 5], [6, 7, 8]]
    assert picture(diagonal_ordering(3), 3) == [[0, 2, 5], [1, 3, 7], [4, 6, 8]]
    # Odd: the centre, then above, below, left, right, corners.
    assert picture(centre_ordering(3), 3) == [[5, 1, 6], [3, 0, 4], [7, 2, 8]]
    # Even: the frame around nothing is four corners.
    assert picture(centre_ordering(4), 4) == [[12, 4, 5, 13], [8, 0, 1, 10], [9, 2, 3, 11], [14, 6, 7, 15]]


@pytest.mark.parametrize("ordering", [row_ordering, diagonal_ordering, centre_ordering])
@pytest.mark.parametrize("side", [1, 2, 5, 6])
def test_orderings_have_every_pixel_once(ordering, side: int) -> None:
    assert sorted(ordering(side)) == [(r, c) for r in range(side) for c in range(side)]


def test_nearest_parents_are_the_nearest_pixels() -> None:
    candidates = predecessors(range(9))
    near = nearest_parents(3, candidates, 3)
    assert near[0] == []
    assert near[4] == [1, 3, 0]  # distance 1, 1, 2 (and pixel 2 at the same distance comes later)
    assert near[8] == [5, 7, 4]
    for k in (1, 2):
        assert nearest_parents(3, candidates, k) == [mine[:k] for mine in near]


@pytest.mark.parametrize(
    "structure", ["subset", "all", "heuristic-a", "heuristic-b", "heuristic-c", "random"]
)
def test_every_choice_is_acyclic(structure: str) -> None:
    data = random_data(7, n_features=9, n_samples=20)
    choices = candidate_choices(data, structure, 4, ordering=2, selection=1)
    # Whatever is chosen, an order exists in which every candidate comes before its child.
    placed: list[int] = []
    while len(placed) < 9:
        ready = [
            i
            for i in range(9)
            if i not in placed and all(j in placed for p in choices[i] for j in p if j != 9)
        ]
        assert ready, "no order fits all candidates"
        placed += ready
    assert choices[9] == ((),)
    assert all(9 in p and len(p) <= 2 for sets in choices[:9] for p in sets)
    sizes = sorted(len(sets) for sets in choices[:9])
    if structure == "random":
        assert sizes == [1] * 9
        assert sorted(len(sets[0]) for sets in choices[:9]) == [1] + [2] * 8
    elif structure == "all":
        assert sizes == list(range(1, 10))
    else:
        assert sizes == [1, 2, 3, 4, 5, 5, 5, 5, 5]
    assert structure == "random" or all(sets[0] == (9,) for sets in choices[:9])


def test_the_same_orderings_and_nested_subsets() -> None:
    data = random_data(8, n_features=12, n_samples=20)
    for ordering in range(3):
        everything = candidate_choices(data, "all", 1, ordering)
        earlier = predecessors(random_ordering(12, ordering))
        assert [{j for p in sets for j in p} - {12} for sets in everything[:12]] == [set(e) for e in earlier]
        for selection in range(3):
            large = candidate_choices(data, "subset", 8, ordering, selection)
            for k in (2, 5):
                small = candidate_choices(data, "subset", k, ordering, selection)
                assert all(set(a) <= set(b) for a, b in zip(small, large, strict=True))
                assert max(map(len, small)) == k + 1
            single = candidate_choices(data, "random", 8, ordering, selection)
            for i in range(12):
                assert set(single[i][0]) - {12} <= set(earlier[i])
    assert candidate_choices(data, "subset", 3, 0, 0) != candidate_choices(data, "subset", 3, 0, 1)
    assert candidate_choices(data, "subset", 3, 0, 0) != candidate_choices(data, "subset", 3, 1, 0)
    assert candidate_choices(data, "subset", 3, 1, 1) == candidate_choices(data, "subset", 3, 1, 1)


def test_fixed_and_pseudo_structures() -> None:
    data = random_data(9, n_features=9, n_samples=40)
    assert [sets for (sets,) in candidate_choices(data, "chow-liu", 1)] == list(tan_structure(data).parents)
    assert candidate_choices(data, "naive-bayes", 1) == (*[((9,),)] * 9, ((),))
    pseudo = candidate_choices(data, "pseudo-all", 1)
    assert all({j for p in pseudo[i] for j in p} == set(range(10)) - {i} for i in range(9))
    assert all(len(sets) == 4 for sets in candidate_choices(data, "pseudo-subset", 3)[:9])
    near = candidate_choices(data, "pseudo-heuristic", 4)
    assert {j for p in near[4] for j in p} - {9} == {1, 3, 5, 7}


def test_bad_options_are_refused() -> None:
    data = random_data(10, n_features=5, n_samples=20)
    with pytest.raises(InputError, match="forest"):
        candidate_choices(data, "forest", 2)
    with pytest.raises(InputError, match="k must"):
        candidate_choices(data, "subset", 0)
    with pytest.raises(InputError, match="at least 0"):
        candidate_choices(data, "subset", 2, -1)
    for structure in STRUCTURES:
        if "heuristic" in structure:
            with pytest.raises(InputError, match="5 features"):
                candidate_choices(data, structure, 2)
