// The rules of `<tallyfold-dashboard>`: the text that the page gives, the file that it names, or what the viewer has typed instead.

import type { ReactiveControllerHost } from "lit";
import { PageError } from "./given.js";

/** The element that has the rules. */
interface Host extends ReactiveControllerHost {
  /** The file of the rules. */
  readonly rulesSrc: string | undefined;
  rules: string | undefined;
}

export class OwnRules {
  /** Why the file could not be read. */
  error: PageError | undefined;
  /** The file that is being read. */
  #reading: Promise<FileText> | undefined;
  #typed: string | undefined;
  /** The rules whose failure needs no further event. */
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

  /** Stops needless events: budgets and alerts find the same mistake in the rules, and a mistake in typed rules isn't a failure. */
  readonly failed = (event: Event): void => {
    if (this.#told === this.shown) event.stopPropagation();
    this.#told = this.shown;
  };
}

interface FileText {
  readonly text?: string;
  /** Why there is no text. */
  readonly why?: string;
}

/** The text of a file of the page's server. */
async function fileAt(address: string): Promise<FileText> {
  try {
    const response = await fetch(address, { credentials: "same-origin" });
    if (!response.ok) return { why: `status ${response.status}` };
    // Such as a form to sign in.
    const isPage = response.headers.get("content-type")?.startsWith("text/html");
    return isPage ? { why: "it is an HTML page" } : { text: await response.text() };
  } catch (error) {
    return { why: (error as Error).message };
  }
}
