"""Makes the golden values of this folder: `python make.py` (needs scipy, mpmath, and R on the path).

mpmath sums each tail with 55 digits, term by term, which none of the tested algorithms does. The
values of scipy and R are listed next to it. For the beta-binomial distribution, scipy has no
logarithms far out, and R has none at all. The tests compare with all three.
"""

import csv
import math
import subprocess
from pathlib import Path

import mpmath
from mpmath import mp, mpf
from scipy import special, stats

mp.dps = 55
HERE = Path(__file__).parent


def outward(start, ratio, last, sign):
    """The sum of all terms from the first one on, divided by the first one."""
    total = term = mpf(1)
    k = start
    while k != last:
        factor = ratio(k) if sign > 0 else 1 / ratio(k - 1)
        k += sign
        term *= factor
        total += term
        if factor < 1 and term * factor / (1 - factor) < total * mpf(10) ** -30:
            break
    return total


def tails(k, mean, log_mass, ratio, end):
    """ln P(X <= k) and ln P(X >= k).

    One side is summed. The other side is 1 minus that sum, if this keeps enough digits; otherwise
    it is summed, too.
    """
    at = log_mass(k)
    mass = mpmath.exp(at)
    side = -1 if k <= mean else 1
    sums = {side: outward(k, ratio, 0 if side < 0 else end, side)}
    if 1 - mass * sums[side] < mpf(10) ** -25:
        sums[-side] = outward(k, ratio, 0 if side > 0 else end, -side)
        strictly = mass * (sums[-side] - 1)
        logs = {side: mpmath.log1p(-strictly), -side: at + mpmath.log(sums[-side])}
    else:
        logs = {side: at + mpmath.log(sums[side]), -side: mpmath.log1p(-mass * (sums[side] - 1))}
    return [logs[-1], logs[1]]


def poisson(k, mean):
    m = mpf(mean)
    return tails(k, m, lambda k: k * mpmath.log(m) - m - mpmath.loggamma(k + 1), lambda k: m / (k + 1), -1)


def negative_binomial(k, mean, dispersion):
    m, excess = mpf(mean), mpf(dispersion) - 1
    size, q = m / excess, excess / (1 + excess)

    def log_mass(k):
        choose = mpmath.loggamma(k + size) - mpmath.loggamma(size) - mpmath.loggamma(k + 1)
        return choose + size * mpmath.log(1 - q) + k * mpmath.log(q)

    return tails(k, m, log_mass, lambda k: (k + size) * q / (k + 1), -1)


def log_choose(n, k):
    return mpmath.loggamma(n + 1) - mpmath.loggamma(k + 1) - mpmath.loggamma(n - k + 1)


def binomial(k, n, p):
    p = mpf(p)
    q = 1 - p
    return tails(
        k,
        n * mpf(p),
        lambda k: log_choose(n, k) + k * mpmath.log(p) + (n - k) * mpmath.log(q),
        lambda k: mpf(n - k) / (k + 1) * p / q,
        n,
    )


def beta_parameters(n, p, dispersion):
    size = (n - mpf(dispersion)) / (mpf(dispersion) - 1)
    return size * mpf(p), size * (1 - mpf(p))


def beta_binomial(k, n, p, dispersion):
    a, b = beta_parameters(n, p, dispersion)

    def log_beta(a, b):
        return mpmath.loggamma(a) + mpmath.loggamma(b) - mpmath.loggamma(a + b)

    return tails(
        k,
        n * mpf(p),
        lambda k: log_choose(n, k) + log_beta(k + a, n - k + b) - log_beta(a, b),
        lambda k: mpf(n - k) / (k + 1) * (k + a) / (n - k - 1 + b),
        n,
    )


def around(mean, deviation, end=None):
    """Counts from far below the mean to far above it."""
    steps = [-1e9, -40, -15, -6, -3, -1.5, -0.5, 0, 0.5, 1.5, 3, 6, 15, 40, 200]
    counts = {max(0, round(mean + step * deviation)) for step in steps} | {0, 1, 2}
    return sorted({count if end is None else min(count, end) for count in counts})


def cases():
    """All cases: name, x, n, mean or p, dispersion."""
    for mean in (1e-9, 0.02, 0.5, 3.0, 20.0, 137.5, 2500.0, 1e5, 3e7):
        for k in around(mean, math.sqrt(mean)):
            yield "poisson", k, 0, mean, 1.0
        for dispersion in (1.0000001, 1.3, 4.0, 60.0, 3000.0):
            if mean * dispersion > 1e8 or mean / dispersion > 1e8:
                continue
            for k in around(mean, math.sqrt(mean * dispersion)):
                yield "negative_binomial", k, 0, mean, dispersion
    for n in (1, 2, 7, 100, 5000, 200_000, 10_000_000):
        for p in (1e-6, 0.003, 0.1, 0.5, 0.97):
            for k in around(n * p, math.sqrt(n * p * (1 - p)), n):
                yield "binomial", k, n, p, 1.0
            for dispersion in (1.001, 1.5, 5.0, 80.0, 2000.0):
                if dispersion >= n or n < 2 or n > 300_000 and dispersion > 100:
                    continue
                for k in around(n * p, math.sqrt(n * p * (1 - p) * dispersion), n):
                    yield "beta_binomial", k, n, p, dispersion


