"""Scores in words: two scores with different options never have the same words, and no value is left out."""

from __future__ import annotations

import random
import re

from campaign.share import Share
from milpbn.problem.scores.spec import Score


def draw(rng: random.Random) -> tuple[Score, set[str]]:
    """Return a score, and the numbers and words of its options that a description must have."""
    name = rng.choice(["sm", "sbm", "hard-margin", "cll", "ll", "mdl", "aic", "aicc", "bdeu"])
    options: dict[str, object] = {"max_parents": rng.randint(1, 4), "class_parents": rng.random() < 0.5}
    words = {str(options["max_parents"]), *([] if options["class_parents"] else ["class", "parents"])}
    if name in ("sm", "sbm"):
        options["gamma"] = rng.randint(2, 99) / 8
    if name == "bdeu":
        options["equivalent_sample_size"] = float(rng.randint(1, 3))
    if name in ("sm", "sbm", "hard-margin", "cll"):
        options |= {
            "smoothing": rng.choice([0.5, 1.0, 2.0]),
            "smoothing_towards": rng.choice(["uniform", "marginal", "class"]),
            "penalty": rng.choice([0.0, 0.25, 3.5, "bic", "aic"]),
            "hybrid": rng.choice([0.0, 0.125, 6.25]),
        }
        options["leave_one_out"] = rng.random() < 0.5 and not isinstance(options["penalty"], str)
        plain = {"smoothing": 1.0, "smoothing_towards": "uniform", "penalty": 0.0, "hybrid": 0.0}
        words |= {f"{options[key]:g}" if isinstance(options[key], float) else str(options[key]) for key in plain
                  if options[key] != plain[key]}  # fmt: skip
        words |= {"leave-one-out"} if options["leave_one_out"] else set()
    words |= {f"{options[key]:g}" for key in ("gamma",) if key in options}
    return Score(name=name, **options), {name, *words}  # type: ignore[arg-type]


def test_descriptions_tell_scores_apart(share: Share) -> None:
    seen: dict[str, Score] = {}
    for seed in share.seeds():
        score, wanted = draw(random.Random(seed))
        words = score.describe()
        share.tally.tried["descriptions"] += 1
        missing = wanted - {*re.findall(r"[\w.-]+", words)}
        if missing:
            share.note("an option is not named", f"seed {seed}", f"{score!r}: {words}: {missing}")
        other = seen.setdefault(words, score)
        if other != score:
            share.note("two scores have the same words", f"seed {seed}", f"{score!r}, {other!r}: {words}")
    share.finish()
