# Levels by R's glm (quasi-Poisson), for the tests of `level`: writes `levels.csv` beside it.
#
#   Rscript levels.R
#
# A line is a stream: its case, whether it has wholes, the period of its seasons, how many seasons and neighbours teach, its counts
# and wholes (oldest first, divided by spaces), and what R expects of the window after the last one: events per whole, the
# dispersion, and how many windows taught it. R is told nothing of weights: the draws have no window that is far from its level, but
# for those of the case `incident`, which R does not see.

period <- 12
neighbours <- 1

taught <- function(length, seasons) {
  slots <- length + 1 - period * seq_len(seasons)
  lapply(slots, function(slot) (slot - neighbours):(slot + neighbours))
}

# The largest Anscombe residual, in standard deviations.
farthest <- function(fit, dispersion) {
  y <- fit$y
  mu <- fitted(fit)
  max(abs(1.5 * (y^(2 / 3) - mu^(2 / 3)) / mu^(1 / 6)) / sqrt(dispersion))
}

# The dispersion by the median over seasons, around the median rate: where a fit that is not led astray by incidents begins.
of_seasons <- function(fit, seasons) {
  season <- rep(seq_len(seasons), each = 2 * neighbours + 1)
  parts <- tapply(fit$y, season, sum)
  wholes <- tapply(exp(if (is.null(fit$offset)) 0 * fit$y else fit$offset), season, sum)
  means <- wholes * median(parts / wholes)
  median((parts - means)^2 / means) / qchisq(0.5, 1)
}

# How significant a trend over seasons is: the square of a normal number.
trend <- function(fit, ago) {
  with_trend <- glm(fit$y ~ ago, offset = fit$offset, family = quasipoisson)
  (fit$deviance - with_trend$deviance) / summary(fit)$dispersion
}

steady <- function(seasons, mean, size, has_wholes) {
  length <- period * seasons + neighbours
  repeat {
    wholes <- if (has_wholes) rpois(length, 5 * mean) else rep(1, length)
    means <- if (has_wholes) wholes / 5 else rep(mean, length)
    counts <- rnbinom(length, mu = means, size = size)
    rows <- unlist(taught(length, seasons))
    fit <- glm(counts[rows] ~ 1 + offset(log(wholes[rows])), family = quasipoisson)
    dispersion <- summary(fit)$dispersion
    # The dispersion of a count is not below that of Poisson, and that of a share not below that of a binomial.
    ago <- rep(seq_len(seasons), each = 2 * neighbours + 1)
    if (trend(fit, ago) > 4) next
    if (dispersion < 1.1 || farthest(fit, min(dispersion, of_seasons(fit, seasons))) > 2.3) next
    return(list(counts = counts, wholes = wholes, expected = exp(coef(fit)[[1]]), dispersion = dispersion, used = length(rows)))
  }
}

# Whole seasons grow by a factor: the fit is over seasons, as neighbours in a season are not independent.
growing <- function(seasons, mean, growth) {
  length <- period * seasons + neighbours
  ago <- (length - seq_len(length)) %/% period + 1
  repeat {
    counts <- rpois(length, mean * growth^-ago)
    parts <- vapply(taught(length, seasons), function(rows) sum(counts[rows]), 0)
    windows <- rep(2 * neighbours + 1, seasons)
    ago_of <- seq_len(seasons)
    fit <- glm(parts ~ ago_of + offset(log(windows)), family = quasipoisson)
    expected <- exp(coef(fit)[[1]])
    return(list(counts = counts, wholes = rep(1, length), expected = expected, dispersion = NA, used = sum(windows)))
  }
}

incident <- function(seasons, mean, size, times) repeat {
  stream <- steady(seasons, mean, size, FALSE)
  length <- length(stream$counts)
  rows <- taught(length, seasons)
  hit <- sample(seasons, 1)
  left <- unlist(rows[-hit])
  fit <- glm(stream$counts[left] ~ 1, family = quasipoisson)
  if (trend(fit, rep(seq_len(seasons)[-hit], each = 2 * neighbours + 1)) > 4) next
  stream$counts[rows[[hit]]] <- round(stream$counts[rows[[hit]]] * times)
  stream$expected <- exp(coef(fit)[[1]])
  stream$dispersion <- NA
  return(stream)
}

line <- function(case, seasons, has_wholes, stream) {
  number <- function(x) if (is.na(x)) "" else format(x, digits = 17)
  paste(case, has_wholes, period, seasons, neighbours, paste(stream$counts, collapse = " "), paste(stream$wholes, collapse = " "),
        number(stream$expected), number(stream$dispersion), stream$used, sep = ",")
}

set.seed(15)
lines <- c("case,has_wholes,period,seasons,neighbours,counts,wholes,expected,dispersion,used")
for (seasons in 4:8) {
  for (mean in c(200, 2000)) {
    lines <- c(lines, line("steady", seasons, FALSE, steady(seasons, mean, mean / 2, FALSE)))
    lines <- c(lines, line("share", seasons, TRUE, steady(seasons, mean, mean / 3, TRUE)))
    for (times in c(0.1, 6)) {
      lines <- c(lines, line("incident", seasons, FALSE, incident(seasons, mean, mean, times)))
    }
  }
}
for (seasons in 5:8) {
  for (growth in c(0.9, 1.04, 1.15)) {
    lines <- c(lines, line("growing", seasons, FALSE, growing(seasons, 5000, growth)))
  }
}
writeLines(lines, "levels.csv")
