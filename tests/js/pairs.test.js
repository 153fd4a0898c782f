// Two maps on one grid, as compare.py lays them.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  around,
  commonGrid,
  matching,
  matchingPatch,
  onGrid,
  seenCells,
  shareOfAll,
  spearman,
} from "../../vit_demo/ui/static/compare/pairs.js";
import { assertClose, fixtures } from "./fixtures.js";

const CLOSE = { rtol: 1e-9, atol: 1e-12 };

describe("two explanations", () => {
  for (const one of fixtures.pairs) {
    test(one.title, () => {
      const places = one.places,
        frame = around(places[0].box, places[1].box);
      assert.deepEqual(frame, one.frame);
      const grid = commonGrid(frame, places);
      assert.deepEqual(grid, one.grid);
      const boxes = places.map(({ box }) => box),
        seen = seenCells(boxes, frame, grid);
      assert.deepEqual(seen.map(Number), one.seen);
      const laid = one.heats.map((heat, k) =>
        onGrid(one.shares ? heat : shareOfAll(heat), places[k], frame, grid),
      );
      for (const k of [0, 1]) assertClose(laid[k], one.maps[k], CLOSE, `map ${k}`);
      const both = laid.map((map) => [...map].filter((_, cell) => seen[cell]));
      assertClose([spearman(both[0], both[1])], [one.correlation], { atol: 1e-9 });
      assert.ok(one.patches.length > 3);
      for (const { patch, other } of one.patches)
        assert.deepEqual(matchingPatch(patch, places[0], places[1], one.bounds), other);
    });
  }
});

test("an index in the same place", () => {
  assert.ok(fixtures.matching.length > 100);
  for (const [index, count, others, expected] of fixtures.matching)
    assert.equal(matching(index, count, others), expected);
});

test("flat maps", () => {
  assert.equal(spearman([1, 1, 1], [2, 2, 2]), 1);
  assert.equal(spearman([1, 1, 1], [1, 2, 3]), 0);
  assert.deepEqual([...shareOfAll([0, 0])], [0, 0]);
});
