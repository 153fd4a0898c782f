// The explorer's drawing: numbers in, pixels out. Nothing here knows of the explorer's state.

// ---- Colours

/** Colour maps, each 256 RGB triples in base64, as tables of opaque pixels. */
function colourTables(colours) {
  const pixel = (rgb, k) => (255 << 24 | rgb[3 * k + 2] << 16 | rgb[3 * k + 1] << 8 | rgb[3 * k]) >>> 0;
  return Object.fromEntries(Object.entries(colours).map(([name, text]) => {
    const rgb = fromBase64(text);
    return [name, Uint32Array.from({ length: 256 }, (_, k) => pixel(rgb, k))];
  }));
}

/** From smallest to largest; `top` below 1 leaves out the few largest; `skip` is one patch. */
function scaleOf(lists, top = 1, skip = -1) {
  let low = Infinity, high = -Infinity, count = 0;
  for (const list of lists) for (let k = 0; k < list.length; k++) {
    if (k === skip) continue;
    if (list[k] < low) low = list[k];
    if (list[k] > high) high = list[k];
    count++;
  }
  let clipped = skip >= 0;
  if (top < 1 && high > low) {
    const bins = new Uint32Array(4096), width = (high - low) / 4096;
    for (const list of lists) for (let k = 0; k < list.length; k++) {
      if (k !== skip) bins[Math.min(4095, Math.floor((list[k] - low) / width))]++;
    }
    let left = Math.floor(count * (1 - top)), bin = 4095;
    while (bin > 0 && left >= bins[bin]) left -= bins[bin--];
    clipped ||= bin < 4095;
    high = low + (bin + 1) * width;
  }
  return { low, high: Math.max(high, low + 1e-12), clipped };
}

/** Zero in the middle: for differences. */
function scaleAround(list) {
  let most = 1e-12;
  for (const value of list) most = Math.max(most, Math.abs(value));
  return { low: -most, high: most, clipped: false };
}

/** Values to opaque pixels. */
function paint(values, table, { low, high }, pixels) {
  const factor = 256 / (high - low); // as matplotlib cuts 0..1 into 256
  for (let k = 0; k < values.length; k++) {
    const shade = Math.floor((values[k] - low) * factor);
    pixels[k] = table[shade < 0 ? 0 : shade > 255 ? 255 : shade];
  }
}

/** A colour table as a CSS gradient. */
function gradient(table) {
  const stops = [];
  for (let k = 0; k <= 16; k++) {
    const c = table[Math.min(255, 16 * k)];
    stops.push(`rgb(${c & 255} ${c >> 8 & 255} ${c >> 16 & 255})`);
  }
  return `linear-gradient(90deg, ${stops.join()})`;
}

// ---- Canvases

function newCanvas(width, height) {
  return Object.assign(document.createElement("canvas"), { width, height });
}

/** As many pixels as the screen has in this place. */
function fitCanvas(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  const w = Math.max(1, Math.round(width * ratio)), h = Math.max(1, Math.round(height * ratio));
  if (canvas.width !== w || canvas.height !== h) Object.assign(canvas, { width: w, height: h });
  return ratio;
}

function canvasOf(values, width, height, table, scale) {
  const canvas = newCanvas(width, height), context = canvas.getContext("2d");
  const image = context.createImageData(width, height);
  paint(values, table, scale, new Uint32Array(image.data.buffer));
  context.putImageData(image, 0, 0);
  return canvas;
}

/** The picture without its colours: every colour on screen then belongs to the map. */
function greyCanvas(bitmap) {
  const canvas = newCanvas(bitmap.width, bitmap.height);
  const context = canvas.getContext("2d", { willReadFrequently: true });
  context.drawImage(bitmap, 0, 0);
  const image = context.getImageData(0, 0, canvas.width, canvas.height), d = image.data;
  for (let k = 0; k < d.length; k += 4) {
    d[k] = d[k + 1] = d[k + 2] = (d[k] * 19595 + d[k + 1] * 38470 + d[k + 2] * 7471 + 0x8000) >> 16;
  }
  context.putImageData(image, 0, 0);
  return canvas;
}

/** PIL's bicubic enlargement of a map, so that smooth means the same here and in Python. */
function enlarge(values, rows, cols, height, width) {
  const cubic = (x) => (x = Math.abs(x), x < 1 ? (1.5 * x - 2.5) * x * x + 1
    : x < 2 ? ((-0.5 * x + 2.5) * x - 4) * x + 2 : 0);
  const taps = (size, out) => Array.from({ length: out }, (_, o) => {
    const centre = (o + 0.5) * size / out, first = Math.max(0, Math.floor(centre - 1.5));
    const last = Math.min(size, Math.floor(centre + 2.5)), weights = [];
    for (let i = first; i < last; i++) weights.push(cubic(i + 0.5 - centre));
    const total = weights.reduce((a, b) => a + b, 0);
    return [first, weights.map((w) => w / total)];
  });
  const wide = new Float32Array(rows * width), out = new Float32Array(height * width);
  taps(cols, width).forEach(([first, weights], x) => {
    for (let r = 0; r < rows; r++) {
      weights.forEach((w, k) => { wide[r * width + x] += w * values[r * cols + first + k]; });
    }
  });
  taps(rows, height).forEach(([first, weights], y) => weights.forEach((w, k) => {
    for (let x = 0; x < width; x++) out[y * width + x] += w * wide[(first + k) * width + x];
  }));
  return out;
}

