// node pack.mjs BINARIES OUT [--all]: makes the packages of npm from what scripts/build-cli.sh has made, one for each
// platform whose binary is in BINARIES (Rust's target/tallyfold), and the one that people install. With --all, a
// missing platform is an error. Prints the tarballs.

import { execFileSync } from "node:child_process";
import { access, chmod, copyFile, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";

/** The platforms, as Node names them, and the targets of Rust that run there, the first preferred. */
const PLATFORMS = {
  "linux-x64": ["x86_64-unknown-linux-musl", "x86_64-unknown-linux-gnu"],
  "linux-arm64": ["aarch64-unknown-linux-musl", "aarch64-unknown-linux-gnu"],
  "darwin-x64": ["x86_64-apple-darwin"],
  "darwin-arm64": ["aarch64-apple-darwin"],
  "win32-x64": ["x86_64-pc-windows-msvc"],
};

const here = import.meta.dirname;
const root = resolve(here, "../..");
const [binaries, out, all] = process.argv.slice(2);
if (out === undefined || (all !== undefined && all !== "--all")) {
  console.error("usage: node pack.mjs BINARIES OUT [--all]");
  process.exit(2);
}
const manifest = await readFile(join(root, "Cargo.toml"), "utf8");
const version = /^version = "(.+)"$/m.exec(manifest)?.[1];
if (version === undefined) throw new Error("Cargo.toml names no version");
const common = { version, license: "MIT OR Apache-2.0" };

await rm(out, { recursive: true, force: true });
const packages = [];
const missing = [];
for (const [platform, targets] of Object.entries(PLATFORMS)) {
  const binary = await firstThere(
    targets.map((target) => join(binaries, target, program(platform))),
  );
  if (binary === undefined) missing.push(platform);
  else packages.push(await platformPackage(platform, binary));
}
if (packages.length === 0 || (all && missing.length > 0)) {
  console.error(`no binary in ${binaries} for ${missing.join(", ")}`);
  process.exit(1);
}
packages.push(await mainPackage());
for (const folder of packages) {
  execFileSync("npm", ["pack", "--silent", "--pack-destination", resolve(out), resolve(folder)], {
    stdio: "inherit",
  });
}

function program(platform) {
  return platform.startsWith("win32") ? "tallyfold.exe" : "tallyfold";
}

async function firstThere(paths) {
  for (const path of paths) {
    try {
      await access(path);
      return path;
    } catch {
      // The next target may be there.
    }
  }
}

async function platformPackage(platform, binary) {
  const folder = join(out, `cli-${platform}`);
  const file = join(folder, "bin", program(platform));
  await mkdir(join(folder, "bin"), { recursive: true });
  await copyFile(binary, file);
  // What carries files from one build machine to the next may lose this.
  await chmod(file, 0o755);
  const [os, cpu] = platform.split("-");
  await finish(folder, {
    ...common,
    name: `@tallyfold/cli-${platform}`,
    description: `The binary of tallyfold-cli for ${platform}.`,
    os: [os],
    cpu: [cpu],
    files: ["bin", "LICENSE-*"],
    // Yarn would keep the binary in an archive, where it can't be run.
    preferUnplugged: true,
    publishConfig: { access: "public" },
  });
  await writeFile(
    join(folder, "README.md"),
    `# @tallyfold/cli-${platform}\n\nThe binary of the package \`tallyfold-cli\` for ${platform}. Install that one.\n`,
  );
  return folder;
}

async function mainPackage() {
  const folder = join(out, "tallyfold-cli");
  await mkdir(folder, { recursive: true });
  for (const name of ["tallyfold.cjs", "README.md"])
    await copyFile(join(here, name), join(folder, name));
  await chmod(join(folder, "tallyfold.cjs"), 0o755);
  await finish(folder, {
    ...common,
    name: "tallyfold-cli",
    description:
      "The command `tallyfold`: exact, grouped counts from an event router's metrics API.",
    keywords: ["metrics", "event-router", "event-delivery", "observability", "counts", "cli"],
    type: "commonjs",
    engines: { node: ">=20" },
    bin: { tallyfold: "tallyfold.cjs" },
    files: ["tallyfold.cjs", "LICENSE-*"],
    optionalDependencies: Object.fromEntries(
      Object.keys(PLATFORMS).map((platform) => [`@tallyfold/cli-${platform}`, version]),
    ),
  });
  return folder;
}

async function finish(folder, manifest) {
  for (const name of ["LICENSE", "LICENSE-MIT", "LICENSE-APACHE"])
    await copyFile(join(root, name), join(folder, name));
  await writeFile(join(folder, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
}
