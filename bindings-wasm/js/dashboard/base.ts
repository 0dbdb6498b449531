// The base class of `<tallyfold-dashboard>` and its views: attributes and the mistakes in them, and the events that the
// elements fire.

import { LitElement, type PropertyDeclarations, type PropertyValues } from "lit";
import type { Dimension } from "../src/values/types.js";
import type { Unit, Where } from "./elements.js";
import { type Formats, formats, languageOf } from "./formats.js";
import { mistakeInPeriod, mistakeInZone, type PageError } from "./given.js";

/** The dimensions in the order in which they are requested, and their names on the page. */
export const DIMENSIONS: Readonly<Record<Dimension, { one: string; many: string }>> = {
  integration: { one: "Destination", many: "Destinations" },
  reason: { one: "Reason", many: "Reasons" },
  event_name: { one: "Event", many: "Events" },
  write_key: { one: "Source", many: "Sources" },
};

/** The values of properties that the page has not set, or has removed. */
const DEFAULTS = {
  src: "",
  period: "24h",
  by: "integration",
  unit: "counts",
  zone: "UTC",
  where: {},
} as const;

/** An element that reads counts, and reads them again when its attributes change. */
export abstract class Base extends LitElement {
  static override properties: PropertyDeclarations = {
    src: {},
    period: {},
    by: {},
    unit: {},
    zone: {},
    locale: {},
    where: { attribute: false },
  };

  declare src: string;
  declare period: string;
  declare by: Dimension;
  declare unit: Unit;
  declare zone: string;
  declare locale: string | undefined;
  declare where: Where;

  /** The mistake in the attributes at the last update. While there is one, nothing is read. */
  protected mistake: PageError | undefined;
  /** Aborts the last reading. */
  protected reading: AbortController | undefined;

  constructor() {
    super();
    Object.assign(this, DEFAULTS);
  }

  /**
   * An attribute that is removed, and a property that is set to nothing, have their default again. So has a dimension that
   * does not exist.
   */
  override requestUpdate(...[name, ...rest]: Parameters<LitElement["requestUpdate"]>): void {
    super.requestUpdate(name, ...rest);
    if (typeof name !== "string" || !Object.hasOwn(DEFAULTS, name)) return;
    const own = name as keyof typeof DEFAULTS;
    const isRight = own === "by" ? Object.hasOwn(DIMENSIONS, this.by ?? "") : this[own] != null;
    if (!isRight) Object.assign(this, { [own]: DEFAULTS[own] });
  }

  /** The properties that determine which counts are read. */
  protected abstract get asked(): readonly string[];

  /** Reads the counts that the properties determine. */
  protected abstract ask(): void;

  /** The mistake in the current attributes. */
  protected get mistakeNow(): PageError | undefined {
    return mistakeInZone(this.zone) ?? mistakeInPeriod(this.period);
  }

  /** How numbers and times are written. */
  get formats(): Formats {
    return formats(languageOf(this), this.zone);
  }

  protected override willUpdate(changed: PropertyValues): void {
    const last = this.mistake;
    this.mistake = this.mistakeNow;
    if (this.mistake) {
      if (this.mistake.message === last?.message) return;
      this.reading?.abort();
      void this.tellError(this.mistake);
    } else if (last || this.asked.some((name) => changed.has(name))) this.ask();
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.reading?.abort();
  }

  /** Fires the error event once the page shows the text of the error. */
  protected async tellError(error: unknown): Promise<void> {
    this.requestUpdate();
    await this.updateComplete;
    if (this.isConnected) this.emit("tallyfold-error", { error });
  }

  /** Fires the events of a reading once the page shows its result. */
  protected async tellRead(
    { signal }: AbortController,
    loaded: object | undefined,
    error: unknown,
  ): Promise<void> {
    this.requestUpdate();
    await this.shows();
    if (signal.aborted) return;
    if (loaded) this.emit("tallyfold-load", loaded);
    if (error !== undefined) this.emit("tallyfold-error", { error });
  }

  /** Resolves when the element has rendered. */
  protected async shows(): Promise<void> {
    await this.updateComplete;
  }

  protected emit(name: string, detail: unknown): void {
    this.dispatchEvent(new CustomEvent(name, { detail, bubbles: true, composed: true }));
  }
}
