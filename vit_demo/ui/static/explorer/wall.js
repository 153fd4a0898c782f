// @ts-check
// The wall of heads: every layer and head as a small map, each layer on its own colour scale.
// `explorer.wall`: whole[l][h] are the maps' values as they were computed, layers[l][h] those that are
// drawn, focus[l][h] their entropies, prefix[l][h] what lies on no patch, order[k] is the [layer, head] of
// tile k.

import { fitCanvas, frame, scaleAround, scaleOf } from "./draw.js";
import { ARROWS, announce } from "./elements.js";
import { spread } from "./eye.js";
import { showLegend, tableOf } from "./legend.js";
import { entropy } from "./maths.js";
import { patchIndex, reveal } from "./picture.js";
import { contactSheet, tileAt, tilePlace, wallLayout } from "./sheets.js";
import { isClass, isOne, isSigned, tileSettings } from "./state.js";
import { sync } from "./sync.js";
import { tileName } from "./words.js";

const TOP = 0.99; // a few peaks must not darken all the rest
const NO_PATCH = 0.9; // a head with more than this on other tokens looks at no patch
const ROOM = 26; // pixels: a tile that is wider has room for its numbers

/** @returns {Wall} */
export const emptyWall = () => ({
  key: null,
  job: null,
  chosen: false,
  model: null,
  ...noTiles(),
});

/** @returns {Pick<Wall, "view" | "whole" | "prefix" | "layers" | "scales" | "focus" | "sheet" | "layout" | "order" | "hover">} */
export const noTiles = () => ({
  view: null,
  whole: [],
  prefix: [],
  layers: [],
  scales: [],
  focus: [],
  sheet: null,
  layout: null,
  order: [],
  hover: null,
});

/** All heads of all layers, a few milliseconds at a time, from the last layer down.
 * @param {Explorer} explorer */