/** A map over all of a canvas: its patches as blocks, or smooth. */
function drawMap(context, width, height, values, [rows, cols], { table, scale, opacity, smooth }) {
  let map;
  if (smooth) {
    const h = Math.max(rows, Math.min(448, rows * 16)), w = Math.round(h * cols / rows);
    map = canvasOf(enlarge(values, rows, cols, h, w), w, h, table, scale);
  } else map = canvasOf(values, cols, rows, table, scale);
  context.globalAlpha = opacity;
  context.imageSmoothingEnabled = smooth;
  context.drawImage(map, 0, 0, width, height);
  context.globalAlpha = 1;
}

/** A frame that is seen on every ground: a line with an edge of another colour. */
function frame(context, x, y, w, h, inner, outer, width = 2) {
  context.lineWidth = width + 2;
  context.strokeStyle = outer;
  context.strokeRect(x, y, w, h);
  context.lineWidth = width;
  context.strokeStyle = inner;
  context.strokeRect(x, y, w, h);
}

/** A frame around one patch of a map that fills the canvas. */
function framePatch(context, [row, col], [rows, cols], width, height, inner, line) {
  const w = width / cols, h = height / rows;
  frame(context, col * w, row * h, w, h, inner, "#000a", line);
}

// ---- The wall

/** As many blocks as make the tiles largest; a block is some layers, one under the other. */
function wallLayout(L, H, aspect, width, most) {
  let best = null;
  for (let blocks = 1; blocks <= Math.min(4, L); blocks++) {
    const lines = Math.ceil(L / blocks), label = 24, gap = H > 12 ? 2 : 3, between = blocks > 1 ? 14 : 0;
    const room = (width - (blocks - 1) * between) / blocks - label;
    const tile = Math.floor(Math.min(room / H - gap, (most / lines - gap) / aspect, 96));
    if (!best || tile > best.w + 4) {
      const w = Math.max(tile, 6), h = Math.max(6, Math.round(w * aspect));
      const block = label + H * (w + gap) + between;
      best = { heads: H, blocks, lines, label, gap, w, h, block, width: blocks * block - between,
        height: 16 + lines * (h + gap) };
    }
  }
  return best;
}

/** Where the tile with this index has its upper left corner. */
function tilePlace({ heads, lines, label, gap, w, h, block }, index) {
  const line = Math.floor(index / heads);
  const x = Math.floor(line / lines) * block + label + (index % heads) * (w + gap);
  return [x, 16 + (line % lines) * (h + gap)];
}

/** The tile at this point, or -1. */
function tileAt(layout, count, x, y) {
  for (let index = 0; index < count; index++) {
    const [left, top] = tilePlace(layout, index);
    const inside = x >= left && x < left + layout.w + layout.gap;
    if (inside && y >= top && y < top + layout.h + layout.gap) return index;
  }
  return -1;
}

/** The maps of all layers and heads, unmagnified, side by side: layers[l]?.[h], as far as known. */
function contactSheet(layers, L, H, [rows, cols], table, scale) {
  const canvas = newCanvas(cols * H, rows * L), context = canvas.getContext("2d");
  const image = context.createImageData(cols, rows), pixels = new Uint32Array(image.data.buffer);
  for (let layer = 0; layer < L; layer++) for (let head = 0; head < H; head++) {
    const values = layers[layer]?.[head];
    if (!values || values.length !== rows * cols) continue;
    paint(values, table, scale ?? scaleOf([values]), pixels);
    context.putImageData(image, head * cols, layer * rows);
  }
  return canvas;
}

// ---- The sheet to take away

/** Words in lines that are no wider than this. */
function wrap(context, text, width) {
  const lines = [""];
  for (const word of text.split(" ")) {
    const longer = `${lines.at(-1)} ${word}`.trim();
    if (context.measureText(longer).width > width) lines.push(word);
    else lines[lines.length - 1] = longer;
  }
  return lines;
}

/** A picture, its title, its words and its legend on one sheet of white paper. */
function drawSheet({ size: [w, h], family, title, words, legend: [low, high, note], table, drawing }) {
  const width = 896, height = Math.round(width * h / w), edge = 32;
  const font = (weight) => `${weight} 24px ${family}`;
  const canvas = newCanvas(width + 2 * edge, height + 300), context = canvas.getContext("2d");
  context.font = font(400);
  const lines = wrap(context, words, width);
  canvas.height = height + 2 * edge + 40 + lines.length * 34 + 56;
  context.fillStyle = "#fff";
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.translate(edge, edge);
  drawing(context, width, height);
  context.fillStyle = "#1b1f24";
  context.textBaseline = "top";
  context.font = font(600);
  context.fillText(title, 0, height + 20, width);
  context.font = font(400);
  lines.forEach((line, k) => context.fillText(line, 0, height + 60 + 34 * k, width));
  const y = height + 76 + 34 * lines.length, x = context.measureText(low).width + 12;
  const ramp = Float32Array.from({ length: 256 }, (_, k) => k);
  context.fillText(low, 0, y);
  context.drawImage(canvasOf(ramp, 256, 1, table, { low: 0, high: 256 }), x, y + 2, 256, 20);
  context.fillText(`${high}   ${note}`, x + 268, y);
  return canvas;
}
