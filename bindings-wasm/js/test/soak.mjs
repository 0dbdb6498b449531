// A month of a cluster in virtual time: events that come late, clocks that jump, a service that is down, and processes that are killed
// every hour. In the end, the sums of each way to count are the truth, to the last event. `node soak.mjs SEED
// scrape backfill` runs it, with the programs of these names.

import assert from "node:assert/strict";
import { mock } from "node:test";
import { CountTable, Sandbox, TallyfoldError } from "tallyfold";
import { Ledger, Outbox } from "tallyfold/export";
import { memory } from "./ranges.mjs";
import { clientOf } from "./world.mjs";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const DAYS = 30;
const STEP = 10 * MINUTE;
/** Longer than a window, so that two readings can be equal before the last event has come. */
const SETTLE = 2 * HOUR;
const START = Date.parse("2026-03-01T00:00:00Z");
const END = START + DAYS * DAY;
const COUNTED = { metric: "event_delivery", dimensions: ["integration"], window: "1h" };
const INTEGRATIONS = ["email", "warehouse", 'push, "urgent" = yes'];
const OUTCOMES = ["success", "errors", "filtered"];
const FORMAT = "influx";

/** A month of one cluster, with some of its programs. */
async function month(seed, names) {
  // The library's own chance, such as when it tries again.
  Math.random = randomOf(seed);
  mock.timers.enable({ apis: ["setTimeout"] });
  const time = { atMs: START };
  const cluster = new Cluster(time, randomOf(seed + 1));
  const programs = names.map((name) => new Program(cluster, WORK[name]));
  let isOver = false;
  const ends = Promise.all(programs.map((program) => program.run())).finally(() => {
    isOver = true;
  });
  ends.catch(() => {});
  while (!isOver && time.atMs < END + 14 * DAY) {
    await quiet();
    time.atMs += STEP;
    cluster.pass();
    if (time.atMs % HOUR === 0 && time.atMs < END) for (const one of programs) one.killSoon();
    mock.timers.tick(STEP);
  }
  assert.ok(isOver, "not all programs have ended");
  await ends;
  await judge(cluster, names);
  const sum = (of) => programs.reduce((all, program) => all + of(program), 0);
  const [lives, kills] = [sum((one) => one.lives), sum((one) => one.kills)];
  const failures = tally(programs.flatMap((program) => program.failures));
  console.log(`${lives} lives, ${kills} kills, ${cluster.late} late events, ${failures}`);
  assert.ok(kills > 400 && cluster.late > 400, "too little has happened");
}

/** Each way to count has what the service has, and that is what has happened. */
async function judge({ sandbox, truth, documents, receiver, time }, names) {
  const of = (record) => Object.fromEntries(Object.entries(record).sort());
  const [start, end] = [new Date(START), new Date(END)];
  const now = () => ({ monotonicMs: time.atMs - START, unixMs: time.atMs });
  const client = clientOf(sandbox, { now });
  const table = await client.eventDelivery({ start, end, dimensions: COUNTED.dimensions });
  assert.deepEqual(countsOf(table), of(truth), "the service");
  const found = {};
  if (names.includes("scrape")) found.ledger = totalsOf(documents.get("scrape"));
  if (names.includes("send")) found.receiver = receiver.sums();
  if (names.includes("backfill")) found.days = countsOf(monthOf(documents.get("backfill")));
  const expected = Object.fromEntries(names.map((name) => [ANSWERS[name], of(truth)]));
  const sorted = Object.entries(found).map(([name, counts]) => [name, of(counts)]);
  assert.deepEqual(Object.fromEntries(sorted), expected);
}

/** What each program comes to. */
const ANSWERS = { scrape: "ledger", send: "receiver", backfill: "days" };

/** The running totals of a ledger, by integration and outcome. */
function totalsOf(document) {
  const totals = {};
  for (const counter of new Ledger(document).counters()) {
    const outcome = OUTCOMES.find((one) => counter.name.includes(`_${one}_`));
    for (const { labels, value } of counter.values)
      totals[`${labels.integration} ${outcome}`] = value;
  }
  return totals;
}

