# Silence and spent budgets by R's densities and tails, for the tests of `ln_silence` and budgets. Writes `detection.csv` to
# the current folder.
#
#   Rscript detection.R
#
# Columns: the statistic; the counts and wholes of its windows, divided by spaces; the expected count or share, and the dispersion;
# and its values, divided by spaces.

join <- function(values, ...) paste(format(values, digits = 17, trim = TRUE, ...), collapse = " ")
line <- function(statistic, counts, wholes, expected, dispersion, values) {
  paste(statistic, join(counts, scientific = FALSE), join(wholes, scientific = FALSE), expected, dispersion, join(values), sep = ",")
}

lines <- "statistic,counts,wholes,expected,dispersion,values"
for (expected in c(0.5, 20, 1000)) {
  for (dispersion in c(1, 1.5, 12)) {
    silence <- if (dispersion == 1) dpois(0, expected, log = TRUE) else {
      dnbinom(0, size = expected / (dispersion - 1), mu = expected, log = TRUE)
    }
    lines <- c(lines, line("silence", NA, NA, expected, dispersion, silence))
  }
}
for (budget in c(0.0001, 0.01)) {
  for (n in c(100, 10000, 1000000)) {
    for (times in c(0.5, 1, 6)) {
      x <- round(n * budget * times)
      lines <- c(lines, line("budget", x, n, budget, 1, c(x / n / budget, pbinom(x - 1, n, budget, lower.tail = FALSE, log.p = TRUE))))
    }
  }
}
writeLines(lines, "detection.csv")
