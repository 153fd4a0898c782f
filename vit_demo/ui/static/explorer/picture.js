// @ts-check
// The picture with its map: drawing, the tooltip, pointer and keys.

import { drawMap, fitCanvas, framePatch, scaleAround, scaleOf } from "./draw.js";
import { ARROWS, announce, el } from "./elements.js";
import { fetchRows } from "./fetching.js";
import { showLegend, tableOf } from "./legend.js";
import { clamp, isClass, isOfWall, isSigned, same } from "./state.js";
import { amount, caption, fromOne, queryName } from "./words.js";

/**
 * @param {Explorer} explorer
 * @param {Patch} patch */
export const patchIndex = ({ data }, [row, col]) => row * data.grid[1] + col;

/**
 * @param {Explorer} explorer
 * @param {Vector} vector */
export const patchValues = ({ maps }, vector) => vector.subarray(maps.P);

/** @param {Explorer} explorer */
const pointed = ({ cursor, hover }) => cursor || hover;

/** The query whose map is on screen: a locked one, else the patch under the pointer.
 * @param {Explorer} explorer */
function shownQuery(explorer) {
  const { state, followPointer, peek } = explorer;
  if (isClass(state)) return null; // its map does not depend on who asks
  return state.query || !followPointer || peek ? state.query : pointed(explorer);
}

/** The locked map: what the tooltip's numbers are about.
 * @param {Explorer} explorer */
export function baseVector(explorer) {
  const { state, maps } = explorer,
    { map, layer, head, direction, below, part, residual, discard, query } = state;
  if (isClass(state)) return classVector(explorer);
  const key = JSON.stringify([map, layer, head, direction, below, part, residual, discard, query]);
  if (explorer.base.key !== key) explorer.base = { key, vector: maps.mapOf(state, query) };
  return explorer.base.vector;
}

/** The map of a class, or of one class minus another; null while it has not been fetched.
 * @param {Pick<Explorer, "state" | "classes">} explorer */
export function classVector({ state: { map, label, minus }, classes }) {
  const [plus, less] = [label, minus].map((one) => classes.get(one)?.maps[map]);
  if (!plus || minus === null) return plus ?? null;
  return less ? plus.map((value, k) => value - less[k]) : null;
}

/** The query's map; while its rows are missing, the mean of the heads and a note that says so.
 * `settings` are those of the map that is drawn.
 * @param {Explorer} explorer
 * @param {Patch | null} query */
function mapToDraw(explorer, query) {
  const { state, maps, fetchRowsBlob, t } = explorer;
  const vector = same(query, state.query) ? baseVector(explorer) : maps.mapOf(state, query);
  if (vector) return { vector, settings: state, note: "" };
  if (isClass(state)) return { vector, settings: state, note: t("loading") };
  const wanted = maps.missing(state, query);
  if (fetchRowsBlob && wanted) {
    clearTimeout(explorer.dwellTimer);
    explorer.dwellTimer = setTimeout(() => fetchRows(explorer, wanted), state.query ? 0 : 120);
  }
  /** @type {State} */
  const settings = { ...state, head: "mean", part: "whole", discard: 0, direction: "from" };
  const note = t(fetchRowsBlob ? "loading" : "lean_note");
  return { vector: maps.mapOf(settings, query), settings, note };
}