/** The table of all days together. */
function monthOf(stored) {
  const days = Array.from(stored.values(), (day) => CountTable.fromJSON(JSON.parse(day.table)));
  assert.equal(days.length, DAYS);
  return days.reduce((all, day) => all.merge(day));
}

/** The counts of a table, by integration and outcome. */
function countsOf(table) {
  const counts = Array.from(table, (row) =>
    OUTCOMES.map((outcome) => [`${row.dimensions.integration} ${outcome}`, row[outcome]]),
  );
  return Object.fromEntries(counts.flat().sort());
}

/** A service with its events, its outages, and what its programs have stored. */
class Cluster {
  truth = {};
  late = 0;
  /** What survives a kill. */
  documents = new Map();
  receiver = new Receiver();
  #waiting = [];
  #downUntil = 0;

  constructor(time, random) {
    this.time = time;
    this.random = random;
    const now = () => ({ monotonicMs: time.atMs - START, unixMs: time.atMs });
    this.sandbox = new Sandbox({ now });
    for (const one of INTEGRATIONS)
      for (const outcome of OUTCOMES) this.truth[`${one} ${outcome}`] = 0n;
    // Each of them is there from the first hour on.
    for (const one of INTEGRATIONS)
      for (const outcome of OUTCOMES) this.#happen(one, outcome, START);
  }

  /** What happens in the last step of time, and what comes late from earlier ones. */
  pass() {
    const { random, time } = this;
    if (time.atMs <= END && random() < STEP / (20 * MINUTE)) {
      const at = time.atMs - 1 - Math.floor(random() * STEP);
      const outcome = OUTCOMES[Math.floor(random() ** 3 * 3)];
      this.#happen(INTEGRATIONS[Math.floor(random() * 3)], outcome, at);
    }
    for (const event of this.#waiting.filter(({ comesMs }) => comesMs <= time.atMs))
      this.#record(event);
    this.#waiting = this.#waiting.filter(({ comesMs }) => comesMs > time.atMs);
    if (random() < STEP / (3 * DAY)) this.#downUntil = time.atMs + random() * 5 * HOUR;
    if (random() < STEP / DAY) this.sandbox.revokeTokens();
  }

  #happen(integration, outcome, atMs) {
    const count =
      this.random() < 0.01 ? 2n ** 53n + 1n : BigInt(1 + Math.floor(this.random() * 99));
    // Most come at once, a third within the time until a window is settled.
    const delayMs = this.random() < 1 / 3 ? this.random() * 110 * MINUTE : 0;
    const event = { integration, outcome, count, timestamp: new Date(atMs) };
    if (delayMs > 0) this.#waiting.push({ event, comesMs: atMs + delayMs });
    else this.#record({ event });
    this.late += delayMs > STEP ? 1 : 0;
  }

  #record({ event }) {
    this.sandbox.record({ ...event, eventName: "order", writeKey: "web" });
    this.truth[`${event.integration} ${event.outcome}`] += event.count;
  }

  /** A request over a network that breaks now and then, to a service that is down now and then. */
  async fetch(url, { method, headers, body }) {
    const { random, time, sandbox } = this;
    const answers = (status, headers, body) => ({
      status,
      headers: [...headers, ["date", new Date(time.atMs).toUTCString()]],
      arrayBuffer: async () => body,
    });
    if (time.atMs < this.#downUntil) {
      if (random() < 0.5) throw broken("ECONNREFUSED");
      return answers(503, [["retry-after", "60"]], new ArrayBuffer());
    }
    if (random() < 0.01) throw broken("ECONNRESET");
    const { pathname, search } = new URL(url);
    const response = sandbox.handle({ method, target: pathname + search, headers, body });
    if (random() < 0.01) throw broken("ECONNRESET");
    const { length } = response.body;
    const end = random() < 0.01 ? Math.floor(length * random()) : length;
    return answers(response.status, response.headers, response.body.slice(0, end));
  }
}