EXACT = {
    "poisson": lambda k, n, m, d: poisson(k, m),
    "negative_binomial": lambda k, n, m, d: negative_binomial(k, m, d),
    "binomial": lambda k, n, m, d: binomial(k, n, m),
    "beta_binomial": lambda k, n, m, d: beta_binomial(k, n, m, d),
}


def scipy_tails(name, k, n, m, d):
    if name == "poisson":
        frozen = stats.poisson(m)
    elif name == "negative_binomial":
        frozen = stats.nbinom(m / (d - 1), 1 / d)
    elif name == "binomial":
        frozen = stats.binom(n, m)
    else:
        a, b = beta_parameters(n, m, d)
        if n > 5000:
            return ["", ""]
        frozen = stats.betabinom(n, float(a), float(b))
    return [shown(frozen.logcdf(k)), shown(frozen.logsf(k - 1))]


def r_tails(rows):
    """ln p from R: ppois, pnbinom and pbinom with log.p."""
    calls = []
    for name, k, n, m, d in rows:
        call = {
            "poisson": f"ppois(%s, {m!r}, lower.tail=%s, log.p=TRUE)",
            "negative_binomial": f"pnbinom(%s, size={m!r}/({d!r}-1), mu={m!r}, lower.tail=%s, log.p=TRUE)",
            "binomial": f"pbinom(%s, {n}, {m!r}, lower.tail=%s, log.p=TRUE)",
            "beta_binomial": None,
        }[name]
        for x, lower in ((k, "TRUE"), (k - 1, "FALSE")):
            calls.append(f"cat(sprintf('%.17g\\n', {call % (x, lower)}))" if call else "cat('\\n')")
    out = subprocess.run(["Rscript", "-"], input="\n".join(calls), capture_output=True, text=True, check=True).stdout
    lines = out.split("\n")
    return [lines[2 * i : 2 * i + 2] for i in range(len(rows))]


def shown(value):
    value = float(value)
    return repr(value) if math.isfinite(value) else ""


def write(name, header, rows):
    with open(HERE / name, "w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([header, *rows])


def make_tails():
    rows = list(cases())
    by_r = r_tails(rows)
    table = []
    for row, r in zip(rows, by_r, strict=True):
        name, k, n, m, d = row
        exact = [repr(float(value)) for value in EXACT[name](k, n, m, d)]
        r = [shown(value) if value else "" for value in r]
        table.append([name, k, n, repr(m), repr(d), *exact, *scipy_tails(*row), *r])
    header = ["distribution", "x", "n", "mean_or_p", "dispersion", "low", "high", "scipy_low", "scipy_high", "r_low", "r_high"]
    write("tails.csv", header, table)


def make_normal():
    zs = [-60.0, -38.5, -12.0, -5.0, -1.0, -0.3, 0.0, 1e-9, 0.5, 1.0, 2.5, 4.999, 5.0, 7.25, 30.0, 38.0, 100.0, 1e5]
    write("normal_tail.csv", ["z", "ln_tail"], [[z, shown(stats.norm.logsf(z))] for z in zs])


def make_deviance():
    pairs = [(0, 0.5), (0, 1e9), (1, 1), (5, 2.25), (1000, 1000.001), (1e9, 1e9 + 1), (3, 1e-12), (1e15, 2.5e15), (7, 7.7)]
    rows = []
    for x, e in pairs:
        exact = mpf(x) * mpmath.log(mpf(x) / mpf(e)) - mpf(x) + mpf(e) if x else mpf(e)
        rows.append([repr(float(x)), repr(float(e)), repr(float(exact)), shown(special.kl_div(x, e))])
    write("deviance.csv", ["x", "expected", "deviance", "scipy"], rows)


def make_discoveries():
    ps = [0.9, 0.001, 0.008, 0.039, 0.041, 0.042, 0.06, 0.074, 0.205, 0.212, 0.216, 0.222, 0.251, 0.269, 1e-12, 0.02, 0.02]
    adjusted = stats.false_discovery_control(ps)
    write("discoveries.csv", ["p", "adjusted"], [[repr(p), shown(a)] for p, a in zip(ps, adjusted, strict=True)])


if __name__ == "__main__":
    make_normal()
    make_deviance()
    make_discoveries()
    make_tails()
