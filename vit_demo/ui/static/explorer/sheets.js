// @ts-check
// Many maps on one canvas: the layout of the wall, and the sheet that is saved as PNG.

import { canvasOf, newCanvas, paint } from "./draw.js";

/** As many blocks as make the tiles largest; a block is some layers, one under the other.
 * @param {number} L
 * @param {number} H
 * @param {number} aspect
 * @param {number} width
 * @param {number} most */
export function wallLayout(L, H, aspect, width, most) {
  let best = null;
  for (let blocks = 1; blocks <= Math.min(4, L); blocks++) {
    const lines = Math.ceil(L / blocks),
      label = 24,
      gap = H > 12 ? 2 : 3,
      between = blocks > 1 ? 14 : 0;
    const room = (width - (blocks - 1) * between) / blocks - label;
    const tile = Math.floor(Math.min(room / H - gap, (most / lines - gap) / aspect, 96));
    if (!best || tile > best.w + 4) {
      const w = Math.max(tile, 6),
        h = Math.max(6, Math.round(w * aspect));
      const block = label + H * (w + gap) + between;
      best = {
        heads: H,
        blocks,
        lines,
        label,
        gap,
        w,
        h,
        block,
        width: blocks * block - between,
        height: 16 + lines * (h + gap),
      };
    }
  }
  return best;
}

/** Where the tile with this index has its upper left corner.
 * @param {WallLayout} layout
 * @param {number} index */
export function tilePlace({ heads, lines, label, gap, w, h, block }, index) {
  const line = Math.floor(index / heads);
  const x = Math.floor(line / lines) * block + label + (index % heads) * (w + gap);
  return [x, 16 + (line % lines) * (h + gap)];
}

/** The tile at this point, or -1.
 * @param {WallLayout} layout
 * @param {number} count
 * @param {number} x
 * @param {number} y */
export function tileAt(layout, count, x, y) {
  for (let index = 0; index < count; index++) {
    const [left, top] = tilePlace(layout, index);
    const inside = x >= left && x < left + layout.w + layout.gap;
    if (inside && y >= top && y < top + layout.h + layout.gap) return index;
  }
  return -1;
}

/** The maps of all layers and heads, unmagnified, side by side: layers[l]?.[h], as far as known; each
 * layer on its own scale.
 * @param {Vector[][]} layers
 * @param {number} L
 * @param {number} H
 * @param {Grid} grid
 * @param {ColourTable} table
 * @param {Scale[]} scales */
export function contactSheet(layers, L, H, [rows, cols], table, scales) {
  const canvas = newCanvas(cols * H, rows * L),
    context = canvas.getContext("2d");
  const image = context.createImageData(cols, rows),
    pixels = new Uint32Array(image.data.buffer);
  for (let layer = 0; layer < L; layer++)
    for (let head = 0; head < H; head++) {
      const values = layers[layer]?.[head];
      if (!values || values.length !== rows * cols) continue;
      paint(values, table, scales[layer], pixels);
      context.putImageData(image, head * cols, layer * rows);
    }
  return canvas;
}

/** Words in lines that are no wider than this.
 * @param {CanvasRenderingContext2D} context
 * @param {string} text
 * @param {number} width */
function wrap(context, text, width) {
  const lines = [""];
  for (const word of text.split(" ")) {
    const longer = `${lines.at(-1)} ${word}`.trim();
    if (context.measureText(longer).width > width) lines.push(word);
    else lines[lines.length - 1] = longer;
  }
  return lines;
}

/** A picture, its title, its words and its legend on one sheet of white paper.
 * @param {any} given */
export function drawSheet({
  size: [w, h],
  family,
  title,
  words,
  legend: [low, high, note],
  table,
  drawing,
}) {
  const width = 896,
    height = Math.round((width * h) / w),
    edge = 32;
  /** @param {number} weight */
  const font = (weight) => `${weight} 24px ${family}`;
  const canvas = newCanvas(width + 2 * edge, height + 300),
    context = canvas.getContext("2d");
  context.font = font(400);
  const lines = wrap(context, words, width);
  const x = context.measureText(low).width + 12,
    right = x + 268,
    beside = `${high}   ${note}`,
    fits = right + context.measureText(beside).width <= width; // otherwise the note has its own lines
  const notes = fits ? [] : wrap(context, note, width);
  canvas.height = height + 2 * edge + 40 + (lines.length + notes.length) * 34 + 56;
  context.fillStyle = "#fff";
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.translate(edge, edge);
  drawing(context, width, height);
  context.fillStyle = "#1b1f24";
  context.textBaseline = "top";
  context.font = font(600);
  context.fillText(title, 0, height + 20, width);
  context.font = font(400);
  for (const [k, line] of lines.entries()) context.fillText(line, 0, height + 60 + 34 * k, width);
  const y = height + 76 + 34 * lines.length;
  const ramp = Float32Array.from({ length: 256 }, (_, k) => k);
  context.fillText(low, 0, y);
  context.drawImage(canvasOf(ramp, 256, 1, table, { low: 0, high: 256 }), x, y + 2, 256, 20);
  context.fillText(fits ? beside : high, right, y);
  for (const [k, line] of notes.entries()) context.fillText(line, 0, y + 34 * (k + 1), width);
  return canvas;
}