/** An InfluxDB: of a point with the same series and time it keeps the newest value. */
class Receiver {
  #points = new Map();

  take(body) {
    for (const line of new TextDecoder().decode(body).trim().split("\n")) {
      const [, series, fields, time] = /^(.+?[^\\]) (\S+) (\d+)$/.exec(line);
      this.#points.set(`${series} ${time}`, { series, fields });
    }
  }

  sums() {
    const sums = {};
    for (const { series, fields } of this.#points.values()) {
      const [, integration] = /,integration=((?:[^,\\]|\\.)+)/.exec(series);
      for (const [, outcome, digits] of fields.matchAll(/(\w+)=(-?\d+)i/g)) {
        const key = `${integration.replaceAll(/\\(.)/g, "$1")} ${outcome}`;
        sums[key] = (sums[key] ?? 0n) + BigInt(digits);
      }
    }
    return sums;
  }
}

/** What a supervisor learns of a process that was killed. The process itself runs no more of its code. */
const KILLED = Symbol("killed");

/** A program of a cluster, which a supervisor starts again a minute after it has ended. */
class Program {
  lives = 0;
  kills = 0;
  /** The codes of errors that have ended a life. */
  failures = [];
  #life;

  constructor(cluster, work) {
    this.cluster = cluster;
    this.work = work;
  }

