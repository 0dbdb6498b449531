#!/usr/bin/env node
// Runs the binary of this platform, which npm has installed as an optional dependency, and ends as it ends.
"use strict";

const { spawn } = require("node:child_process");
const { closeSync, openSync } = require("node:fs");
const { optionalDependencies, version } = require("./package.json");

/** What the command says by its exit code if its set-up is wrong. */
const WRONG_SETUP = 2;

const platform = `${process.platform}-${process.arch}`;
const name = `@tallyfold/cli-${platform}`;

const file = binary();
if (file !== undefined) run(file);

/** The path of the binary; without one, the reason is on stderr. */
function binary() {
  const program = process.platform === "win32" ? "tallyfold.exe" : "tallyfold";
  try {
    return require.resolve(`${name}/bin/${program}`);
  } catch {
    fail(
      name in optionalDependencies
        ? `the package ${name}@${version} is missing, which holds the binary for this machine. npm leaves it out if optional ` +
            "dependencies are omitted (--omit=optional, --no-optional), or if node_modules or a lock file comes from another " +
            "platform. Install tallyfold-cli again on this machine, with optional dependencies."
        : `there is no binary for ${platform}. There is one for ${platforms()}. Elsewhere, \`cargo install tallyfold-cli\` compiles it.`,
    );
  }
}

function platforms() {
  return Object.keys(optionalDependencies)
    .map((known) => known.replace("@tallyfold/cli-", ""))
    .join(", ");
}

function fail(reason) {
  console.error(`tallyfold: ${reason}`);
  process.exitCode = WRONG_SETUP;
}

function run(file) {
  const child = spawn(file, process.argv.slice(2), { stdio: "inherit" });
  const handlers = passSignals(child);
  child.on("error", (error) => fail(`${file} can't be started: ${error.message}`));
  child.on("exit", (code, signal) => {
    for (const [signal, handler] of handlers) process.off(signal, handler);
    // A command that was ended by a signal looks so to the caller, too.
    // The code is for a signal that Node ignores.
    process.exitCode = code ?? 1;
    if (signal !== null) process.kill(process.pid, signal);
  });
}

/** Hands signals on, and lets this process live until the command has ended because of them. */
function passSignals(child) {
  const atTerminal = hasTerminal();
  const handlers = ["SIGTERM", "SIGHUP", "SIGINT", "SIGQUIT"].map((signal) => {
    // A terminal gives the signals of its keys to the command itself. The same signal twice would mean "end at once".
    const own = atTerminal && (signal === "SIGINT" || signal === "SIGQUIT");
    return [signal, () => own || child.kill(signal)];
  });
  for (const [signal, handler] of handlers) process.on(signal, handler);
  return handlers;
}

/** Whether this process belongs to a terminal, even if its input and output are redirected. */
function hasTerminal() {
  try {
    closeSync(openSync("/dev/tty", "r"));
    return true;
  } catch {
    return false;
  }
}