/** @param {Explorer} explorer */
export function drawPicture(explorer) {
  const { root, data, state, wall, ui } = explorer;
  const began = performance.now(),
    box = ui.canvas.getBoundingClientRect();
  const ratio = fitCanvas(ui.canvas, box.width, box.height),
    context = ui.canvas.getContext("2d");
  const { width, height } = ui.canvas;
  if (!data) return context.clearRect(0, 0, width, height);
  const query = shownQuery(explorer),
    { vector, settings, note } = mapToDraw(explorer, query);
  if (!vector) {
    // what was there before stays until it comes
    ui.say.textContent = note;
    return;
  }
  context.clearRect(0, 0, width, height);
  const values = patchValues(explorer, vector),
    own = query ? patchIndex(explorer, query) : -1;
  const shared = state.scale === "shared" && isOfWall(settings) && wall.scales[state.layer];
  const scale = shared || (isSigned(settings) ? scaleAround : scaleOf)([values], 1, own);
  explorer.shown = { query, vector, values, scale, settings };
  paintPicture(explorer, context, width, height);
  /**
   * @param {Patch} patch
   * @param {string} inner
   * @param {number} line */
  const mark = (patch, inner, line) =>
    framePatch(context, patch, data.grid, width, height, inner, line * ratio);
  if (query) mark(query, "#fff", 2);
  const patch = pointed(explorer);
  if (patch && !same(patch, query)) mark(patch, "#fffc", 1);
  drawTip(explorer, patch, box);
  ui.query.textContent = queryName(explorer, query);
  ui.say.textContent = explorer.trouble || note || caption(explorer);
  showLegend(explorer, "legend", scale, settings);
  root.dataset.drawn = String(++explorer.drawn);
  root.dataset.drawMs = (performance.now() - began).toFixed(2);
}

/** Whoever takes something away takes what was asked for last: it may wait for the next frame.
 * @param {Explorer} explorer */
export function drawNow(explorer) {
  if (explorer.dirty.picture) drawPicture(explorer);
}

/** Picture and map, nothing else: for the screen and for the PNG.
 * @param {Explorer} explorer
 * @param {CanvasRenderingContext2D} context
 * @param {number} width
 * @param {number} height */
export function paintPicture(explorer, context, width, height) {
  const { data, peek, shown, tables } = explorer,
    { colour, grey, crisp } = groundOf(explorer);
  context.imageSmoothingQuality = "high";
  context.imageSmoothingEnabled = !crisp;
  context.drawImage(peek ? colour : grey, 0, 0, width, height);
  if (peek) return;
  const looks = { ...shown.settings, table: tableOf(shown.settings, tables), scale: shown.scale };
  drawMap(context, width, height, shown.values, data.grid, looks);
}

/** What lies under the map: the visitor's own picture, or the one that the model saw.
 * @param {Explorer} explorer */
export const groundOf = ({ state, grounds }) => grounds[state.picture];

/**
 * @param {Explorer} explorer
 * @param {Patch} patch
 * @param {DOMRect} box */
function drawTip(explorer, patch, box) {
  const {
    root,
    data,
    state,
    shown,
    learned,
    ui: { tip },
    t,
  } = explorer;
  tip.hidden = !patch;
  if (!patch) {
    delete root.dataset.tip;
    return;
  }
  const name = t("tip_patch", fromOne(patch)),
    { query, values, settings } = shown,
    value = amount(explorer, settings, values[patchIndex(explorer, patch)]);
  tip.replaceChildren(
    el("b", {}, name),
    el("span", {}, `${value} · ${queryName(explorer, query)}`),
  );
  // The map under the pointer is the pointed patch's own; what the locked one has there is told, too.
  if (!same(query, state.query)) tip.append(el("small", {}, lockedValue(explorer, patch)));
  if (!learned && !isClass(state))
    tip.append(el("small", {}, t(same(patch, state.query) ? "tip_back" : "tip_choose")));
  root.dataset.tip = `${name} ${value}`;
  const [row, col] = patch,
    [rows, cols] = data.grid,
    cell = box.height / rows;
  const x = ((col + 0.5) * box.width) / cols,
    y = row * cell,
    w = tip.offsetWidth,
    h = tip.offsetHeight;
  tip.style.left = `${Math.max(4, Math.min(box.width - w - 4, x - w / 2))}px`;
  tip.style.top = `${y - h - 8 >= 0 ? y - h - 8 : y + cell + 8}px`;
}

/** What the locked map has at a patch, in words.
 * @param {Explorer} explorer
 * @param {Patch} patch */
function lockedValue(explorer, patch) {
  const { state } = explorer;
  return valueAt(explorer, patch, state.query, baseVector(explorer), state);
}

/** What a map has at a patch, and whose map it is, in words.
 * @param {Explorer} explorer
 * @param {Patch} patch
 * @param {Patch | null} query
 * @param {Vector | null} vector
 * @param {State} settings */
