"""A Bayesian network classifier in one file: no packages are needed, only Python 3.8 or later.

    predict_proba({"column": value, ...})    returns {class: probability}
    predict({"column": value, ...})          returns the class
    python FILE < rows.csv > predicted.csv   adds both to the rows of a table

A column that a row lacks is missing, as None, NaN and texts such as NA are. The probabilities of all states that a
missing value may have are summed. A value that training never saw counts as none of the states.
"""

# The next lines are replaced by those of a classifier.
TARGET: "str" = ""
CLASSES: "tuple" = ()
MARKERS: "frozenset" = frozenset()
DECISION: "tuple | None" = None
NETWORKS: "list[dict]" = []
# End of the lines that are replaced.

E, UNKNOWN, MISSING = 2.718281828459045, -1, -2
#: Magnitude up to which floating-point numbers hold every integer.
MAX_EXACT = 2.0**53 - 1


def predict_proba(row: "dict") -> "dict":
    """Return the probability of each class, given the values of a row by the names of columns."""
    shares = [_posterior(network, row) for network in NETWORKS]
    return {label: sum(share[c] for share in shares) / len(shares) for c, label in enumerate(CLASSES)}


def predict(row: "dict") -> "object":
    """Return the most probable class, or the answer of least expected cost if the classifier has costs."""
    return _chosen(list(predict_proba(row).values()))


def _chosen(shares: "list") -> "object":
    if DECISION is None:
        return CLASSES[shares.index(max(shares))]
    costs, tolerance, silent = DECISION
    expected = [sum(p * cost[k] for p, cost in zip(shares, costs)) for k in range(len(costs[0]))]
    least = min(expected[: len(CLASSES)])
    if silent is not None and expected[-1] < least - tolerance:
        return silent
    return next(label for label, cost in zip(CLASSES, expected) if cost <= least + tolerance)


def _posterior(network: "dict", row: "dict") -> "list":
    codes = {i: _code(row.get(rule[0]), *rule) for i, rule in network["values"].items()}
    numbers: list = []
    for i, logs, sources in network["numbers"]:
        if sources:
            states = range(len(logs) - 1) if codes[i] == MISSING else [codes[i]]
            numbers.append(_log_of_sum([logs[s] + sum([numbers[k] for k in sources[s]]) for s in states]))
        else:
            numbers.append(logs[codes[i]])
    # A row that is impossible in every class has equal probabilities.
    joint = [max(log + sum([numbers[k] for k in places]), -1e99) for log, places in network["classes"]]
    shares = [E ** (log - max(joint)) for log in joint]
    return [share / sum(shares) for share in shares]


def _log_of_sum(logs: "list") -> "float":
    """Return the logarithm of the sum of exponentials, by Halley's method, since nothing is imported."""
    largest, log = max(logs), 0.0
    total = sum([E ** (each - largest) for each in logs])
    for _ in range(20):  # the error is cubed; far from the solution, a step is almost 2
        power = E**log
        log += 2.0 * (total - power) / (total + power)
    return largest + log


def _code(
    value: "object", column: "str", texts: "dict", ranges: "list", kind: "str", missing: "int"
) -> "int":
    """Return the position of a value's state; `UNKNOWN` if there is none, `MISSING` if it may be any."""
    if hasattr(value, "total_seconds") and value == value:  # a duration
        value = value.total_seconds()
    text = (value.decode(errors="backslashreplace") if isinstance(value, bytes) else str(value)).strip()
    if value is None or (text in ("nan", "NaN", "NaT", "<NA>") and not isinstance(value, (str, bytes))):
        return missing
    number = _number(text)
    if number is not None and not isinstance(value, (str, bytes)):
        number = float(value)  # type: ignore[arg-type]  # it is a number
        text = _label(number) if abs(number) <= MAX_EXACT else text
    if text in texts:
        return texts[text]
    if text in MARKERS:
        return missing
    if kind == "continuous" and number is None:
        raise ValueError("The value " + repr(value) + " of " + repr(column) + " is not a number.")
    if number is None:
        return UNKNOWN
    return next((code for low, high, code in ranges if low <= number <= high), UNKNOWN)


def _number(text: "str") -> "float | None":
    """Return the finite number that a text stands for; None for other texts."""
    try:
        number = float(text) if text and not text.strip("+-.0123456789eE") else None
    except ValueError:
        return None
    return number if number is not None and abs(number) < float("inf") else None


def _label(number: "float") -> "str":
    return str(int(number)) if number == int(number) else repr(number)


def _text(label: "object") -> "str":
    return _label(label) if isinstance(label, float) and abs(label) <= MAX_EXACT else str(label)


def _main() -> "None":
    import csv  # only a program needs these modules
    import sys

    # Excel begins its files with a byte order mark; the encoding and line ends of Windows are others.
    sys.stdin.reconfigure(encoding="utf-8-sig", newline="")  # type: ignore[union-attr]  # a stream of text
    sys.stdout.reconfigure(encoding="utf-8", newline="")  # type: ignore[union-attr]
    try:
        csv.field_size_limit(2**30)
        table = csv.DictReader(sys.stdin)
        written = csv.writer(sys.stdout)
        names = list(table.fieldnames or [])
        needed = {rule[0] for network in NETWORKS for rule in network["values"].values()}
        absent = sorted(needed - {*names})
        if absent:
            sys.exit("The table lacks the column " + repr(absent[0]) + ".")
        if len({*names}) < len(names):
            sys.exit("The first line of the table has a name twice.")
        written.writerow([*names, "predicted " + TARGET, *("P(" + _text(label) + ")" for label in CLASSES)])
        for place, row in enumerate(table, start=1):
            if None in row or None in row.values():  # a comma without quotes would shift the other cells
                sys.exit("Row " + str(place) + " has another number of cells than the first line.")
            try:
                shares = list(predict_proba(row).values())
            except ValueError as error:
                sys.exit("Row " + str(place) + ": " + str(error))
            written.writerow([*(row[name] for name in names), _text(_chosen(shares)), *shares])
    except UnicodeDecodeError:
        sys.exit("The table is not UTF-8 text; save it in UTF-8.")
    except BrokenPipeError:
        sys.stdout = None  # its reader, such as head, has enough


if __name__ == "__main__":
    _main()
