// Decides what `<tallyfold-dashboard>` reads, and when. It reads the counts that its attributes determine. It reads again when
// a window has closed, and retries soon after a transient failure.

import type { PropertyDeclarations, PropertyValues } from "lit";
import type { CountTable } from "../src/tables/table.js";
import type { Dimension, Metric } from "../src/values/types.js";
import { Base } from "./base.js";
import { type Loaded, sourceOf } from "./data.js";
import type { DashboardQuery } from "./elements.js";
import { isCompared, msOf, type Range, rangeOf, shifted, WEEK } from "./range.js";
import { turnOf } from "./turns.js";
import { dimensionsOf, isPassing } from "./view.js";

/** The minimum time between two updates of the progress, in milliseconds. */
const PROGRESS_MS = 100;
/** The time between the end of a window and its reading, in milliseconds. */
const AFTER_CLOSE = 5_000;
/** The time between a transient failure and the retry, in milliseconds. */
const AFTER_FAILURE = 10_000;
/** If no window arrives for this long, in milliseconds, the page reports it. */
export const SLOW_MS = 3_000;

/** Reads the counts of the dashboard. */
export abstract class Reading extends Base {
  static override properties: PropertyDeclarations = {
    ...Base.properties,
    live: { type: Boolean },
  };

  declare live: boolean;

  /** The query whose counts are shown. */
  protected query: DashboardQuery | undefined;
  /** The query that was read last, or is being read. */
  protected wanted: DashboardQuery | undefined;
  protected range: Range | undefined;
  protected table: CountTable | undefined;
  protected tableBefore: CountTable | undefined;
  protected ingestion: CountTable | undefined;
  protected error: unknown;
  /** Whether counts are being read. */
  protected isReading = false;
  protected progress: { readonly done: number; readonly planned: number } | undefined;
  /** Whether no window has arrived for `SLOW_MS`. */
  protected isSlow = false;
  protected readAt: number | undefined;

  #loadedFrom: string | undefined;
  #progressShown = 0;
  #slowTimer: ReturnType<typeof setTimeout> | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** Whether the element was removed from the page while it was reading. */
  #isCut = false;

  constructor() {
    super();
    this.live = true;
  }

  /** The path of the server for web apps. */
  protected abstract get server(): string;

  protected override get asked(): readonly string[] {
    return ["src", "period", "by", "where"];
  }