function valueAt(explorer, patch, query, vector, settings) {
  if (!vector) return explorer.t("loading");
  const value = patchValues(explorer, vector)[patchIndex(explorer, patch)];
  return `${amount(explorer, settings, value)} · ${queryName(explorer, query)}`;
}

/** Scroll to the picture, if less than half of it is on the screen.
 * @param {Explorer} explorer */
export function reveal({ ui: { stage } }) {
  const { top, bottom, height } = stage.getBoundingClientRect();
  const seen = Math.min(bottom, innerHeight) - Math.max(top, 0);
  if (seen >= Math.min(height, innerHeight) / 2) return;
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  stage.scrollIntoView({ block: "center", behavior: still ? "auto" : "smooth" });
}

/** @param {Explorer} explorer */
export function listenToPicture(explorer) {
  const { canvas } = explorer.ui;
  /** @param {Patch | null} patch */
  const point = (patch) => {
    explorer.hover = patch;
    explorer.cursor = null;
    explorer.draw("picture");
  };
  canvas.addEventListener("pointermove", (event) => {
    if (!explorer.data || event.pointerType === "touch") return;
    const patch = patchAt(explorer, event);
    if (!same(patch, explorer.hover) || explorer.cursor) point(patch);
  });
  canvas.addEventListener("pointerleave", () => {
    explorer.hover = null;
    explorer.draw("picture");
  });
  canvas.addEventListener("blur", () => {
    explorer.cursor = null;
    explorer.draw("picture");
  });
  canvas.addEventListener("click", (event) => {
    const patch = explorer.data && patchAt(explorer, event);
    if (patch) choosePatch(explorer, patch);
  });
  canvas.addEventListener("keydown", (event) => {
    if (explorer.data && keyOnPicture(explorer, event.key)) event.preventDefault();
  });
}

/**
 * @param {Explorer} explorer
 * @param {MouseEvent} event
 * @returns {Patch | null} */
function patchAt({ ui, data }, event) {
  const box = ui.canvas.getBoundingClientRect(),
    [rows, cols] = data.grid;
  const x = (event.clientX - box.left) / box.width,
    y = (event.clientY - box.top) / box.height;
  const inside = x >= 0 && x < 1 && y >= 0 && y < 1;
  return inside ? [Math.floor(y * rows), Math.floor(x * cols)] : null;
}

/**
 * @param {Explorer} explorer
 * @param {Patch} patch */
function choosePatch(explorer, patch) {
  if (isClass(explorer.state)) {
    // a class map asks for no patch; its value there is what one gets
    explorer.cursor = patch;
    return explorer.draw("picture");
  }
  explorer.learned = true;
  explorer.hover = explorer.cursor = null; // what was chosen is shown; nothing else competes with it
  explorer.set({ query: same(patch, explorer.state.query) ? null : patch });
  announce(explorer, explorer.t("tip_patch", fromOne(patch)));
}

/** Whether the key means something here.
 * @param {Explorer} explorer
 * @param {string} key */
function keyOnPicture(explorer, key) {
  const patch = explorer.cursor;
  if (ARROWS[key]) moveCursor(explorer, ARROWS[key]);
  else if ((key === "Enter" || key === " ") && patch) {
    choosePatch(explorer, patch);
    explorer.cursor = patch;
  } else if (key === "Escape") {
    explorer.cursor = null;
    explorer.set({ query: null });
  } else return false;
  return true;
}

/** From the cursor, else from the chosen patch; without either it appears in the middle. What the map
 * that will be drawn has there is read aloud.
 * @param {Explorer} explorer
 * @param {Patch} patch */
function moveCursor(explorer, [down, right]) {
  const {
      data: {
        grid: [rows, cols],
      },
      state,
      t,
    } = explorer,
    from = explorer.cursor || state.query;
  explorer.cursor = from
    ? [clamp(from[0] + down, 0, rows - 1), clamp(from[1] + right, 0, cols - 1)]
    : [rows >> 1, cols >> 1];
  explorer.draw("picture");
  const name = t("tip_patch", fromOne(explorer.cursor)),
    query = shownQuery(explorer),
    { vector, settings } = mapToDraw(explorer, query);
  announce(explorer, `${name}: ${valueAt(explorer, explorer.cursor, query, vector, settings)}`);
}
