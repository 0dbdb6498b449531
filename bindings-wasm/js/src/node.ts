/// <reference types="node" preserve="true" />

/**
 * Checkpoints and state files on the disk, and servers, for Node.
 * @module tallyfold/node
 */

import * as crypto from "node:crypto";
import * as fs from "node:fs/promises";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import * as os from "node:os";
import * as path from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { ReadableStream as NodeStream } from "node:stream/web";
import * as url from "node:url";
import * as threads from "node:worker_threads";
import type { Checkpoint } from "./files/checkpoint.js";
import { Directory } from "./files/directory.js";
import { LockedFile, type StateFile } from "./files/state.js";
import { timer } from "./http/abort.js";
import type { Sandbox, SandboxResponse } from "./sandbox.js";
import { invalidArgument } from "./values/error.js";
import { fieldsOf, pairsOf } from "./values/input.js";

/**
 * A checkpoint in a directory, which is created if it is missing. Each document is one file, which is replaced
 * atomically, once the new document is synced to the disk: a killed job leaves either the old or the new document,
 * and at worst a file named `*.tmp`, which the next job removes.
 *
 * Only one collect at a time may use the directory, in Node or Python. A second collect rejects with
 * `invalid_checkpoint`. If the first collect is killed, its lock, a file `lock-*`, ends with its process. If it ran
 * on another machine, in another container, or in a worker thread, its lock ends a minute after it was killed or
 * terminated.
 *
 * In Node 20.16 or later, you can also pass a path or `file:` URL as `checkpoint`.
 *
 * @param directory The path or `file:` URL of the directory.
 * @example
 * const checkpoint = checkpointDirectory("january");
 * const table = await client.collect({ ...query, metric: "event_delivery", checkpoint });
 */
export function checkpointDirectory(directory: string | URL): Checkpoint {
  return new Directory("directory", directory, { crypto, fs, os, path, threads, url });
}

export type { StateFile };

/**
 * A file for the document of a `Ledger` or an `Outbox`, or the state of a follow. Only one process at a time may
 * use it, in any language: `store` locks the file, and refuses a file that was written since it was loaded.
 *
 * Don't restore an older file, such as one from a backup, because a ledger or an outbox can't recognize it.
 * Prometheus would see the counters of the ledger reset, and the outbox would send later revisions again. A
 * destination that compares values refuses them, a destination that keeps the newest value replaces it, and a
 * destination that adds up changes counts them twice.
 *
 * @param file The path or `file:` URL of the file, which the first `store` creates.
 * @example
 * const file = stateFile("totals.json");
 * const ledger = new Ledger(await file.load());
 * const revisions = client.follow({ ...query, metric: "event_delivery", window: "15m", state: ledger.state });
 * for await (const revision of revisions) {
 *   await ledger.add(revision, revisions.state(), file.store);
 * }
 */
export function stateFile(file: string | URL): StateFile {
  return new LockedFile(file, { crypto, fs, os, path, threads, url });
}

/**
 * Turns a function from `Request` to `Response`, such as the result of `pageServer`, into a listener for
 * `node:http`, which is also a handler for Express and similar frameworks. In Express, mount it before any handler
 * that reads bodies.
 *
 * The `url` of a request has the host from its header `Host`. The `signal` of a request aborts when the visitor
 * disconnects.
 *
 * @example
 * import { createServer } from "node:http";
 * import { nodeListener } from "tallyfold/node";
 *
 * const server = createServer(nodeListener(handle));
 * // Express: app.use("/tallyfold", nodeListener(handle));
 */
export function nodeListener(
  handle: (request: Request) => Response | Promise<Response>,
): (request: IncomingMessage, response: ServerResponse) => void {
  if (typeof handle !== "function") {
    throw invalidArgument("handle", "want a function, such as that of pageServer");
  }
  return (request, response) => {
    const visitor = new AbortController();
    response.once("close", () => {
      if (!response.writableFinished) visitor.abort(new DOMException("", "AbortError"));
    });
    listened(handle, request, response, visitor.signal).catch((error: unknown) => {
      // A client that disconnects in the middle of a request isn't an error of the server.
      if (visitor.signal.aborted || request.errored) {
        response.destroy();
        return;
      }
      console.error(error);
      if (response.headersSent) response.destroy();
      else response.writeHead(500).end();
    });
  };
}

async function listened(
  handle: (request: Request) => Response | Promise<Response>,
  request: IncomingMessage,
  response: ServerResponse,
  signal: AbortSignal,
): Promise<void> {
  const asked = webRequest(request, response, signal);
  if (typeof asked === "number") {
    response.writeHead(asked).end();
    return;
  }
  const answer = await handle(asked);
  if (signal.aborted) return;
  response.writeHead(answer.status, [...answer.headers].flat());
  // If the first bytes of a stream take longer, the head is sent without them.
  setImmediate(() => response.flushHeaders());
  if (answer.body) await pipeline(Readable.fromWeb(answer.body as NodeStream), response);
  else response.end();
}

/** Converts a request to a standard `Request`. For a request that the standard does not allow, returns a status instead. */
function webRequest(
  request: IncomingMessage,
  response: ServerResponse,
  signal: AbortSignal,
): Request | number {
  const { method = "GET", headers, socket, url: target = "" } = request;
  if (/^(?:CONNECT|TRACE|TRACK)$/i.test(method)) return 501;
  const hasBody = method !== "GET" && method !== "HEAD";
  // In Bun, every socket has this property.
  const scheme = "encrypted" in socket && socket.encrypted === true ? "https" : "http";
  const base = `${scheme}://${headers.host ?? "localhost"}`;
  // A request must not choose another host with a target such as `//host/`. A backslash counts as a slash.
  const path = `/${target.replace(/^[/\\]+/, "")}`;
  if (!URL.canParse(base) || !URL.canParse(path, base)) return 400;
  const { href, origin } = new URL(base);
  const url = new URL(path, origin);
  // Otherwise, the header contains more than a host, such as `user@host`, or the target has chosen another host.
  if (href !== `${origin}/` || url.origin !== origin) return 400;
  return new Request(url, {
    method,
    headers: pairsOf(request.rawHeaders),
    signal,
    ...(hasBody && { body: bodyOf(request, response), duplex: "half" }),
  });
}

