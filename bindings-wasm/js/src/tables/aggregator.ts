import type { CoreAggregator, CoreCountTable } from "../../wasm/tallyfold_wasm.js";
import { Handle } from "../loading/handle.js";
import { stage } from "../loading/library.js";
import type { AggregatorArguments } from "../values/declared.js";
import { bytes } from "../values/input.js";
import type { Dimension, Grouped } from "../values/types.js";
import { planned } from "./aggregator_plan.js";
import { kept } from "./shapes.js";
import { CountTable } from "./table.js";

/** What an {@link Aggregator} must know about the response that it reads. */
export interface AggregatorOptions<D extends Dimension, G extends D = D>
  extends Grouped<AggregatorArguments, D, G> {}

/**
 * Folds the bytes of a metrics response (service reference 2.2) into a table, as they arrive, in
 * chunks of any size. It holds no more than a part of one entry: memory grows with groups.
 *
 * After an error every further call throws that error again.
 *
 * @example
 * const aggregator = new Aggregator({ dimensions: ["integration"] });
 * for await (const chunk of createReadStream("body.json")) aggregator.push(chunk);
 * const table = aggregator.finish();
 */
export class Aggregator<D extends Dimension, G extends D = D> {
  readonly #core: Handle<CoreAggregator>;

  /**
   * @param options What the response is about.
   * @throws {@link TallyfoldError} of kind `config`.
   */
  constructor(options: AggregatorOptions<D, G>) {
    this.#core = new Handle(planned(options));
  }

  /**
   * The next bytes of the body.
   *
   * @throws {@link TallyfoldError} of kind `response`, with path and offset, as soon as the bytes
   * can't be the start of a good response.
   */
  push(chunk: Uint8Array): void {
    const core = this.#core.object;
    stage(bytes("chunk", chunk), (length) => core.push(length) || core.fail());
  }

  /**
   * The table, once the body is complete. It can be taken once.
   *
   * @throws {@link TallyfoldError} of kind `response`, such as `truncated_body`.
   */
  finish(): CountTable<G> {
    const core = this.#core.object;
    const table = core.finish();
    if (table === undefined) core.fail();
    return CountTable.of(table as CoreCountTable);
  }

  /** Frees the memory now. Its table lives on. */
  [Symbol.dispose](): void {
    this.#core.release();
    kept.aggregator ??= this;
  }
}
