// What pytest made with the library: see tests/ui/test_javascript.py.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";

const folder = process.env.VIT_DEMO_FIXTURES;
if (!folder) throw new Error("Run these tests with: pytest tests/ui/test_javascript.py");

export const fixtures = JSON.parse(readFileSync(join(folder, "fixtures.json"), "utf8"));

export function bufferOf(name) {
  const bytes = readFileSync(join(folder, name));
  return bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
}

export function assertClose(found, expected, { rtol = 0, atol = 0 }, what = "") {
  assert.equal(found.length, expected.length, what);
  for (let k = 0; k < expected.length; k++) {
    const off = Math.abs(found[k] - expected[k]);
    const allowed = atol + rtol * Math.abs(expected[k]);
    if (!(off <= allowed)) assert.fail(`${what} [${k}]: ${found[k]} is not ${expected[k]}`);
  }
}