/**
 * The body as a stream. Node's own `toWeb` throws an error that nobody can catch if a stream is cancelled at the wrong
 * moment.
 */
function bodyOf(request: IncomingMessage, response: ServerResponse): ReadableStream<Uint8Array> {
  let chunks: AsyncIterator<Uint8Array> | undefined;
  // Node itself discards only an unread body. The rest of a body that was partly read would block the connection.
  response.once("finish", async () => {
    await chunks?.return?.().catch(() => {});
    request.resume();
  });
  return new ReadableStream(
    {
      async pull(controller) {
        // If the request were destroyed, the response could not be sent.
        chunks ??= request.iterator({ destroyOnReturn: false });
        const { done, value } = await chunks.next();
        if (done) controller.close();
        else controller.enqueue(value);
      },
      async cancel() {
        await chunks?.return?.();
      },
    },
    { highWaterMark: 0 },
  );
}

/** A sandbox on a port of this machine. */
export interface SandboxServer {
  /** Its address, such as `http://127.0.0.1:8080`, which is the base address of both APIs. */
  readonly url: string;
  /** Its port. */
  readonly port: number;
  /** Ends every connection and frees the port. */
  close(): Promise<void>;
  /** The same as `close`. */
  [Symbol.asyncDispose](): Promise<void>;
}

/** The maximum number of bytes in the body of a request. Real bodies are much shorter. */
const LONGEST_BODY = 1 << 20;

const CORS = {
  "access-control-allow-origin": "*",
  "access-control-allow-methods": "GET, POST",
  "access-control-allow-headers": "authorization, content-type",
  "access-control-allow-private-network": "true",
  "access-control-expose-headers": "date, retry-after",
  "access-control-max-age": "600",
};

/**
 * Serves a sandbox over HTTP. Pages of any origin may call it.
 *
 * @param options The port to listen on, by default any free port; and the host, by default 127.0.0.1. With
 * `0.0.0.0`, other machines and containers can reach the sandbox, too; their clients need `dangerouslyAllowHttp`.
 * @throws The error of Node if it can't listen there, such as `EADDRINUSE`.
 * @example
 * import { Sandbox } from "tallyfold";
 * import { serve } from "tallyfold/node";
 *
 * const server = await serve(new Sandbox({ seed: 1 }), { port: 8080 });
 */
export async function serve(
  sandbox: Sandbox,
  options: { readonly port?: number | undefined; readonly host?: string | undefined } = {},
): Promise<SandboxServer> {
  if (typeof sandbox?.handle !== "function") throw invalidArgument("sandbox", "want a Sandbox");
  const want = "want an object, such as { port: 8080 }";
  const given = fieldsOf("options", options, want, ["port", "host"]);
  const port = given.port ?? 0;
  if (!Number.isInteger(port) || port < 0 || port > 65_535) {
    throw invalidArgument("port", "want a whole number from 0 to 65535");
  }
  const host = given.host ?? "127.0.0.1";
  // With an empty host, Node would let all machines in.
  if (typeof host !== "string" || host === "") {
    throw invalidArgument("host", "want a name or an address, such as 127.0.0.1");
  }
  const server = createServer((request, response) => {
    respond(sandbox, request, response).catch(() => response.destroy());
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, resolve);
  });
  const { port: taken } = server.address() as AddressInfo;
  const close = (): Promise<void> => closed(server);
  const reached = { "0.0.0.0": "127.0.0.1", "::": "::1" }[host] ?? host;
  const shown = reached.includes(":") ? `[${reached}]` : reached;
  return { url: `http://${shown}:${taken}`, port: taken, close, [Symbol.asyncDispose]: close };
}

async function respond(
  sandbox: Sandbox,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  if (request.method === "OPTIONS") {
    response.writeHead(204, CORS).end();
    return;
  }
  const body = await received(request);
  const answer = sandbox.handle({
    method: request.method ?? "GET",
    target: request.url ?? "/",
    headers: pairsOf(request.rawHeaders),
    body,
  });
  if (answer.delayMs > 0) await delayed(answer.delayMs, response);
  send(answer, response);
}

async function received(request: IncomingMessage): Promise<Uint8Array> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > LONGEST_BODY) throw new RangeError("the request is too long");
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** Waits, unless the client closes the connection. */
async function delayed(milliseconds: number, response: ServerResponse): Promise<void> {
  await new Promise<void>((resolve) => {
    const waits = timer(resolve, milliseconds);
    response.once("close", () => {
      clearTimeout(waits);
      resolve();
    });
  });
}

function send(answer: SandboxResponse, response: ServerResponse): void {
  const { status, headers, body, cutAt } = answer;
  for (const [name, value] of headers) response.appendHeader(name, value);
  for (const [name, value] of Object.entries(CORS)) response.setHeader(name, value);
  response.setHeader("content-length", body.length);
  response.writeHead(status);
  if (cutAt === undefined) {
    response.end(body);
    return;
  }
  response.flushHeaders();
  response.write(body.subarray(0, cutAt));
  // Everything that was written is still sent; then the connection ends in the middle of the body.
  response.socket?.destroySoon();
}

async function closed(server: Server): Promise<void> {
  await new Promise<void>((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}
