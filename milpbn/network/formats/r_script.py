"""A script for R, which reads a classifier's BIF file by bnlearn and predicts the rows of a CSV file."""

from __future__ import annotations

from milpbn.network.formats.classifier_files import AnyClassifier
from milpbn.network.formats.plain_network import one_network

_SCRIPT = r"""# Predicts with a .bif file that `milpbn convert` wrote. It needs R and install.packages("bnlearn").
#   Rscript classifier.R classifier.bif rows.csv predictions.csv
# The rows get the predicted label and the probability of each class. A missing value is summed over; a value that
# training did not see has no factor of its own, and its children have uniform ones, as in milpbn.
files <- commandArgs(trailingOnly = TRUE)
if (length(files) != 3) stop("Give a .bif file, a .csv file of rows, and a .csv file for the predictions.")
fitted <- bnlearn::read.bif(files[1])
rows <- read.csv(files[2], check.names = FALSE, colClasses = "character", na.strings = character(0),
                 fileEncoding = "UTF-8-BOM")
missing <- c("", "?", "NA", "NaN", "nan", "N/A", "n/a", "NULL", "null", "None", "<NA>", "#N/A", "#NA")

# What milpbn notes of a variable in the file: original names and labels, cuts, the class.
lines <- trimws(readLines(files[1]))
variable <- cumsum(grepl("^variable ", lines))
nodes <- sub("^variable (\\S+) .*", "\\1", grep("^variable ", lines, value = TRUE))
noted <- function(node, key, default) {
  start <- paste0("property milpbn_", key, " = ")
  found <- lines[variable == match(node, nodes) & startsWith(lines, start)]
  if (length(found) == 0) return(default)
  texts <- vapply(strsplit(sub(" ;$", "", substring(found, nchar(start) + 1)), ",")[[1]], utils::URLdecode, "")
  Encoding(texts) <- "UTF-8"
  unname(texts)
}
words <- lapply(fitted, function(node) dimnames(node$prob)[[1]])
labels <- lapply(setNames(nm = nodes), function(node) noted(node, "states", words[[node]]))
target <- nodes[vapply(nodes, noted, "", "class", "no") == "yes"]
if (length(target) != 1) stop("The file does not say which variable is the class.")

# The states of a column's values: NA for a missing value, "" for one that training did not see.
states_of <- function(node) {
  column <- noted(node, "column", noted(node, "name", node))
  if (!(column %in% names(rows))) stop("The rows have no column ", column, ".")
  texts <- trimws(rows[[column]])
  number <- suppressWarnings(as.numeric(texts))
  own <- labels[[node]]
  last <- if (length(own) > 1 && own[length(own)] == "?") "yes" else "no"
  last <- noted(node, "missing_state", last) == "yes"
  present <- if (last) own[-length(own)] else own
  k <- match(texts, present)
  if (all(tolower(present) %in% c("true", "false"))) k <- match(tolower(texts), tolower(present))
  interval <- "^\\(.*, (.*)[])]$"
  ends <- if (all(grepl(interval, present))) sub(interval, "\\1", present)[-length(present)] else "nominal"
  cuts <- noted(node, "cuts", ends)
  if (identical(cuts, "nominal")) {
    equal <- match(number, suppressWarnings(as.numeric(present)), incomparables = NA)
    k <- ifelse(is.na(k), equal, k)
  } else {
    cuts <- as.numeric(setdiff(cuts, "none"))
    k <- ifelse(is.na(k) & !is.na(number), 1 + findInterval(number, cuts, left.open = TRUE), k)
  }
  ifelse(is.na(k), ifelse(texts %in% missing, if (last) words[[node]][length(own)] else NA, ""), words[[node]][k])
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
    family <- as.matrix(cases[c(node$node, node$parents)])
    unseen <- any(row[node$parents] %in% "")
    total <- total + log(if (unseen) 1 / length(labels[[node$node]]) else node$prob[family])
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
    return _SCRIPT
