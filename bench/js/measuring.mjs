// Runs contenders in turns, and prints measurements as lines of JSON for `tallyfold-bench report`.

/** The target: at least `ratio` times as fast as the peer. */
export const atLeast = (ratio) => ({ at_least: ratio });

/** The target: at most `ratio` times the cost of the peer. */
export const atMost = (ratio) => ({ at_most: ratio });

/**
 * Milliseconds by contender and round. A first round warms up and is not counted. Garbage is
 * collected before each contender starts.
 */
export function takeTurns(rounds, repeats, contenders) {
  const times = contenders.map(() => []);
  for (let round = 0; round <= rounds; round++) {
    for (const [index, contender] of contenders.entries()) {
      globalThis.gc();
      const start = performance.now();
      for (let repeat = 0; repeat < repeats; repeat++) contender();
      const milliseconds = performance.now() - start;
      if (round > 0) times[index].push(milliseconds / repeats);
    }
  }
  return times;
}

/** The median over the rounds of the ratio of `numerator` to `denominator`. */
export function medianRatio(numerator, denominator) {
  return median(numerator.map((time, round) => time / denominator[round]));
}

export function median(values) {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];
}

/** Measures `ours` against each peer. A peer is its name, its function and the target. */
export function compare(work, ours, peers, { rounds, repeats = 1, bodyBytes = null }) {
  const contenders = [ours, ...peers.map(([, contender]) => contender)];
  const [ourTimes, ...allTimes] = takeTurns(rounds, repeats, contenders);
  for (const [index, [peer, , target]] of peers.entries()) {
    const theirs = allTimes[index];
    tell({
      work,
      peer,
      medians: [median(ourTimes) / 1e3, median(theirs) / 1e3],
      unit: "seconds",
      body_bytes: bodyBytes,
      ratio: medianRatio(theirs, ourTimes),
      target,
    });
  }
}

/** Prints a measurement to standard output. */
export function tell(measurement) {
  console.log(JSON.stringify({ language: "Node", body_bytes: null, ...measurement }));
}
