// A server that does on the wire what a run of tests/faults says, one request after the other.

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:net";
import { setTimeout as pause } from "node:timers/promises";

/** The server of one run, and another one that nothing may be sent to. */
export class FaultServer {
  #file;
  #left;
  #wrong;
  /** Node's fetch may open a connection and say nothing on it, so that counts as none. */
  #own = new Listener((socket) => this.#serve(socket));
  #elsewhere = new Listener(() => {
    this.#wrong ??= new Error("somebody went elsewhere");
  });

  static async start(file, run) {
    const server = new FaultServer();
    server.#file = file;
    server.#left = [...run.exchanges];
    await Promise.all([server.#own.open(), server.#elsewhere.open()]);
    return server;
  }

  get address() {
    return `http://127.0.0.1:${this.#own.port}`;
  }

  /** Throws what was wrong about the requests: not as told, too many, or too few. */
  async end() {
    await Promise.all([this.#own.close(), this.#elsewhere.close()]);
    if (this.#wrong) throw this.#wrong;
    assert.deepEqual(this.#left, [], "these requests were never sent");
  }

  async #serve(socket) {
    try {
      const gone = new Promise((resolve) => socket.on("close", resolve));
      const asked = await readRequest(socket);
      if (asked === undefined) return;
      // Only who reads on learns that the other side has gone.
      socket.resume();
      const exchange = this.#left.shift();
      assert.ok(exchange, `unexpected ${asked.line}`);
      this.#checkRequest(exchange, asked);
      await this.#answer(socket, exchange.answer, gone);
    } catch (error) {
      this.#wrong ??= error;
    } finally {
      socket.end();
    }
  }

  #checkRequest({ request, bearer }, { line, authorization, body }) {
    const wanted = { line: request, authorization: bearer ? `Bearer ${bearer}` : undefined };
    assert.deepEqual({ line, authorization }, wanted);
    // The secret goes to token endpoints, and only there.
    const secret = this.#file.client.client_secret;
    assert.equal(body.includes(secret), line.endsWith("/oauth/token"));
  }

  async #answer(socket, answer, gone) {
    const acts = typeof answer === "string" ? this.#file.answers[answer] : answer;
    for (const [act, ...given] of acts) await this.#act(socket, gone, act, ...given);
  }

  async #act(socket, gone, act, given, milliseconds) {
    switch (act) {
      case "send":
        return socket.write(given.replace("ELSEWHERE_PORT", this.#elsewhere.port));
      case "send_hex":
        return socket.write(Buffer.from(given, "hex"));
      case "drip":
        for (const byte of Buffer.from(given)) {
          if (socket.destroyed) return;
          socket.write(Uint8Array.of(byte));
          await pause(milliseconds);
        }
        return;
      case "pause":
        return pause(given);
      case "stall":
        return gone;
      case "reset":
        return socket.resetAndDestroy();
      default:
        assert.fail(act);
    }
  }
}

/** A port, and all who are connected to it. */
class Listener {
  #sockets = new Set();
  #server;

  constructor(serve) {
    this.#server = createServer({ noDelay: true }, (socket) => {
      this.#sockets.add(socket);
      // A client that has heard enough may hang up.
      socket.on("error", () => {});
      serve(socket);
    });
  }

  async open() {
    this.#server.listen(0, "127.0.0.1");
    await once(this.#server, "listening");
  }

  get port() {
    return this.#server.address().port;
  }

  async close() {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
    await once(this.#server, "close");
  }
}

/** A whole request, or nothing. */
async function readRequest(socket) {
  let text = "";
  for await (const chunk of reading(socket)) {
    text += chunk.toString("latin1");
    const [head, body] = cut(text, "\r\n\r\n");
    const [line, ...lines] = head.split("\r\n");
    const header = (name) => {
      const found = lines.map((line) => cut(line, ":")).find(([own]) => own.toLowerCase() === name);
      return found?.[1].trim();
    };
    if (body === undefined || body.length < Number(header("content-length") ?? 0)) continue;
    const authorization = header("authorization");
    return { line: line.slice(0, line.lastIndexOf(" ")), authorization, body };
  }
}

/** What comes, until the end or until nobody wants more; the socket stays as it is. */
async function* reading(socket) {
  try {
    yield* socket.iterator({ destroyOnReturn: false });
  } catch {
    // A connection that breaks off.
  }
}

function cut(text, mark) {
  const at = text.indexOf(mark);
  return at < 0 ? [text, undefined] : [text.slice(0, at), text.slice(at + mark.length)];
}
