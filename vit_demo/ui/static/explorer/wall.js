// @ts-check
// The wall of heads: every layer and head as a small map, on one colour scale.
// `explorer.wall`: layers[l][h] are the maps' values, order[k] is the [layer, head] of tile k.

import { fitCanvas, frame, scaleOf } from "./draw.js";
import { ARROWS, announce } from "./elements.js";
import { showLegend } from "./legend.js";
import { patchIndex } from "./picture.js";
import { contactSheet, tileAt, tilePlace, wallLayout } from "./sheets.js";
import { isClass, isOne } from "./state.js";
import { tileName } from "./words.js";

export const emptyWall = () => ({
  key: null,
  job: null,
  layers: [],
  scale: null,
  layout: null,
  order: [],
  hover: null,
});

/** All heads of all layers, a few milliseconds at a time, from the last layer down.
 * @param {Explorer} explorer */
export function prepareWall(explorer) {
  const { root, data, maps, state, wall, load } = explorer;
  if (!data) return;
  const { map, direction, query, below, residual, discard } = state;
  const key = JSON.stringify([
    load,
    map === "attention",
    direction,
    query,
    below,
    residual,
    discard,
  ]);
  if (wall.key === key) return;
  const job = {},
    began = performance.now(),
    fresh = [];
  wall.key = key;
  wall.job = job;
  let busy = 0,
    layer = maps.L - 1;
  const work = () => {
    if (wall.job !== job || !root.isConnected) return;
    const start = performance.now();
    while (layer >= 0 && performance.now() - start < 14) {
      const all = maps.layerMaps(layer, explorer.state, explorer.state.query);
      if (!all) return; // its rows are on their way
      fresh[layer--] = splitHeads(all, maps);
    }
    busy += performance.now() - start;
    if (layer < 0) return finishWall(explorer, fresh, busy);
    if (performance.now() - began > 120) {
      // a large model: show what is there
      fresh.forEach((heads, l) => {
        wall.layers[l] = heads;
      });
      explorer.draw("tiles");
    }
    setTimeout(work);
  };
  setTimeout(work);
}

/** A layer's maps, (H x N), as one list of patches for each head.
 * @param {Vector} all
 * @param {Maps} maps */
function splitHeads(all, { H, N, P }) {
  return Array.from({ length: H }, (_, head) => all.subarray(head * N + P, (head + 1) * N));
}

/**
 * @param {Explorer} explorer
 * @param {Vector[][]} layers
 * @param {number} busy */
function finishWall(explorer, layers, busy) {
  const { root, state, wall } = explorer,
    own = state.query ? patchIndex(explorer, state.query) : -1;
  wall.layers = layers;
  wall.scale = scaleOf(layers.flat(), 0.99, own); // a few peaks must not darken all the rest
  root.dataset.wallMs = busy.toFixed(1);
  root.dataset.wall = String(1 + Number(root.dataset.wall || 0));
  explorer.draw("tiles");
  if (state.scale === "shared") explorer.draw("picture");
}

/** @param {Explorer} explorer */
function tileOrder({ data, maps, state }) {
  const order = [],
    entropy = ([layer, head]) => data.arrays.entropy[layer * maps.H + head];
  for (let layer = maps.L - 1; layer >= 0; layer--) {
    for (let head = 0; head < maps.H; head++) order.push([layer, head]);
  }
  return state.sort === "focus" ? order.sort((a, b) => entropy(a) - entropy(b)) : order;
}

/** @param {Explorer} explorer */
export function drawWall(explorer) {
  const { root, data, maps, state, wall, ui } = explorer,
    width = ui.wallBox.clientWidth;
  if (!data || width < 40) return;
  const began = performance.now(),
    [w, h] = data.picture.size;
  wall.layout = wallLayout(maps.L, maps.H, h / w, width, width < 480 ? 640 : 680);
  wall.order = tileOrder(explorer);
  const { layout } = wall,
    context = ui.wall.getContext("2d");
  const ratio = fitCanvas(ui.wall, layout.width, layout.height),
    style = getComputedStyle(root);
  const [ink, muted, accent, paper] = ["ink", "muted", "accent", "paper"].map((name) =>
    style.getPropertyValue(`--vx-${name}`),
  );
  Object.assign(ui.wall.style, { width: `${layout.width}px`, height: `${layout.height}px` });
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, layout.width, layout.height);
  drawTiles(explorer, context, ratio);
  context.font = `11px ${style.fontFamily}`;
  if (state.sort === "layer") drawNumbers(explorer, context, ink, muted);
  drawFrames(explorer, context, ink, accent, paper);
  drawName(explorer);
  showLegend(explorer, "wallLegend", wall.scale);
  root.dataset.tilesMs = (performance.now() - began).toFixed(2);
}

/**
 * @param {Explorer} explorer
 * @param {CanvasRenderingContext2D} context
 * @param {number} ratio */
function drawTiles({ data, maps, state, wall, tables }, context, ratio) {
  const {
      layout: { w, h },
      layers,
      scale,
    } = wall,
    [rows, cols] = data.grid;
  const sheet = contactSheet(layers, maps.L, maps.H, data.grid, tables[state.colours], scale);
  context.imageSmoothingEnabled = w * ratio < cols; // too small for whole pixels
  context.imageSmoothingQuality = "high";
  wall.order.forEach(([layer, head], index) => {
    const [x, y] = tilePlace(wall.layout, index);
    context.drawImage(sheet, head * cols, layer * rows, cols, rows, x, y, w, h);
  });
}

