// From numbers to pixels: scales, colours, the wall's layout.

import assert from "node:assert/strict";
import { afterEach, describe, test } from "node:test";
import {
  colourTables,
  enlarge,
  gradient,
  paint,
  scaleAround,
  scaleOf,
} from "../../vit_demo/ui/static/explorer/draw.js";
import { labTable, spread } from "../../vit_demo/ui/static/explorer/eye.js";
import {
  contactSheet,
  tileAt,
  tilePlace,
  wallLayout,
} from "../../vit_demo/ui/static/explorer/sheets.js";
import { assertClose, fixtures } from "./fixtures.js";

test("smooth is Pillow's bicubic", () => {
  const { heat, expected } = fixtures.enlarge;
  assertClose(enlarge(heat, 5, 7, 40, 56), expected, { atol: 1e-5 });
});

describe("colours", () => {
  for (const { name, table, values, low, high, expected } of fixtures.paint) {
    test(`${name} is matplotlib's, also outside of the scale`, () => {
      const tables = colourTables({ [name]: table });
      const pixels = new Uint32Array(values.length);
      paint(values, tables[name], { low, high }, pixels);
      assert.deepEqual([...new Uint8Array(pixels.buffer)], expected);
    });
  }

  test("a gradient goes from the first colour to the last", () => {
    const { name, table } = fixtures.paint[0];
    const stops = gradient(colourTables({ [name]: table })[name]).match(/rgb\([\d ]+\)/g);
    const bytes = [...atob(table)].map((letter) => letter.charCodeAt(0));
    assert.equal(stops.length, 17);
    assert.equal(stops[0], `rgb(${bytes.slice(0, 3).join(" ")})`);
    assert.equal(stops[16], `rgb(${bytes.slice(-3).join(" ")})`);
  });
});

describe("scales", () => {
  const values = Float32Array.from({ length: 1000 }, (_, k) => k);

  test("from the smallest to the largest, without the patch that asks", () => {
    assert.deepEqual(scaleOf([[3, 1], [2]]), { low: 1, high: 3, clipped: false });
    assert.deepEqual(scaleOf([[3, 1, 9]], 1, 2), { low: 1, high: 3, clipped: true });
    const flat = scaleOf([[2, 2]]);
    assert.ok(flat.high > flat.low);
  });

  test("a few peaks are left out", () => {
    const { low, high, clipped } = scaleOf([values], 0.99);
    const above = values.filter((value) => value > high).length;
    assert.equal(low, 0);
    assert.ok(clipped && above > 5 && above <= 10, `${above} of 1000`);
  });

  test("of a difference zero is in the middle", () => {
    assert.deepEqual(scaleAround([[-3], [1]]), { low: -3, high: 3, clipped: false });
    assert.deepEqual(scaleAround([[-3, 1, 9]], 1, 2), { low: -3, high: 3, clipped: true });
    const { low, high, clipped } = scaleAround([values, values.map((x) => -x)], 0.99);
    assert.ok(clipped && low === -high && high > 980 && high < 995, `${high}`);
  });
});

describe("to the eye", () => {
  const pixel = (r, g, b) => ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;

  test("colours in CIELAB are the published ones", () => {
    const lab = labTable(Uint32Array.of(pixel(255, 255, 255), pixel(255, 0, 0), pixel(0, 0, 255)));
    const published = [100, 0, 0, 53.24, 80.09, 67.2, 32.3, 79.19, -107.86];
    assertClose(lab, published, { atol: 0.1 });
  });

  test("heads that are drawn alike do not differ, whatever their values", () => {
    const greys = Uint32Array.from({ length: 256 }, (_, k) => pixel(k, k, k));
    const scale = { low: 0, high: 1 };
    const alike = [[Float32Array.of(0.5, 2), Float32Array.of(0.501, 7)]];
    assert.equal(spread(alike, [scale], greys), 0);
    const black = [[Float32Array.of(0, 0), Float32Array.of(1, 1)]];
    assert.ok(Math.abs(spread(black, [scale], greys) - 50) < 1e-3); // half of black to white
    const half = [...black, ...alike];
    assert.ok(Math.abs(spread(half, [scale, scale], greys) - 25) < 1e-3);
  });
});

describe("the wall", () => {
  const shapes = [
    [12, 12, 1, 700],
    [6, 3, 1, 300],
    [24, 16, 0.5, 340],
    [2, 2, 3, 1200],
  ];
  for (const [L, H, aspect, width] of shapes) {
    test(`${L} x ${H} tiles in ${width} pixels neither overlap nor leave the wall`, () => {
      const layout = wallLayout(L, H, aspect, width, 680);
      const seen = new Set();
      for (let index = 0; index < L * H; index++) {
        const [x, y] = tilePlace(layout, index);
        assert.ok(x >= 0 && x + layout.w <= layout.width, `tile ${index} at ${x}`);
        assert.ok(y >= 0 && y + layout.h <= layout.height);
        assert.equal(tileAt(layout, L * H, x + layout.w / 2, y + layout.h / 2), index);
        seen.add(`${x},${y}`);
      }
      assert.equal(seen.size, L * H);
      assert.ok(layout.width <= width, `${layout.width} of ${width}`);
      assert.equal(tileAt(layout, L * H, 1, 1), -1);
    });
  }

  afterEach(() => {
    delete globalThis.document;
  });

  test("every known map is painted in its place", () => {
    const written = [];
    const context = {
      createImageData: (width, height) => ({ data: new Uint8ClampedArray(4 * width * height) }),
      putImageData: ({ data }, x, y) => written.push({ x, y, pixels: [...data] }),
    };
    globalThis.document = { createElement: () => ({ getContext: () => context }) };
    const table = Uint32Array.from({ length: 256 }, (_, k) => (0xff000000 | k) >>> 0);
    const layers = [
      [[0, 1]],
      [
        [1, 0],
        [0.5, 0.5],
      ],
    ]; // the second head of the first layer is unknown
    const scales = [
      { low: 0, high: 1 },
      { low: 0, high: 2 },
    ];
    const sheet = contactSheet(layers, 2, 2, [1, 2], table, scales);
    assert.deepEqual([sheet.width, sheet.height], [4, 2]);
    assert.deepEqual(written, [
      { x: 0, y: 0, pixels: [0, 0, 0, 255, 255, 0, 0, 255] },
      { x: 0, y: 1, pixels: [128, 0, 0, 255, 0, 0, 0, 255] }, // on the scale of its layer
      { x: 2, y: 1, pixels: [64, 0, 0, 255, 64, 0, 0, 255] },
    ]);
  });
});
