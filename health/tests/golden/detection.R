# Accumulated evidence, silence and spent budgets by R's densities and tails, for the tests of `Cusum`, `ln_silence` and budgets:
# writes `detection.csv` beside it.
#
#   Rscript detection.R
#
# Columns: the statistic; the counts and wholes of its windows, divided by spaces; the expected count or share, and the dispersion;
# and its values: of a cusum the score after each window, falling then rising, divided by spaces.

fall <- 0.8
rise <- 1.25
most <- 2 * log(100000)

scores <- function(evidence) Reduce(function(score, more) min(max(score + more, 0), most), evidence, 0, accumulate = TRUE)[-1]

counted <- function(x, mean, dispersion, ratio) {
  density <- function(mu) {
    if (dispersion == 1) dpois(x, mu, log = TRUE) else dnbinom(x, size = mean / (dispersion - 1), mu = mu, log = TRUE)
  }
  density(ratio * mean) - density(mean)
}

shared <- function(x, n, p, dispersion, ratio) (dbinom(x, n, p * ratio, log = TRUE) - dbinom(x, n, p, log = TRUE)) / dispersion

join <- function(values, ...) paste(format(values, digits = 17, trim = TRUE, ...), collapse = " ")
line <- function(statistic, counts, wholes, expected, dispersion, values) {
  paste(statistic, join(counts, scientific = FALSE), join(wholes, scientific = FALSE), expected, dispersion, join(values), sep = ",")
}

set.seed(16)
lines <- "statistic,counts,wholes,expected,dispersion,values"
for (expected in c(0.5, 20, 1000)) {
  for (dispersion in c(1, 1.5, 12)) {
    # A decline, a rise, and what is usual.
    means <- expected * rep(c(0.7, 1.4, 1), each = 20)
    x <- rpois(60, means)
    values <- unlist(lapply(c(fall, rise), function(ratio) scores(counted(x, expected, dispersion, ratio))))
    lines <- c(lines, line("cusum", x, NA, expected, dispersion, values))
    silence <- if (dispersion == 1) dpois(0, expected, log = TRUE) else {
      dnbinom(0, size = expected / (dispersion - 1), mu = expected, log = TRUE)
    }
    lines <- c(lines, line("silence", NA, NA, expected, dispersion, silence))
  }
}
for (share in c(0.001, 0.05, 0.4)) {
  for (dispersion in c(1, 6)) {
    n <- rpois(60, 400)
    x <- rbinom(60, n, share * rep(c(0.7, 1.4, 1), each = 20))
    values <- unlist(lapply(c(fall, rise), function(ratio) scores(shared(x, n, share, dispersion, ratio))))
    lines <- c(lines, line("cusum", x, n, share, dispersion, values))
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
