// The rules of `<tallyfold-dashboard>`: the text that the page sets, the file that the page names, or what the viewer has typed
// instead.

import type { ReactiveControllerHost } from "lit";
import { TallyfoldError } from "../src/values/error.js";
import { PageError } from "./given.js";

/** The element that has the rules. */
interface Host extends ReactiveControllerHost {
  /** The address of the rules file. */
  readonly rulesSrc: string | undefined;
  rules: string | undefined;
}

export class OwnRules {
  /** Why the file could not be read. */
  error: PageError | undefined;
  /** The file that is being read. */
  #reading: Promise<FileText> | undefined;
  #typed: string | undefined;
  /** The rules for which no further error event is fired. `undefined` stands for the standard rules, `null` for no rules. */
  #told: string | undefined | null = null;
  readonly #host: Host;
  readonly #tell: (error: PageError) => void;

  /** @param tell Fires the event of an error. */
  constructor(host: Host, tell: (error: PageError) => void) {
    this.#host = host;
    this.#tell = tell;
  }

  /** Whether the rules are known. While their file is being read, or if it can't be read, no other rules apply. */
  get isRead(): boolean {
    return this.#reading === undefined && this.error === undefined;
  }

  /** The rules that views show; `undefined` for the standard rules. */
  get shown(): string | undefined {
    return this.#typed ?? this.#host.rules;
  }

  /** Reads the file. */
  async read(): Promise<void> {
    const host = this.#host;
    const address = host.rulesSrc;
    const own = address ? fileAt(address) : undefined;
    this.#reading = own;
    this.error = undefined;
    host.rules = undefined;
    host.requestUpdate();
    if (!own) return;
    const { text, why } = await own;
    if (this.#reading !== own) return;
    this.#reading = undefined;
    host.rules = text;
    host.requestUpdate();
    if (text !== undefined) return;
    const message = `the rules file ${address} could not be read: ${why}`;
    this.error = new PageError("The rules could not be read", message);
    this.#tell(this.error);
  }

  /** Forgets what was typed. */
  reset(): void {
    this.#typed = undefined;
  }

  /** Handles rules that the viewer has typed. */
  readonly typed = ({ detail }: CustomEvent<{ readonly text?: string }>): void => {
    this.#typed = detail.text;
    if (detail.text !== undefined) this.#told = detail.text;
    this.#host.requestUpdate();
  };

  /**
   * Stops all events of a mistake in the rules but the first one for the same rules, because budgets and alerts find the same
   * mistake. For rules that the viewer has typed, stops all of them, because a mistake in these is not a failure of the page.
   */
  readonly failed = (event: CustomEvent<{ readonly error: unknown }>): void => {
    const { error } = event.detail;
    if (!TallyfoldError.is(error) || error.code !== "invalid_rules") return;
    if (this.#told === this.shown) event.stopPropagation();
    this.#told = this.shown;
  };
}

interface FileText {
  readonly text?: string;
  /** Why there is no text. */
  readonly why?: string;
}

/** Reads the text of a file. */
async function fileAt(address: string): Promise<FileText> {
  try {
    const response = await fetch(address, { credentials: "same-origin" });
    if (!response.ok) return { why: `status ${response.status}` };
    // An HTML page is probably a sign-in form, not the rules.
    const isPage = response.headers.get("content-type")?.startsWith("text/html");
    return isPage ? { why: "it is an HTML page" } : { text: await response.text() };
  } catch (error) {
    return { why: (error as Error).message };
  }
}