  override connectedCallback(): void {
    super.connectedCallback();
    document.addEventListener("visibilitychange", this.#awake);
    if (this.#isCut) void this.refresh();
    else if (this.range) this.#schedule(this.range);
    this.#isCut = false;
  }

  override disconnectedCallback(): void {
    this.#isCut = this.isReading;
    super.disconnectedCallback();
    document.removeEventListener("visibilitychange", this.#awake);
    clearTimeout(this.#timer);
    clearTimeout(this.#slowTimer);
  }

  protected override willUpdate(changed: PropertyValues): void {
    super.willUpdate(changed);
    // Once the attributes are right, all counts are read again.
    if (this.mistake) this.wanted = undefined;
  }

  /** Reads the counts that the attributes determine, unless they were read or are being read. */
  protected override ask(): void {
    if (this.server === "") return;
    const range = rangeOf(this.period, Date.now());
    if (range === undefined) return;
    const names = Object.keys(this.where) as Dimension[];
    const dimensions = dimensionsOf([
      this.by,
      "reason",
      ...names,
      ...(this.by === "reason" ? (["integration"] as const) : []),
    ]);
    const last = this.wanted;
    const isKnown =
      this.#loadedFrom === this.server &&
      dimensions.every((name) => last?.dimensions.includes(name));
    const isSame = isKnown && last?.start === range.start && last.end === range.end;
    if (isSame && (this.table || this.isReading)) return;
    if (!isKnown) {
      this.table = undefined;
      this.tableBefore = undefined;
      this.ingestion = undefined;
    }
    void this.#read(range, dimensions);
  }

  /** Reads the counts again. */
  async refresh(): Promise<void> {
    const range = rangeOf(this.period, Date.now());
    if (range && this.wanted) await this.#read(range, this.wanted.dimensions);
  }

  /**
   * @param isOwnIdea Whether the viewer has not requested this. If so, the page keeps showing the last error until counts or an
   * error come.
   */
  async #read(range: Range, dimensions: readonly Dimension[], isOwnIdea = false): Promise<void> {
    this.reading?.abort();
    clearTimeout(this.#timer);
    const own = new AbortController();
    this.reading = own;
    this.isReading = true;
    const { signal } = own;
    const src = this.server;
    const query: DashboardQuery = { ...range, metric: "event_delivery", dimensions };
    this.wanted = query;
    this.#loadedFrom = src;
    if (!isOwnIdea) this.error = undefined;
    this.progress = { done: 0, planned: 0 };
    this.#wait();
    this.requestUpdate();
    try {
      const source = sourceOf(src);
      const read = (asked: DashboardQuery, onProgress?: (done: number, planned: number) => void) =>
        source.load(asked, { signal, onProgress });
      const { table, error } = await read(query, this.#onProgress);
      this.#come();
      // The other counts of the last range would not belong to these.
      if (this.range?.start !== range.start || this.range.end !== range.end) {
        this.tableBefore = undefined;
        this.ingestion = undefined;
      }
      this.table = table;
      this.query = query;
      this.error = error;
      this.range = range;
      this.readAt = Date.now();
      if (table === undefined) throw error;
      this.requestUpdate();
      // The other readings would delay the first view, so they wait until it is drawn.
      await this.updateComplete;
      await turnOf("later");
      if (!signal.aborted) await this.#readRest(range, dimensions, read);
      void this.tellRead(own, { query, table }, error);
    } catch (error) {
      if (signal.aborted) return;
      this.error = error;
      void this.tellRead(own, undefined, error);
    } finally {
      if (this.reading === own) {
        this.isReading = false;
        this.progress = undefined;
        this.#come();
        this.#schedule(range);
        this.requestUpdate();
      }
    }
  }

  /** Reads ingestion, and the same time a week before. */
  async #readRest(
    range: Range,
    dimensions: readonly Dimension[],
    read: (query: DashboardQuery) => Promise<Loaded>,
  ): Promise<void> {
    const others = dimensions.filter((name) => name !== "reason");
    const ingestion = { ...range, metric: "event_ingestion" as Metric, dimensions: others };
    const before = { ...shifted(range, -WEEK), metric: "event_delivery" as Metric, dimensions };
    const [came, earlier] = await Promise.all([
      read(ingestion),
      isCompared(range) ? read(before) : undefined,
    ]);
    this.ingestion = came.table;
    this.tableBefore = earlier?.table;
  }

  /** Starts the timer that reports if the next window takes long. */
  #wait(): void {
    this.#come();
    this.#slowTimer = setTimeout(() => {
      this.isSlow = true;
      this.requestUpdate();
    }, SLOW_MS);
  }

  #come(): void {
    clearTimeout(this.#slowTimer);
    this.isSlow = false;
  }

  readonly #onProgress = (done: number, planned: number): void => {
    this.progress = { done, planned };
    this.#wait();
    // Windows may arrive faster than a screen can show them.
    const now = performance.now();
    if (now < this.#progressShown + PROGRESS_MS) return;
    this.#progressShown = now;
    this.requestUpdate();
  };

  /** Whether the dashboard soon tries again to read what is missing. */
  protected get keepsTrying(): boolean {
    return this.live && isPassing(this.error);
  }

  /** Schedules the next reading: soon after a transient failure, otherwise when the next window has closed. */
  #schedule(range: Range): void {
    clearTimeout(this.#timer);
    if (!this.live || !this.isConnected) return;
    if (this.keepsTrying) {
      this.#timer = setTimeout(this.#due, AFTER_FAILURE);
      return;
    }
    if (this.period.includes("/")) return;
    const next = Date.parse(range.end) + msOf(range.window) + AFTER_CLOSE;
    this.#timer = setTimeout(this.#due, Math.max(next - Date.now(), AFTER_CLOSE));
  }

  readonly #due = (): void => {
    // While the page is hidden, nothing is read. `#awake` reads when the page is visible again.
    if (document.visibilityState === "hidden") return;
    const range = rangeOf(this.period, Date.now());
    if (range && this.wanted) void this.#read(range, this.wanted.dimensions, true);
  };

  readonly #awake = (): void => {
    if (document.visibilityState !== "visible" || !this.live || this.isReading) return;
    const range = rangeOf(this.period, Date.now());
    if (range && (this.keepsTrying || range.end !== this.wanted?.end)) this.#due();
  };
}