export function prepareWall(explorer) {
  const { root, data, maps, state, wall, load } = explorer;
  if (!data) return;
  const { direction, query, below, residual, discard } = state,
    raw = state.wall === "attention";
  const key = JSON.stringify([load, raw, direction, query, below, residual, discard]);
  if (wall.key === key) {
    if (!wall.job && wall.view !== state.wall) showView(explorer);
    return;
  }
  const job = {},
    settings = { ...tileSettings(state), part: "whole" },
    began = performance.now(),
    fresh = [],
    prefix = [];
  wall.key = key;
  wall.job = job;
  let busy = 0,
    layer = maps.L - 1;
  const work = () => {
    if (wall.job !== job || !root.isConnected) return;
    const start = performance.now();
    while (layer >= 0 && performance.now() - start < 14) {
      const all = maps.layerMaps(layer, settings, query);
      if (!all) return; // its rows are on their way
      prefix[layer] = prefixOf(all, maps);
      fresh[layer--] = splitHeads(all, maps);
    }
    busy += performance.now() - start;
    Object.assign(wall, { whole: fresh, prefix });
    if (layer < 0) {
      wall.job = null;
      chooseView(explorer);
      showView(explorer);
      root.dataset.wallMs = busy.toFixed(1);
      root.dataset.wall = String(1 + Number(root.dataset.wall || 0));
      return;
    }
    if (performance.now() - began > 120) showView(explorer); // a large model: what is there
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

/** What each head of a layer leaves on the tokens before the patches.
 * @param {Vector} all
 * @param {Maps} maps */
function prefixOf(all, { H, N, P }) {
  return Array.from({ length: H }, (_, head) =>
    all.subarray(head * N, head * N + P).reduce((sum, value) => sum + value, 0),
  );
}

/** Whether a tile is dark because its head looks at no patch. What is special has no darkness, and who
 * looks at a token is no share of one head's attention.
 * @param {Explorer} explorer
 * @param {[layer: number, head: number]} given */
function looksAtNoPatch({ state, wall }, [layer, head]) {
  return (
    wall.prefix[layer]?.[head] > NO_PATCH && state.wall !== "special" && state.direction !== "to"
  );
}

/** Head rollouts opens in the view in which the heads differ most to the eye: decided once for each
 * model, until the visitor chooses.
 * @param {Explorer} explorer */
function chooseView(explorer) {
  const { data, state, tables, wall } = explorer;
  if (wall.chosen || wall.model === data.model || state.wall === "attention") return;
  wall.model = data.model;
  const [special, whole] = ["special", "whole"].map((view) => {
    const settings = tileSettings({ ...state, wall: view }),
      layers = layersOf(wall.whole, settings);
    return spread(layers, scalesOf(explorer, layers, settings), tableOf(settings, tables));
  });
  const view = special >= whole ? "special" : "whole";
  explorer.state = { ...state, wall: view };
  explorer.wish = { ...explorer.wish, wall: view }; // and the next picture's
  sync(explorer);
}

/** The maps as the settings want them.
 * @param {Vector[][]} whole
 * @param {State} settings */
function layersOf(whole, { part }) {
  if (part !== "special") return whole;
  return whole.map((heads) => {
    const mean = heads[0].map((_, k) => heads.reduce((sum, values) => sum + values[k], 0));
    return heads.map((values) => values.map((value, k) => value - mean[k] / heads.length));
  });
}

/** One scale for all heads of a layer.
 * @param {Explorer} explorer
 * @param {Vector[][]} layers
 * @param {State} settings */
function scalesOf(explorer, layers, settings) {
  const scale = isSigned(settings) ? scaleAround : scaleOf,
    own = settings.query ? patchIndex(explorer, settings.query) : -1;
  return layers.map((heads) => scale(heads, TOP, own));
}

/** Draw what was computed, in the view that is chosen.
 * @param {Explorer} explorer */
function showView(explorer) {
  const { state, wall } = explorer,
    settings = tileSettings(state),
    layers = layersOf(wall.whole, settings);
  Object.assign(wall, {
    view: state.wall,
    layers,
    scales: scalesOf(explorer, layers, settings),
    sheet: null,
  });
  if (!wall.job) wall.focus = layers.map((heads) => heads.map((values) => entropy(values)));
  explorer.draw("tiles");
  if (state.scale === "shared") explorer.draw("picture");
}

/** By layer, the last one first; or by focus: the map with the lowest entropy first.
 * @param {Explorer} explorer
 * @returns {Wall["order"]} */
function tileOrder({ maps, state, wall: { focus } }) {
  /** @type {Wall["order"]} */
  const order = [];
  for (let layer = maps.L - 1; layer >= 0; layer--) {
    for (let head = 0; head < maps.H; head++) order.push([layer, head]);
  }
  const sorted = state.sort === "focus" && focus.length > 0;
  return sorted ? order.sort((a, b) => focus[a[0]][a[1]] - focus[b[0]][b[1]]) : order;
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
    context = ui.tiles.getContext("2d");
  const ratio = fitCanvas(ui.tiles, layout.width, layout.height),
    style = getComputedStyle(root);
  const [ink, muted, accent, paper] = ["ink", "muted", "accent", "paper"].map((name) =>
    style.getPropertyValue(`--vx-${name}`),
  );
  Object.assign(ui.tiles.style, { width: `${layout.width}px`, height: `${layout.height}px` });
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, layout.width, layout.height);
  drawTiles(explorer, context, ratio);
  context.font = `11px ${style.fontFamily}`;
  if (state.sort === "layer") drawNumbers(explorer, context, ink, muted);
  else drawPlaces(explorer, context, ink, paper, style.fontFamily);
  drawFrames(explorer, context, ink, accent, paper);
  drawName(explorer);
  root.dataset.tilesMs = (performance.now() - began).toFixed(2);
}

/**
 * @param {Explorer} explorer
 * @param {CanvasRenderingContext2D} context
 * @param {number} ratio */
function drawTiles(explorer, context, ratio) {
  const { data, maps, state, wall, tables } = explorer,
    { layout, layers, scales } = wall,
    { w, h } = layout,
    [rows, cols] = data.grid,
    table = tableOf(tileSettings(state), tables);
  if (wall.sheet?.table !== table)
    wall.sheet = { table, canvas: contactSheet(layers, maps.L, maps.H, data.grid, table, scales) };
  const { canvas } = wall.sheet;
  context.imageSmoothingEnabled = w * ratio < cols; // too small for whole pixels
  context.imageSmoothingQuality = "high";
  wall.order.forEach(([layer, head], index) => {
    const [x, y] = tilePlace(layout, index);
    context.drawImage(canvas, head * cols, layer * rows, cols, rows, x, y, w, h);
    if (looksAtNoPatch(explorer, [layer, head])) hatch(context, x, y, w, h);
  });
}

/** Grey lines across a tile: it is empty, not broken.
 * @param {CanvasRenderingContext2D} context
 * @param {number} x
 * @param {number} y
 * @param {number} w
 * @param {number} h */
function hatch(context, x, y, w, h) {
  context.save();
  context.beginPath();
  context.rect(x, y, w, h);
  context.clip();
  context.beginPath();
  for (let from = 4; from < w + h; from += 8) {
    context.moveTo(x + from, y);
    context.lineTo(x + from - h, y + h);
  }
  context.lineWidth = 1;
  context.strokeStyle = "#8a929c";
  context.stroke();
  context.restore();
}

/** Sorted by focus, each tile says which layer and head it is, where there is room.
 * @param {Explorer} explorer
 * @param {CanvasRenderingContext2D} context
 * @param {string} ink
 * @param {string} paper
 * @param {string} family */
function drawPlaces({ wall: { layout, order } }, context, ink, paper, family) {
  if (layout.w < ROOM) return;
  context.font = `10px ${family}`;
  context.textBaseline = "middle";
  context.textAlign = "left";
  order.forEach(([layer, head], index) => {
    const [x, y] = tilePlace(layout, index),
      text = `${layer + 1}\u00b7${head + 1}`,
      bottom = y + layout.h;
    context.fillStyle = paper;
    context.fillRect(x, bottom - 12, context.measureText(text).width + 4, 12);
    context.fillStyle = ink;
    context.fillText(text, x + 2, bottom - 5.5);
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

/** What the order and the signs of the tiles mean.
 * @param {Explorer} explorer */
function wallHint(explorer) {
  const { state, wall, t } = explorer,
    sorted = state.sort === "focus",
    hints = [t(sorted ? "wall_hint_focus" : "wall_hint")];
  if (sorted && wall.layout.w >= ROOM) hints.push(t("wall_hint_numbers"));
  if (wall.order.some((tile) => looksAtNoPatch(explorer, tile))) hints.push(t("wall_hint_hatched"));
  return [...hints, t("wall_hint_click")].join(" ");
}

/** @param {Explorer} explorer */
function drawName(explorer) {
  const { root, state, wall, ui, t } = explorer;
  /** @type {[number, number] | null} */
  const chosen = isOne(state.head) ? [state.layer, Number(state.head)] : null;
  const tile = wall.hover === null ? chosen : wall.order[wall.hover],
    layer = tile ? tile[0] : state.layer;
  ui.name.textContent = tile ? tileName(explorer, tile) : wallHint(explorer);
  root.dataset.name = tile ? ui.name.textContent : "";
  const where = t("legend_layer", { layer: layer + 1 });
  showLegend(explorer, "wallLegend", wall.scales[layer], tileSettings(state), where);
}

/** @param {Explorer} explorer */
export function listenToWall(explorer) {
  const canvas = explorer.ui.tiles,
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
    if (index === null) return;
    openTile(explorer, wall.order[index]);
    reveal(explorer);
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
  const { map, part } = tileSettings(explorer.state);
  explorer.set({ layer, head, map, part });
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
