/**
 * One object of each kind that lives for a moment, after its release: it holds no more than a name.
 *
 * V8 throws code away with the last object of a shape that the code was compiled for. Where no
 * aggregator is left whenever the collector runs, it would compile the same code after each run.
 */
export const kept: { aggregator?: object; table?: object } = {};
