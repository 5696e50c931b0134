"""A script for R, which reads a classifier's BIF file by bnlearn and predicts the rows of a CSV file."""

from __future__ import annotations

from milpbn.network.formats.classifier_files import AnyClassifier
from milpbn.network.formats.plain_network import one_network
from milpbn.network.formats.scoring_plan import check_results

_SCRIPT = r"""# Predicts with a .bif file that `milpbn convert` wrote. It needs R and install.packages("bnlearn").
#   Rscript classifier.R classifier.bif rows.csv predictions.csv
# The rows get the predicted label and the probability of each class. A missing value is summed over; a value that
# training did not see has no factor of its own, and its children have uniform ones, as in milpbn.
files <- commandArgs(trailingOnly = TRUE)
if (length(files) != 3) stop("Give a .bif file, a .csv file of rows, and a .csv file for the predictions.")
fitted <- bnlearn::read.bif(files[1])
rows <- read.csv(files[2], check.names = FALSE, colClasses = "character", na.strings = "", fileEncoding = "UTF-8-BOM")
markers <- c(NA, "", "?", "NA", "NaN", "nan", "-NaN", "-nan", "N/A", "n/a", "NULL", "null", "None", "<NA>", "#N/A",
             "#NA", "#N/A N/A", "-1.#IND", "1.#IND", "-1.#QNAN", "1.#QNAN")

# What milpbn notes of a variable in the file: original name and labels, cuts, the class.
lines <- trimws(readLines(files[1]))
nodes <- sub("^variable (\\S+) .*", "\\1", grep("^variable ", lines, value = TRUE))
noted <- function(node, key, default) {
  start <- paste0("property milpbn_", key, " = ")
  found <- lines[cumsum(grepl("^variable ", lines)) == match(node, nodes) & startsWith(lines, start)]
  if (length(found) == 0) return(default)
  texts <- vapply(strsplit(sub(" ;$", "", substring(found, nchar(start) + 1)), ",")[[1]], utils::URLdecode, "")
  `Encoding<-`(unname(texts), "UTF-8")
}
words <- lapply(fitted, function(node) dimnames(node$prob)[[1]])
labels <- lapply(setNames(nm = nodes), function(node) noted(node, "states", words[[node]]))
target <- nodes[vapply(nodes, noted, "", "class", "no") == "yes"]

# What texts stand for: numbers (of `usual` texts only, since 01 may be a code), truth values, times; NA for others.
number_of <- function(texts, usual = FALSE) {
  form <- if (usual) "^-?(0|[1-9][0-9]*)(\\.0|\\.[0-9]*[1-9])?$"
          else "^[+-]?([0-9]+\\.?[0-9]*|\\.[0-9]+)([eE][+-]?[0-9]+)?$"
  as.numeric(ifelse(grepl(form, texts), texts, NA))
}
yes <- c("true", "True", "TRUE", "t", "T", "1", "1.0")
no <- c("false", "False", "FALSE", "f", "F", "0", "0.0", "-0", "-0.0")
truth_of <- function(texts, states) {
  bits <- number_of(states)
  if (!all(states %in% c(yes[1:5], no[1:5]))) {
    if (!all(bits %in% 0:1) || anyDuplicated(bits)) return(NA * match(texts, NA))
    texts <- ifelse(texts %in% c("t", "T", "f", "F"), NA, texts)
  }
  ifelse(texts %in% yes, 1, ifelse(texts %in% no, 0, NA))
}
time_of <- function(texts) {
  texts <- sub("T", " ", sub("^([0-9]{4}-[0-9]{2}-[0-9]{2})$", "\\1 00:00", texts))
  texts <- sub("^([^.]{16})$", "\\1:00", texts)
  known <- grepl("^[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}(\\.[0-9]{1,9})?$", texts)
  ifelse(known, sub("[.]$", "", sub("([.][0-9]*[1-9]|[.])0*$", "\\1", texts)), NA)
}
# The positions of values among states, none of a state that stands for the same as another.
same <- function(values, states) {
  states[states %in% states[duplicated(states)]] <- NA
  match(values, states, incomparables = NA)
}

# The states of a column's values: NA for a missing value, "" for one that training did not see.
states_of <- function(node) {
  texts <- trimws(rows[, noted(node, "column", noted(node, "name", node))])
  own <- labels[[node]]
  last <- noted(node, "missing_state", if (length(own) > 1 && tail(own, 1) == "?") "yes" else "no") == "yes"
  present <- if (last) head(own, -1) else own
  ends <- sub("^\\(.*, (.*)[])]$", "\\1", present)  # of intervals
  cuts <- noted(node, "cuts", if (all(ends != present)) head(ends, -1) else "nominal")
  usual <- noted(node, "numeric", if (anyNA(number_of(present))) "no" else "yes") == "no"
  k <- match(texts, present)
  at <- if (identical(cuts, "nominal")) same(number_of(texts, usual), number_of(present, usual))
        else 1 + findInterval(number_of(texts), as.numeric(setdiff(cuts, "none")), left.open = TRUE)
  k <- ifelse(is.na(k), at, k)
  k <- ifelse(is.na(k), same(truth_of(texts, present), truth_of(present, present)), k)
  k <- ifelse(is.na(k), same(time_of(texts), time_of(present)), k)
  absent <- if (last) tail(words[[node]][seq_along(own)], 1) else NA
  ifelse(is.na(k), ifelse(texts %in% markers, absent, ""), words[[node]][k])
}

posterior <- function(row) {
  hidden <- names(row)[is.na(row)]
  kept <- nodes  # a missing value without children changes nothing
  while (length(barren <- setdiff(intersect(hidden, kept), unlist(lapply(fitted[kept], `[[`, "parents")))) > 0)
    kept <- setdiff(kept, barren)
  cases <- expand.grid(words[c(target, intersect(hidden, kept))], stringsAsFactors = FALSE)
  for (v in setdiff(names(row), hidden)) cases[[v]] <- row[[v]]
  total <- numeric(nrow(cases))
  for (node in fitted[kept]) if (!(row[node$node] %in% "")) {
    unseen <- any(row[node$parents] %in% "")
    p <- if (unseen) 1 / length(labels[[node$node]]) else node$prob[as.matrix(cases[c(node$node, node$parents)])]
    total <- total + log(p)
  }
  if (max(total) == -Inf) total[] <- 0
  share <- tapply(exp(total - max(total)), factor(cases[[target]], words[[target]]), sum)
  as.vector(share / sum(share))[seq_along(labels[[target]])]
}

states <- lapply(setNames(nm = setdiff(nodes, target)), states_of)
shares <- lapply(seq_len(nrow(rows)), function(i) posterior(vapply(states, `[[`, "", i)))
shares <- matrix(unlist(shares), ncol = length(labels[[target]]), byrow = TRUE)
best <- apply(shares, 1, function(p) which(p >= max(p) - 1e-12)[1])
rows[[paste("predicted", noted(target, "name", target))]] <- labels[[target]][best]
rows[paste0("P(", labels[[target]], ")")] <- as.data.frame(shares)
write.csv(rows, files[3], row.names = FALSE, fileEncoding = "UTF-8")
"""


def classifier_to_r(classifier: AnyClassifier) -> str:
    """Return the script, which is the same for all networks; raises `InputError` if this is not one with a class."""
    one_network(classifier, "An R script").require_class()
    check_results(classifier)
    return _SCRIPT
