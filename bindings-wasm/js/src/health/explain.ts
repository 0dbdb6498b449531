import type { CountTable } from "../tables/table.js";
import type { ExplainArguments, Explanation, Measure } from "../values/declared.js";
import { fieldsOf, OPTIONS } from "../values/input.js";
import { stringable } from "../values/stringable.js";
import { handedOver, judge } from "./module.js";

/** The options of {@link explain}. */
export interface ExplainOptions extends ExplainArguments {}

/**
 * Which few combinations of dimension values explain how a measure changed from one table to another, and by how many
 * events exactly.
 *
 * For a rate, the table before may cover any length of time, and a long one is better. If it has three windows or more,
 * those whose rate is far from the median are left out. For a volume, it should have as many windows as the other one,
 * because counts are not scaled.
 *
 * @throws {@link TallyfoldError} with code `incompatible_tables` for tables of other dimensions, another metric or
 * another filter; of kind `config` for other arguments.
 * @example
 * const { sentence, causes } = explain(table, table, "error_rate");
 * for (const { where, events } of causes) console.log(where, events);
 */
export function explain(
  before: CountTable,
  now: CountTable,
  measure: Measure,
  options: ExplainOptions = {},
): Explanation {
  const given = fieldsOf("options", options, OPTIONS);
  const glue = judge();
  const tables = [];
  try {
    const earlier = handedOver(glue, "before", before);
    tables.push(earlier);
    const later = handedOver(glue, "now", now);
    tables.push(later);
    return stringable(glue.explainChange(earlier, later, measure, given) as Explanation);
  } finally {
    for (const table of tables) table.free();
  }
}
