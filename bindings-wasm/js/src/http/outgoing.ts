/** What is sent: a request of a call, or a message of a push. */
export interface Outgoing {
  readonly method: string;
  readonly url: string;
  headers(): [string, string][];
  body(): Uint8Array<ArrayBuffer> | undefined;
  /** What no error message may quote. */
  secrets(): string[];
  /** Whether an answer with another status than 200 is a success too, whose whole body is read. */
  takes?(status: number): boolean;
}

/** What is told how the exchange goes: a call, or a push. */
export interface Exchanged {
  head(status: number, headers: [string, string][]): boolean;
  chunk(chunk: Uint8Array): void;
  end(): void;
  failed(failure: "network" | "timeout" | "hidden", detail: string): void;
}
