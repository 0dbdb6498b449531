// How long the loop is held, in processor time, which other programs on the machine don't change.

/** Starts to watch. What it gives ends that, and gives the most milliseconds of the processor between two ticks of a timer. */
export function watchTurns() {
  let [longest, last] = [0, processorMs()];
  const watch = setInterval(() => {
    const now = processorMs();
    longest = Math.max(longest, now - last);
    last = now;
  }, 1);
  return () => {
    clearInterval(watch);
    return longest;
  };
}

/** The processor time of this process, with all of its threads. */
export function processorMs() {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}
