// @ts-check
// The explorer's drawing: numbers in, pixels out. Nothing here knows of the explorer's state.

import { fromBase64 } from "./blob.js";

/** Colour maps, each 256 RGB triples in base64, as tables of opaque pixels.
 * @param {Record<string, string>} colours */
export function colourTables(colours) {
  /**
   * @param {Uint8Array} rgb
   * @param {number} k */
  const pixel = (rgb, k) =>
    ((255 << 24) | (rgb[3 * k + 2] << 16) | (rgb[3 * k + 1] << 8) | rgb[3 * k]) >>> 0;
  return Object.fromEntries(
    Object.entries(colours).map(([name, text]) => {
      const rgb = fromBase64(text);
      return [name, Uint32Array.from({ length: 256 }, (_, k) => pixel(rgb, k))];
    }),
  );
}

/** From smallest to largest; `top` below 1 leaves out the few largest; `skip` is one patch.
 * @param {ArrayLike<number>[]} lists
 * @param {number} [top]
 * @param {number} [skip] */
export function scaleOf(lists, top = 1, skip = -1) {
  let low = Infinity,
    high = -Infinity,
    count = 0;
  for (const list of lists)
    for (let k = 0; k < list.length; k++) {
      if (k === skip) continue;
      if (list[k] < low) low = list[k];
      if (list[k] > high) high = list[k];
      count++;
    }
  let clipped = skip >= 0;
  if (top < 1 && high > low) {
    const bins = new Uint32Array(4096),
      width = (high - low) / 4096;
    for (const list of lists)
      for (let k = 0; k < list.length; k++) {
        if (k !== skip) bins[Math.min(4095, Math.floor((list[k] - low) / width))]++;
      }
    let left = Math.floor(count * (1 - top)),
      bin = 4095;
    while (bin > 0 && left >= bins[bin]) left -= bins[bin--];
    clipped ||= bin < 4095;
    high = low + (bin + 1) * width;
  }
  return { low, high: Math.max(high, low + 1e-12), clipped };
}

/** The same with zero in the middle: for values on both sides of it.
 * @param {ArrayLike<number>[]} lists
 * @param {number} [top]
 * @param {number} [skip] */
export function scaleAround(lists, top = 1, skip = -1) {
  const sizes = lists.map((list) => Float64Array.from(list, Math.abs)),
    { high, clipped } = scaleOf(sizes, top, skip);
  return { low: -high, high, clipped };
}

/** The colour of a value, as matplotlib cuts 0..1 into 256.
 * @param {number} value
 * @param {Scale} scale */
export function shadeOf(value, { low, high }) {
  const shade = Math.floor(((value - low) * 256) / (high - low));
  return shade < 0 ? 0 : Math.min(shade, 255);
}

/** Values to opaque pixels.
 * @param {ArrayLike<number>} values
 * @param {ColourTable} table
 * @param {Scale} scale
 * @param {Uint32Array} pixels */
export function paint(values, table, scale, pixels) {
  for (let k = 0; k < values.length; k++) pixels[k] = table[shadeOf(values[k], scale)];
}

/** A colour table as a CSS gradient.
 * @param {ColourTable} table */
export function gradient(table) {
  const stops = [];
  for (let k = 0; k <= 16; k++) {
    const c = table[Math.min(255, 16 * k)];
    stops.push(`rgb(${c & 255} ${(c >> 8) & 255} ${(c >> 16) & 255})`);
  }
  return `linear-gradient(90deg, ${stops.join()})`;
}

/**
 * @param {number} width
 * @param {number} height */
export function newCanvas(width, height) {
  return Object.assign(document.createElement("canvas"), { width, height });
}

/** As many pixels as the screen has in this place.
 * @param {HTMLCanvasElement} canvas
 * @param {number} width
 * @param {number} height */
export function fitCanvas(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  const w = Math.max(1, Math.round(width * ratio)),
    h = Math.max(1, Math.round(height * ratio));
  if (canvas.width !== w || canvas.height !== h) Object.assign(canvas, { width: w, height: h });
  return ratio;
}

/**
 * @param {ArrayLike<number>} values
 * @param {number} width
 * @param {number} height
 * @param {ColourTable} table
 * @param {Scale} scale */
export function canvasOf(values, width, height, table, scale) {
  const canvas = newCanvas(width, height),
    context = canvas.getContext("2d");
  const image = context.createImageData(width, height);
  paint(values, table, scale, new Uint32Array(image.data.buffer));
  context.putImageData(image, 0, 0);
  return canvas;
}