/** The layers' numbers at the left, the heads' above each block.
 * @param {Explorer} explorer
 * @param {CanvasRenderingContext2D} context
 * @param {string} ink
 * @param {string} muted */
function drawNumbers({ maps, state, wall: { layout } }, context, ink, muted) {
  /**
   * @param {number} k
   * @param {boolean} chosen
   * @param {number} x
   * @param {number} y */
  const write = (k, chosen, x, y) => {
    context.fillStyle = chosen ? ink : muted;
    context.fillText(String(k + 1), x, y);
  };
  context.textBaseline = "middle";
  context.textAlign = "right";
  for (let layer = 0; layer < maps.L; layer++) {
    const [x, y] = tilePlace(layout, (maps.L - 1 - layer) * maps.H);
    write(layer, layer === state.layer, x - 7, y + layout.h / 2);
  }
  context.textAlign = "center";
  for (let block = 0; block < layout.blocks; block++)
    for (let head = 0; head < maps.H; head++) {
      const [x] = tilePlace(layout, block * layout.lines * maps.H + head);
      write(head, head === state.head, x + layout.w / 2, 6);
    }
}

/** Around the chosen head, or layer, and the tile under the pointer.
 * @param {Explorer} explorer
 * @param {CanvasRenderingContext2D} context
 * @param {string} ink
 * @param {string} accent
 * @param {string} paper */
function drawFrames({ maps, state, wall }, context, ink, accent, paper) {
  const { layout, order, hover } = wall,
    { w, h, gap } = layout;
  order.forEach(([layer, head], index) => {
    const [x, y] = tilePlace(layout, index);
    const open = layer === state.layer && head === state.head && !isClass(state);
    if (open) frame(context, x, y, w, h, accent, paper, 3);
    else if (index === hover) frame(context, x, y, w, h, ink, paper, 1.5);
  });
  if (state.sort === "layer" && !isOne(state.head) && !isClass(state)) {
    const [x, y] = tilePlace(layout, (maps.L - 1 - state.layer) * maps.H);
    frame(context, x, y, maps.H * (w + gap) - gap, h, accent, paper, 2);
  }
}

/** @param {Explorer} explorer */
function drawName(explorer) {
  const { root, state, wall, ui, t } = explorer;
  /** @type {[number, number] | null} */
  const chosen = isOne(state.head) ? [state.layer, Number(state.head)] : null;
  const tile = wall.hover === null ? chosen : wall.order[wall.hover];
  ui.name.textContent = tile ? tileName(explorer, tile) : t("wall_hint");
  root.dataset.name = tile ? ui.name.textContent : "";
}

/** @param {Explorer} explorer */
export function listenToWall(explorer) {
  const canvas = explorer.ui.wall,
    { wall } = explorer;
  /** @param {number | null} index */
  const pointAt = (index) => {
    if (index === wall.hover) return;
    wall.hover = index;
    explorer.draw("tiles");
  };
  /** @param {any} event */
  const tileUnder = (event) => {
    if (!explorer.data || !wall.layout) return null;
    const box = canvas.getBoundingClientRect();
    const x = event.clientX - box.left,
      y = event.clientY - box.top;
    const index = tileAt(wall.layout, wall.order.length, x, y);
    return index < 0 ? null : index;
  };
  canvas.addEventListener("pointermove", (event) => {
    pointAt(event.pointerType === "touch" ? null : tileUnder(event));
  });
  canvas.addEventListener("pointerleave", () => pointAt(null));
  canvas.addEventListener("click", (event) => {
    const index = tileUnder(event);
    if (index !== null) openTile(explorer, wall.order[index]);
  });
  canvas.addEventListener("keydown", (event) => {
    if (!explorer.data || !ARROWS[event.key]) return;
    event.preventDefault();
    wall.hover = null;
    walkWall(explorer, ARROWS[event.key]);
  });
}

/**
 * @param {Explorer} explorer
 * @param {[layer: number, head: number]} given */
function openTile(explorer, [layer, head]) {
  explorer.stopPlaying();
  const raw = explorer.state.map === "attention";
  explorer.set({ layer, head, map: raw ? "attention" : "head_rollout" });
}

/** To the next tile; when no single head is chosen yet, to the layer's first.
 * @param {Explorer} explorer
 * @param {Patch} patch */
function walkWall(explorer, [down, right]) {
  const {
      maps,
      state,
      wall: { order },
    } = explorer,
    head = isOne(state.head) ? state.head : 0;
  const at = order.findIndex((tile) => tile[0] === state.layer && tile[1] === head);
  if (!isOne(state.head)) return openTile(explorer, order[at]);
  const line = Math.floor(at / maps.H) + down,
    column = (at % maps.H) + right;
  if (line < 0 || line >= maps.L || column < 0 || column >= maps.H) return;
  const tile = order[line * maps.H + column];
  openTile(explorer, tile);
  announce(explorer, tileName(explorer, tile));
}
