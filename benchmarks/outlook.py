"""How often forecasts of the time to a gap hold: made from the beginnings of recorded runs, compared with their ends.

    python benchmarks/outlook.py

Every native run of `results/gaps/` of a minute and an hour is cut at 4, 5.7, 8, ... seconds; the bounds that it reached
after 1, 2, 3, ... doublings of this time are forecast from what was known then.
"""

from __future__ import annotations

import gzip
import json
import statistics
from collections import defaultdict

import numpy as np
from common import RESULTS

from milpbn.solving.outlook import forecast

#: Seconds of the first forecast, and doublings ahead.
FIRST, DOUBLINGS = 4.0, (1, 2, 3, 4, 6, 8)


def main() -> None:
    """Print, for each number of doublings, how many forecasts were made, how many held, and how far off they were."""
    asked: dict[int, int] = defaultdict(int)
    held: dict[int, list[bool]] = defaultdict(list)
    off: dict[int, list[float]] = defaultdict(list)
    for folder in ("hour", "minute"):
        text = gzip.decompress((RESULTS / "gaps" / folder / "cells.jsonl.gz").read_bytes()).decode()
        for run in map(json.loads, text.splitlines()):
            if run["backend"]["name"] != "native":
                continue
            trace = [(seconds, objective, bound) for seconds, objective, bound in run["trace"]]
            times = np.array([seconds for seconds, _, bound in trace if bound is not None])
            bounds = np.minimum.accumulate([bound for *_, bound in trace if bound is not None])
            for half in range(int(2 * np.log2(times[-1] / FIRST))):
                now = FIRST * 2 ** (half / 2)
                known = [point for point in trace if point[0] <= now]
                for ahead in DOUBLINGS:
                    then = now * 2**ahead
                    if then > times[-1] or not known or known[-1][1] is None:
                        continue
                    asked[ahead] += 1
                    bound = bounds[np.searchsorted(times, then, side="right") - 1]
                    made = forecast(known, now, 1 - known[-1][1] / bound)
                    if made is not None:
                        took = times[np.argmax(bounds <= bound)]
                        held[ahead].append(made.least <= took <= made.most)
                        off[ahead].append(abs(float(np.log2(made.seconds / took))))
    print("doublings  asked  made  held   median error in doublings")
    for ahead in DOUBLINGS:
        made = held[ahead]
        if made:
            share = f"{100 * sum(made) / len(made):3.0f} %"
            print(f"{ahead:9}  {asked[ahead]:5}  {len(made):4}  {share}  {statistics.median(off[ahead]):.2f}")
    made = [one for of in held.values() for one in of]
    print(f"      all  {sum(asked.values()):5}  {len(made):4}  {100 * sum(made) / len(made):3.0f} %")


if __name__ == "__main__":
    main()