/** The picture without its colours: every colour on screen then belongs to the map.
 * @param {ImageBitmap} bitmap */
export function greyCanvas(bitmap) {
  const canvas = newCanvas(bitmap.width, bitmap.height);
  const context = canvas.getContext("2d", { willReadFrequently: true });
  context.drawImage(bitmap, 0, 0);
  const image = context.getImageData(0, 0, canvas.width, canvas.height),
    d = image.data;
  for (let k = 0; k < d.length; k += 4) {
    d[k] = d[k + 1] = d[k + 2] = (d[k] * 19595 + d[k + 1] * 38470 + d[k + 2] * 7471 + 0x8000) >> 16;
  }
  context.putImageData(image, 0, 0);
  return canvas;
}

/** PIL's bicubic enlargement of a map, so that smooth means the same here and in Python.
 * @param {ArrayLike<number>} values
 * @param {number} rows
 * @param {number} cols
 * @param {number} height
 * @param {number} width */
export function enlarge(values, rows, cols, height, width) {
  /** @param {number} signed */
  const cubic = (signed) => {
    const x = Math.abs(signed);
    if (x < 1) return (1.5 * x - 2.5) * x * x + 1;
    return x < 2 ? ((-0.5 * x + 2.5) * x - 4) * x + 2 : 0;
  };
  /**
   * @param {number} size
   * @param {number} out
   * @returns {[first: number, weights: number[]][]} */
  const taps = (size, out) =>
    Array.from({ length: out }, (_, o) => {
      const centre = ((o + 0.5) * size) / out,
        first = Math.max(0, Math.floor(centre - 1.5));
      const last = Math.min(size, Math.floor(centre + 2.5)),
        weights = [];
      for (let i = first; i < last; i++) weights.push(cubic(i + 0.5 - centre));
      const total = weights.reduce((a, b) => a + b, 0);
      return [first, weights.map((w) => w / total)];
    });
  const wide = new Float32Array(rows * width),
    out = new Float32Array(height * width);
  taps(cols, width).forEach(([first, weights], x) => {
    for (let r = 0; r < rows; r++) {
      weights.forEach((w, k) => {
        wide[r * width + x] += w * values[r * cols + first + k];
      });
    }
  });
  taps(rows, height).forEach(([first, weights], y) => {
    weights.forEach((w, k) => {
      for (let x = 0; x < width; x++) out[y * width + x] += w * wide[(first + k) * width + x];
    });
  });
  return out;
}

/** A map over all of a canvas: its patches as blocks, or smooth.
 * @param {CanvasRenderingContext2D} context
 * @param {number} width
 * @param {number} height
 * @param {ArrayLike<number>} values
 * @param {Grid} grid
 * @param {{ table: ColourTable; scale: Scale; opacity: number; smooth: boolean }} given2 */
export function drawMap(
  context,
  width,
  height,
  values,
  [rows, cols],
  { table, scale, opacity, smooth },
) {
  let map;
  if (smooth) {
    const h = Math.max(rows, Math.min(448, rows * 16)),
      w = Math.round((h * cols) / rows);
    map = canvasOf(enlarge(values, rows, cols, h, w), w, h, table, scale);
  } else map = canvasOf(values, cols, rows, table, scale);
  context.globalAlpha = opacity;
  context.imageSmoothingEnabled = smooth;
  context.drawImage(map, 0, 0, width, height);
  context.globalAlpha = 1;
}

/** A frame that is seen on every ground: a line with an edge of another colour.
 * @param {CanvasRenderingContext2D} context
 * @param {number} x
 * @param {number} y
 * @param {number} w
 * @param {number} h
 * @param {string} inner
 * @param {string} outer
 * @param {number} [width] */
export function frame(context, x, y, w, h, inner, outer, width = 2) {
  context.lineWidth = width + 2;
  context.strokeStyle = outer;
  context.strokeRect(x, y, w, h);
  context.lineWidth = width;
  context.strokeStyle = inner;
  context.strokeRect(x, y, w, h);
}

/** A frame around one patch of a map that fills the canvas.
 * @param {CanvasRenderingContext2D} context
 * @param {Patch} patch
 * @param {Grid} grid
 * @param {number} width
 * @param {number} height
 * @param {string} inner
 * @param {number} line */
export function framePatch(context, [row, col], [rows, cols], width, height, inner, line) {
  const w = width / cols,
    h = height / rows;
  frame(context, col * w, row * h, w, h, inner, "#000a", line);
}
