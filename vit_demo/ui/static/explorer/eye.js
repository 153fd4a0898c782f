// @ts-check
// How much do maps differ to the eye? Distances between the colours in which they are drawn.

import { shadeOf } from "./draw.js";

/** The colours of a table in CIELAB (256 x 3), where distances are about what people see.
 * @param {ColourTable} table */
export function labTable(table) {
  /** @param {number} byte */
  const linear = (byte) => {
    const c = byte / 255;
    return c > 0.04045 ? ((c + 0.055) / 1.055) ** 2.4 : c / 12.92;
  };
  /** @param {number} x */
  const f = (x) => (x > 216 / 24389 ? Math.cbrt(x) : (x * 24389) / 27 / 116 + 16 / 116);
  const lab = new Float32Array(3 * table.length);
  table.forEach((pixel, k) => {
    const [r, g, b] = [pixel & 255, (pixel >> 8) & 255, (pixel >> 16) & 255].map(linear);
    const x = f((0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.9505),
      y = f(0.2126 * r + 0.7152 * g + 0.0722 * b),
      z = f((0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.089);
    lab.set([116 * y - 16, 500 * (x - y), 200 * (y - z)], 3 * k);
  });
  return lab;
}

/** How far the heads of a layer are from the mean of their colours: mean over layers, heads, patches.
 * @param {Vector[][]} layers
 * @param {Scale[]} scales
 * @param {ColourTable} table */
export function spread(layers, scales, table) {
  const lab = labTable(table);
  let total = 0,
    count = 0;
  layers.forEach((heads, layer) => {
    const at = new Uint16Array(heads.length); // where each head's colour is in the table
    for (let patch = 0; patch < heads[0].length; patch++) {
      let l = 0,
        a = 0,
        b = 0;
      for (let head = 0; head < heads.length; head++) {
        const o = 3 * shadeOf(heads[head][patch], scales[layer]);
        at[head] = o;
        l += lab[o] / heads.length;
        a += lab[o + 1] / heads.length;
        b += lab[o + 2] / heads.length;
      }
      for (const o of at) total += Math.hypot(lab[o] - l, lab[o + 1] - a, lab[o + 2] - b);
      count += heads.length;
    }
  });
  return total / count;
}
