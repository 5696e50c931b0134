"""A script for R, which hands the network to bnlearn as a BIF file and predicts the rows of a CSV file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from milpbn.data.dataset import Variable
from milpbn.data.labels import MISSING_MARKERS
from milpbn.data.variables import states_of
from milpbn.errors import InputError
from milpbn.network.formats.bif import bif_text
from milpbn.network.formats.classifier_files import AnyClassifier
from milpbn.network.formats.plain_network import one_network, plain_nodes
from milpbn.network.formats.words import Spelling, in_words
from milpbn.version import __version__

# bnlearn 4 and 5 take names of letters, digits and underscores only (`\w`), and no parentheses in labels.
_SPELLING = Spelling(keywords=frozenset(("network", "variable", "probability", "property", "type", "table")))

_SCRIPT = r"""# A Bayesian network classifier of milpbn @VERSION@. It needs R 4.0 and install.packages("bnlearn").
#
#   Rscript classifier.R rows.csv predictions.csv
#
# The rows get columns with the predicted label and the probability of each class. In R, source() this file and call
# predict_rows(rows), where the columns of rows are text. Empty cells and NA are missing values, which are summed over.
network <- r"---(@NETWORK@)---"
target <- @TARGET@
classes <- @CLASSES@
missing_markers <- @MARKERS@
# By node: its column, its states in the network, texts of values with the numbers of their states, cuts or the numbers
# in each state, and the number of the state of missing values (0: none).
columns <- list(@COLUMNS@)

path <- tempfile(fileext = ".bif")
writeLines(network, path)
fitted <- bnlearn::read.bif(path)
invisible(file.remove(path))

# The states of values: NA for a missing value, "" for one that training did not see.
states_of <- function(values, about) {
  texts <- trimws(values)
  texts[is.na(texts)] <- ""
  k <- about$codes[match(texts, about$texts)]
  plain <- grepl("^[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?$", texts)
  number <- rep(NA_real_, length(texts))
  number[plain] <- as.numeric(texts[plain])
  if (about$cut) {
    other <- is.na(k) & plain
    k[other] <- 1 + findInterval(number[other], about$cuts, left.open = TRUE)
  }
  for (i in seq_along(about$low))
    k[which(is.na(k) & number >= about$low[i] & number <= about$high[i])] <- i
  absent <- is.na(k) & texts %in% missing_markers
  if (about$missing > 0) k[absent] <- about$missing
  found <- about$states[k]
  found[is.na(k) & !absent] <- ""
  found
}

# P(class | a row's states). A missing value is summed over; without children that count it changes nothing. A value
# that training did not see has no factor of its own, and its children have uniform ones.
posterior <- function(row) {
  node <- @CLASS_NODE@
  hidden <- names(row)[is.na(row)]
  kept <- bnlearn::nodes(fitted)
  repeat {
    parents <- unlist(lapply(kept, function(v) fitted[[v]]$parents))
    barren <- setdiff(intersect(hidden, kept), parents)
    if (length(barren) == 0) break
    kept <- setdiff(kept, barren)
  }
  summed <- c(node, intersect(hidden, kept))
  levels <- lapply(setNames(nm = summed), function(v) dimnames(fitted[[v]]$prob)[[1]])
  if (prod(lengths(levels)) > 1e6) stop("A row has too many missing values with children.")
  cases <- expand.grid(levels, stringsAsFactors = FALSE)
  for (v in setdiff(names(row), hidden)) cases[[v]] <- row[[v]]
  total <- numeric(nrow(cases))
  for (v in kept) if (!(row[v] %in% "")) {
    family <- c(v, fitted[[v]]$parents)
    unseen <- any(row[family[-1]] %in% "")
    p <- if (unseen) 1 / about_states[[v]] else fitted[[v]]$prob[as.matrix(cases[family])]
    total <- total + log(p)
  }
  if (max(total) == -Inf) total[] <- 0
  share <- tapply(exp(total - max(total)), factor(cases[[node]], levels[[node]]), sum)[seq_along(classes)]
  as.vector(share / sum(share))
}
about_states <- @SIZES@

