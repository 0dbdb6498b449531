/** A length of time that divides a UTC day: digits and a unit, such as `5m`, `15m`, `1h`, `1d`. */
export type TimeStep = `${bigint}${"s" | "m" | "h" | "d"}`;
