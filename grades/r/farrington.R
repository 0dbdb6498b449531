# Judges simulated series with surveillance::farringtonFlexible, with the improved settings of Noufaily et al. 2013.
#
#   Rscript farrington.R SERIES.csv RESULTS.csv
#
# A line of SERIES.csv is a series: scenario, run, then its weekly counts. A line of RESULTS.csv is a graded week: scenario, run,
# week (from 0, of the graded ones), whether it alarms (0, 1) by the threshold methods "nbPlugin" and "muan", and the fit: the logarithm
# of the expected count, its standard error, and the dispersion.

suppressPackageStartupMessages(library(surveillance))

arguments <- commandArgs(trailingOnly = TRUE)
graded <- 49
settings <- list(
  b = 5, w = 3, reweight = TRUE, weightsThreshold = 2.58, noPeriods = 10, pastWeeksNotIncluded = 26,
  trend = TRUE, pThresholdTrend = 1, alpha = 0.01, limit54 = c(5, 4), populationOffset = FALSE,
  verbose = FALSE, glmWarnings = FALSE
)

# The function silently ignores a misspelt option, so this script refuses it.
known <- names(eval(formals(farringtonFlexible)$control))
unknown <- setdiff(c(names(settings), "range", "thresholdMethod"), known)
if (length(unknown) > 0) stop("no option of farringtonFlexible: ", paste(unknown, collapse = ", "))

# Both threshold methods share the regression, which takes nearly all of the time. So the function runs once, with
# "nbPlugin". Whenever it computes a threshold, the threshold of "muan" is recorded, too.
threshold <- surveillance:::algo.farrington.threshold.noufaily
muan <- list()
noting <- function(...) {
  arguments <- list(...)
  stopifnot(arguments$method == "nbPlugin")
  plugin <- do.call(threshold, arguments)
  arguments$method <- "muan"
  muan[[length(muan) + 1]] <<- c(do.call(threshold, arguments)$upper, arguments$predFit, arguments$predSeFit, arguments$phi)
  plugin
}
assignInNamespace("algo.farrington.threshold.noufaily", noting, "surveillance")

judge <- function(counts) {
  range <- (length(counts) - graded + 1):length(counts)
  muan <<- list()
  series <- sts(observed = counts, frequency = 52, epoch = seq_along(counts))
  result <- suppressWarnings(farringtonFlexible(series, c(settings, list(range = range, thresholdMethod = "nbPlugin"))))
  stopifnot(length(muan) == graded)
  fits <- do.call(rbind, muan)
  recent <- sapply(range, function(at) sum(counts[(at - settings$limit54[2] + 1):at]))
  plugin <- alarms(result)[, 1] %in% TRUE
  data.frame(
    plugin = as.integer(plugin),
    muan = as.integer((counts[range] > fits[, 1]) %in% TRUE & recent >= settings$limit54[1]),
    eta = signif(fits[, 2], 8), deviation = signif(fits[, 3], 8), dispersion = signif(fits[, 4], 8)
  )
}

series <- as.matrix(read.csv(arguments[1], header = FALSE))
judged <- lapply(seq_len(nrow(series)), function(row) {
  counts <- as.numeric(series[row, -(1:2)])
  data.frame(scenario = series[row, 1], run = series[row, 2], week = seq_len(graded) - 1, judge(counts))
})
results <- do.call(rbind, judged)
unfinished <- paste0(arguments[2], ".part")
write.csv(results, unfinished, row.names = FALSE, quote = FALSE)
invisible(file.rename(unfinished, arguments[2]))
