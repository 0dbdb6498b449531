// The layout of the dashboard, as pictures without fonts. After a change that is meant, `node test/dashboard_pictures.mjs` writes
// them anew.

import assert from "node:assert/strict";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { after, before, describe, test } from "node:test";
import pixelmatch from "pixelmatch";
import { chromium } from "playwright-core";
import { PNG } from "pngjs";
import { CHROMIUM } from "./chromium.mjs";
import { COMPARED, compared, pictureOf } from "./dashboard_pictures.mjs";
import { World } from "./dashboard_world.mjs";

/** How much of a picture, and of its height, may differ: machines have other fonts, whose characters have other widths. */
const PIXELS = 0.02;
const HEIGHT = 0.02;

describe("the dashboard looks as in the picture", () => {
  let browser;
  let world;
  before(async () => {
    browser = await chromium.launch(CHROMIUM);
    world = await new World().listen();
  });
  after(async () => {
    world.close();
    await browser.close();
  });

  for (const [name, options] of Object.entries(COMPARED)) {
    test(name, async () => {
      const taken = await pictureOf(browser, world, options, true);
      try {
        assertAlike(PNG.sync.read(taken), PNG.sync.read(await readFile(compared(name))));
      } catch (error) {
        const folder = new URL("../../../.cache/pictures/", import.meta.url);
        await mkdir(folder, { recursive: true });
        await writeFile(new URL(`${name}.png`, folder), taken);
        error.message += `; what was seen is .cache/pictures/${name}.png`;
        throw error;
      }
    });
  }
});

function assertAlike(seen, wanted) {
  assert.equal(seen.width, wanted.width, "the width");
  const share = Math.abs(seen.height - wanted.height) / wanted.height;
  assert.ok(share <= HEIGHT, `the height is ${seen.height}, not ${wanted.height}`);
  const height = Math.min(seen.height, wanted.height);
  const part = ({ data, width }) => data.subarray(0, width * height * 4);
  const different = pixelmatch(part(seen), part(wanted), undefined, seen.width, height);
  const pixels = different / (seen.width * height);
  assert.ok(pixels <= PIXELS, `${(pixels * 100).toFixed(1)} % of the pixels differ`);
}
