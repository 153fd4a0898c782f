// The explorer's numbers are the library's.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { decode } from "../../vit_demo/ui/static/explorer/blob.js";
import { createMaps } from "../../vit_demo/ui/static/explorer/maps.js";
import {
  discarder,
  entropy,
  normalise,
  selectSmallest,
  specialPart,
  throughLayer,
} from "../../vit_demo/ui/static/explorer/maths.js";
import { assertClose, bufferOf, fixtures } from "./fixtures.js";

function check(maps, { state, expected, rtol, atol }) {
  const found = maps.mapOf(state, state.query);
  if (expected === null) assert.equal(found, null);
  else assertClose(found, expected, { rtol, atol }, JSON.stringify(state));
}

describe("maps", () => {
  for (const { title, blob, before = [], fetched = [], checks } of fixtures.maps) {
    test(title, () => {
      const maps = createMaps(decode(bufferOf(blob)));
      for (const one of before) check(maps, one);
      for (const { wanted, blob: rows } of fetched) {
        assert.equal(maps.remembers(wanted), false);
        maps.remember(wanted, bufferOf(rows));
        assert.equal(maps.remembers(wanted), true);
      }
      assert.ok(checks.length > 20);
      for (const one of checks) check(maps, one);
    });
  }
});

test("a blob is decoded in place", () => {
  const { file, header, arrays } = fixtures.blob;
  const buffer = bufferOf(file);
  const found = decode(buffer);
  assert.equal(found.model, header.model);
  assert.deepEqual(found.grid, header.grid);
  assert.deepEqual(Object.keys(found.arrays).sort(), Object.keys(arrays).sort());
  for (const [name, expected] of Object.entries(arrays)) {
    assertClose(found.arrays[name], expected, { rtol: 1e-7 }, name);
    assert.equal(found.arrays[name].buffer, buffer);
  }
});

test("other data are refused", () => {
  assert.throws(() => decode(new TextEncoder().encode("PNG! and so on, for a while").buffer));
});

describe("discard", () => {
  for (const { readout, rows, ratios, expected } of fixtures.discard) {
    test(`read-out ${readout}: of equal entries the first ones go`, () => {
      const discard = discarder(rows.length, readout);
      for (const [at, ratio] of ratios.entries()) {
        for (const [token, row] of rows.entries()) {
          const found = Float32Array.from(row);
          discard(found, token, ratio);
          assertClose(found, expected[at][token], { rtol: 1e-6 }, `${ratio}, row ${token}`);
        }
      }
    });
  }
});

test("a selection has the k smallest in front, the largest of them last", () => {
  const numbers = Float32Array.from({ length: 101 }, (_, k) => ((k * 37) % 50) / 7);
  for (const k of [1, 2, 50, 100, 101]) {
    const found = numbers.slice();
    const sorted = numbers.slice().sort();
    assert.equal(selectSmallest(found, found.length, k), sorted[k - 1]);
    assert.deepEqual(found.slice(0, k).sort(), sorted.slice(0, k));
  }
});

test("several vectors go through a layer as one by one", () => {
  const N = 5;
  const values = (count, seed) =>
    Float32Array.from({ length: count }, (_, k) => ((k * 7919 + seed) % 97) / 97);
  const matrix = values(N * N, 3);
  for (const count of [1, 3, 4, 7]) {
    const v = values(count * N, 11);
    const found = throughLayer(v, count, matrix, N, 0.3);
    for (let at = 0; at < count; at++) {
      for (let j = 0; j < N; j++) {
        let sum = 0;
        for (let i = 0; i < N; i++) sum += v[at * N + i] * matrix[j * N + i];
        const expected = 0.7 * sum + 0.3 * v[at * N + j];
        assertClose([found[at * N + j]], [expected], { rtol: 1e-6 });
      }
    }
  }
});

test("what is special about the heads has sum zero over them", () => {
  const all = Float32Array.of(1, 2, 3, 5, 5, -1); // three heads, two tokens: their mean is 3, 2
  assertClose(specialPart(all, 2, [0, 1, 2]), [-2, 0, 0, 3, 2, -3], { atol: 1e-6 });
  assertClose(specialPart(all, 2, [2]), [2, -3], { atol: 1e-6 });
});

test("entropy in bits: 0 for one patch, log2 n for all alike, whatever the signs", () => {
  assert.equal(entropy([0, 5, 0]), 0);
  assert.ok(Math.abs(entropy([2, 2, 2, 2]) - 2) < 1e-12);
  assert.ok(Math.abs(entropy([-2, 2, 2, -2]) - 2) < 1e-12);
  assert.ok(Math.abs(entropy([3, 1]) - (2 - 0.75 * Math.log2(3))) < 1e-12);
  assert.equal(entropy([0, 0]), 0);
});

test("a row sums to 1; of a row of zeros the token stays where it is", () => {
  const row = Float32Array.of(1, 2, 1);
  normalise(row, 0);
  assert.deepEqual([...row], [0.25, 0.5, 0.25]);
  const empty = new Float32Array(3);
  normalise(empty, 1);
  assert.deepEqual([...empty], [0, 1, 0]);
});