predict_rows <- function(rows) {
  lacking <- setdiff(vapply(columns, function(about) about$column, ""), names(rows))
  if (length(lacking) > 0) stop("The rows have no column ", lacking[1], ".")
  states <- lapply(columns, function(about) states_of(as.character(rows[[about$column]]), about))
  shares <- vapply(seq_len(nrow(rows)), function(i) posterior(vapply(states, function(s) s[i], "")),
                   numeric(length(classes)))
  shares <- matrix(shares, ncol = length(classes), byrow = TRUE, dimnames = list(NULL, paste0("P(", classes, ")")))
  rows[[paste("predicted", target)]] <- classes[apply(shares, 1, function(p) which(p >= max(p) - 1e-12)[1])]
  cbind(rows, shares)
}

arguments <- commandArgs(trailingOnly = TRUE)
if (!interactive() && length(arguments) == 2) {
  rows <- read.csv(arguments[1], check.names = FALSE, colClasses = "character", na.strings = character(0),
                   fileEncoding = "UTF-8-BOM")
  write.csv(predict_rows(rows), arguments[2], row.names = FALSE, fileEncoding = "UTF-8")
}
"""


def classifier_to_r(classifier: AnyClassifier) -> str:
    """Return the script that predicts with a classifier in R, in ASCII characters.

    Values are matched by the rule of `milpbn.data.labels`, as far as `classifier_to_sql` does. Raises `InputError` if
    the classifier is not one network with a class, or a name or label holds the character NUL, which R cannot hold.
    """
    network = one_network(classifier, "An R script")
    network.require_class()
    nodes = in_words(plain_nodes(network, "An R script"), _SPELLING)
    about = [
        f"  {_text(node.name)} = {_about(variable, node.states)}"
        for node, variable in zip(nodes[:-1], network.variables, strict=False)
    ]
    sizes = [f"{_text(node.name)} = {v.n_states}" for node, v in zip(nodes, network.variables, strict=True)]
    filled = {
        "VERSION": __version__,
        "NETWORK": bif_text(nodes),
        "TARGET": _text(network.variables[-1].name),
        "CLASSES": _vector(map(_text, network.variables[-1].states)),
        "MARKERS": _vector(map(_text, sorted(MISSING_MARKERS))),
        "COLUMNS": "\n" + ",\n".join(about) + "\n",
        "CLASS_NODE": _text(nodes[-1].name),
        "SIZES": f"list({', '.join(sizes)})",
    }
    head, *parts = _SCRIPT.split("@")
    pieces = [filled.get(part, part) for part in parts]
    return head + "".join(pieces)


def _about(variable: Variable, words: Sequence[str]) -> str:
    """Return what the script knows of a column."""
    known = states_of(variable)
    texts = [(text, code + 1) for code, own in enumerate(known.spellings()) for text in own]
    ranges = (
        [] if variable.cuts is not None or not variable.numeric or known.are_truth_values else known.ranges
    )
    low, high = (_vector("NA" if r is None else _number(r[end]) for r in ranges) for end in (0, 1))
    return (
        f"list(column = {_text(variable.raw_column)}, states = {_vector(map(_text, words))},\n"
        f"    texts = {_vector(_text(text) for text, _ in texts)}, codes = {_vector(str(k) for _, k in texts)},\n"
        f"    cut = {'FALSE' if variable.cuts is None else 'TRUE'}, "
        f"cuts = {_vector(map(_number, variable.cuts or ()))}, low = {low}, high = {high},\n    missing = {variable.n_states if variable.missing_state else 0})"
    )


def _vector(parts: Iterable[str]) -> str:
    return f"c({', '.join(parts)})"


def _number(value: float) -> str:
    return repr(float(value)).replace("inf", "Inf")


def _text(text: str) -> str:
    """Return text as a literal of R in ASCII characters."""
    if "\0" in text:
        raise InputError(
            f"The name or label {text!r} holds the character NUL, which R cannot hold; rename it."
        )
    plain = {'"': '\\"', "\\": "\\\\"}
    return '"' + "".join(plain.get(c, c) if " " <= c <= "~" else f"\\U{ord(c):08x}" for c in text) + '"'