  async run() {
    for (;;) {
      this.lives += 1;
      this.#life = new Life(this.cluster);
      try {
        const outcome = await Promise.race([this.work(this.#life), this.#life.killed]);
        if (outcome !== KILLED) return;
        this.kills += 1;
      } catch (error) {
        if (!TallyfoldError.is(error) || !mayEnd(error)) throw error;
        this.failures.push(error.code);
        this.#life.isOver = true;
      }
      await new Promise((resolve) => setTimeout(resolve, MINUTE));
    }
  }

  /** Kills the process in the middle of one of the next things that it does. */
  killSoon() {
    this.#life.left = 1 + Math.floor(this.cluster.random() * 8);
  }
}

/** Whether a process may end with an error: the network, or the state of a process whose clock was ahead. */
function mayEnd({ kind, code }) {
  return kind === "service" || kind === "response" || code === "invalid_checkpoint";
}

/** One process, from its start to its end, with a wall clock that may be wrong. */
class Life {
  /** How many things it does before it is killed. */
  left = Number.POSITIVE_INFINITY;
  isOver = false;
  #kill;
  killed = new Promise((resolve) => {
    this.#kill = () => resolve(KILLED);
  });
  #aheadMs;

  constructor(cluster) {
    this.cluster = cluster;
    const chance = cluster.random();
    if (chance < 0.05) this.#aheadMs = cluster.random() * 40 * DAY;
    else if (chance < 0.15) this.#aheadMs = cluster.random() * 3 * HOUR;
    else if (chance < 0.25) this.#aheadMs = -cluster.random() * 3 * HOUR;
    else this.#aheadMs = 0;
    this.client = clientOf(cluster.sandbox, {
      now: this.now,
      timeoutMs: Number.POSITIVE_INFINITY,
      maxRetries: 3,
      fetch: async (url, init) => {
        await this.act();
        const response = await cluster.fetch(url, init);
        await this.act();
        return response;
      },
    });
  }

  now = () => {
    const { time, random } = this.cluster;
    // Somebody sets the clock.
    if (random() < 0.0005) this.#aheadMs = random() < 0.5 ? 0 : (random() - 0.5) * 6 * HOUR;
    return { monotonicMs: time.atMs - START, unixMs: Math.round(time.atMs + this.#aheadMs) };
  };

  /** What is stored under a name. */
  load(name) {
    return this.cluster.documents.get(name);
  }

  /** Stores a document; the process may be killed before or after it. */
  async store(name, document) {
    await this.act();
    this.cluster.documents.set(name, document);
    await this.act();
  }

  /** Sends a message to the receiver; the process, or the connection, may end before or after it is taken. */
  send = async (_, { body }) => {
    const { random, receiver } = this.cluster;
    await this.act();
    if (random() < 0.02) throw broken("ECONNRESET");
    if (random() < 0.02) return new Response("busy", { status: 503 });
    receiver.take(body);
    await this.act();
    if (random() < 0.02) throw broken("ECONNRESET");
    return new Response(null, { status: 204 });
  };

  /** Counts what a process does to the world. When it is its last thing, it never goes on. */
  async act() {
    this.left -= 1;
    if (this.left <= 0) this.isOver = true;
    if (!this.isOver) return;
    this.#kill();
    await new Promise(() => {});
  }

  /** Waits until the wall clock of the machine, which is right, shows that time. */
  until = (ms) =>
    new Promise((resolve) => setTimeout(resolve, Math.max(0, ms - this.cluster.time.atMs)));
}

/** Running totals for a scrape. */
async function scrape(life) {
  const ledger = new Ledger(life.load("scrape"));
  const range = { start: new Date(START), end: new Date(END) };
  const revisions = life.client.follow({
    ...COUNTED,
    ...range,
    state: ledger.state,
    settleMs: SETTLE,
  });
  for await (const revision of revisions) {
    const before = totalOf(ledger);
    await ledger.add(revision, revisions.state(), (document) => life.store("scrape", document));
    assert.ok(totalOf(ledger) >= before);
  }
}

function totalOf(ledger) {
  const values = ledger.counters().flatMap((counter) => counter.values);
  return values.reduce((sum, { value }) => sum + value, 0n);
}

/** Revisions for a receiver that adds them up, of what is due, once an hour. */
async function send(life) {
  const store = (document) => life.store("send", document);
  const outbox = new Outbox(life.load("send"), { format: FORMAT, store });
  const options = { url: "http://localhost/write", fetch: life.send, now: life.now };
  const range = { start: new Date(START), end: new Date(END) };
  for (;;) {
    await outbox.push(options);
    const asked = { ...COUNTED, ...range, state: outbox.state, once: true, settleMs: SETTLE };
    const revisions = life.client.follow(asked);
    for await (const revision of revisions) {
      await outbox.put(revision, revisions.state());
      await outbox.push(options);
    }
    const isSettled = outbox.state !== undefined && life.cluster.time.atMs > END + 6 * HOUR;
    if (isSettled) return;
    await life.until(life.cluster.time.atMs + HOUR);
  }
}

/** Every night the last days that are not settled yet, each with a checkpoint of its own. */
async function backfill(life) {
  const { documents, time } = life.cluster;
  if (!documents.has("backfill")) documents.set("backfill", new Map());
  const days = documents.get("backfill");
  for (let day = START; day < END; day += DAY) {
    for (;;) {
      const found = days.get(day) ?? { checkpoint: memory() };
      days.set(day, found);
      if (found.isSettled) break;
      await life.until(day + DAY + 2 * HOUR);
      const { load, save } = found.checkpoint;
      const checkpoint = {
        load,
        save: async (name, json) => {
          await life.act();
          save(name, json);
          await life.act();
        },
      };
      const range = { start: new Date(day), end: new Date(day + DAY) };
      const table = await life.client.collect({ ...COUNTED, ...range, checkpoint });
      const isSettled = table.provisional.length === 0;
      await life.act();
      days.set(day, { ...found, table: JSON.stringify(table), isSettled });
      if (!isSettled) await life.until(time.atMs + HOUR);
    }
  }
}

function broken(code) {
  return Object.assign(new TypeError("fetch failed"), { cause: { code } });
}

/** Lets everything happen that needs no time. */
async function quiet() {
  for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate);
}

/** How often each word occurs. */
function tally(words) {
  const counts = new Map();
  for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1);
  return Array.from(counts, ([word, count]) => `${count} × ${word}`).join(", ");
}

/** Numbers from 0 to 1, always the same for a seed (mulberry32). */
function randomOf(from) {
  let state = from >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const WORK = { scrape, send, backfill };
const [, , seed, ...names] = process.argv;
await month(Number(seed), names);
