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
markers <- c(NA, "", "?", "NA", "NaN", "nan", "N/A", "n/a", "NULL", "null", "None", "<NA>", "#N/A", "#NA")

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

# The states of a column's values: NA for a missing value, "" for one that training did not see.
states_of <- function(node) {
  texts <- trimws(rows[, noted(node, "column", noted(node, "name", node))])
  number <- suppressWarnings(as.numeric(texts))
  own <- labels[[node]]
  last <- noted(node, "missing_state", if (length(own) > 1 && tail(own, 1) == "?") "yes" else "no") == "yes"
  present <- if (last) head(own, -1) else own
  bits <- all(tolower(present) %in% c("true", "false"))
  k <- if (bits) match(tolower(texts), tolower(present)) else match(texts, present)
  ends <- sub("^\\(.*, (.*)[])]$", "\\1", present)  # of intervals
  cuts <- noted(node, "cuts", if (all(ends != present)) head(ends, -1) else "nominal")
  at <- if (identical(cuts, "nominal")) match(number, suppressWarnings(as.numeric(present)), incomparables = NA)
        else 1 + findInterval(number, as.numeric(setdiff(cuts, "none")), left.open = TRUE)
  k <- ifelse(is.na(k), at, k)
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
