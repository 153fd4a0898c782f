// @ts-check
// The three pictures: the first one with its map, the second, and their difference on the common grid. A
// patch that is pointed at in one of them is marked in all.

import {
  canvasOf,
  drawMap,
  fitCanvas,
  framePatch,
  gradient,
  scaleAround,
  scaleOf,
} from "../explorer/draw.js";
import { ARROWS, el } from "../explorer/elements.js";
import { tableOf } from "../explorer/legend.js";
import { clamp, isClass, isSigned, same } from "../explorer/state.js";
import { amount } from "../explorer/words.js";
import {
  around,
  commonGrid,
  matchingPatch,
  onGrid,
  patchAt,
  seenCells,
  shareOfAll,
  spearman,
} from "./pairs.js";
import { matched, placesOf, secondValues } from "./second.js";

/** What both maps are now, and what lies between them; null while something is on its way.
 * @param {Compare} compare
 * @returns {Views | null} */
export function viewsOf(compare) {
  const { explorer, second, chosen, shares } = compare,
    { data, state } = explorer;
  if (!second || !data) return null;
  const other = matched(state, data, second, chosen),
    places = placesOf(data, second);
  /** @type {View[]} */
  const sides = [
    { ...firstView(explorer), place: places[0] },
    {
      state: other.state,
      values: secondValues(compare, other.state),
      place: places[1],
      ground: second.grounds[state.picture] ?? second.grounds.own,
    },
  ];
  return { sides, notes: other.notes, ...between(sides, shares.includes(state.map)) };
}

/** What the explorer shows: it is there before the second one.
 * @param {ExplorerHandle} explorer
 * @returns {View} */
const firstView = ({ state, values, ground, data }) => ({
  state,
  values,
  ground,
  place: { grid: data.grid, box: [0, 0, 1, 1] },
});

/** Both maps on one grid: their difference, where both saw something, and their rank correlation.
 * @param {View[]} sides
 * @param {boolean} shares */
function between(sides, shares) {
  const places = sides.map(({ place }) => place),
    boxes = places.map(({ box }) => box),
    frame = around(boxes[0], boxes[1]),
    grid = commonGrid(frame, places),
    seen = seenCells(boxes, frame, grid),
    known = sides.every(({ values }) => values);
  if (!known) return { frame, grid, seen, maps: null, difference: null, correlation: NaN };
  const maps = sides.map(({ values, place }) =>
      onGrid(shares ? values : shareOfAll(values), place, frame, grid),
    ),
    difference = Float64Array.from(maps[0], (value, cell) => value - maps[1][cell]),
    both = maps.map((map) => map.filter((_, cell) => seen[cell]));
  return { frame, grid, seen, maps, difference, correlation: spearman(both[0], both[1]) };
}

/** @param {Compare} compare @param {number} side */
export function stage(compare, side) {
  const { t } = compare,
    difference = side === 2;
  const canvas = el("canvas", {
    class: "vx-picture",
    tabindex: difference ? null : 0,
    role: difference ? "img" : "application",
    "aria-label": t(difference ? "difference_label" : "picture_label"),
  });
  const tip = el("div", { class: "vx-tip", hidden: true, "aria-hidden": "true" }),
    note = el("p", { class: "vx-note" }),
    legend = el("div", { class: "vx-legend" }, el("span"), el("i"), el("span"), el("span"));
  compare.ui.views[side] = {
    canvas,
    tip,
    note,
    legend,
    box: el("div", { class: "vx-stage" }, canvas, tip, note),
  };
  listen(compare, side, canvas);
  return compare.ui.views[side];
}

// Drawing

/** @param {Compare} compare */
export function drawViews(compare) {
  const { views, explorer } = compare;
  for (const side of [0, 1, 2]) {
    const { canvas, note, box } = compare.ui.views[side],
      context = canvas.getContext("2d"),
      shape = canvas.getBoundingClientRect();
    box.style.setProperty("--vx-aspect", String(aspectOf(compare, side)));
    const ratio = fitCanvas(canvas, shape.width, shape.height),
      { width, height } = canvas;
    context.clearRect(0, 0, width, height);
    if (side === 0 && !views && explorer.data)
      paintSide(firstView(explorer), explorer.tables, context, width, height);
    if (!views) continue;
    note.hidden = true;
    if (side < 2) paintSide(views.sides[side], explorer.tables, context, width, height);
    else paintDifference(compare, context, width, height);
    mark(compare, side, context, width, height, ratio);
  }
  compare.root.dataset.drawn = String(1 + Number(compare.root.dataset.drawn || 0));
}

/** Width by height of what a picture shows.
 * @param {Compare} compare
 * @param {number} side */
function aspectOf({ views, explorer }, side) {
  if (side === 2) {
    if (!views) return 1;
    const [left, top, right, bottom] = views.frame;
    return right - left === 1 ? views.grid[1] / views.grid[0] : (right - left) / (bottom - top);
  }
  const ground = views ? views.sides[side].ground : side === 0 && explorer.data && explorer.ground;
  return ground ? ground.colour.width / ground.colour.height : 1;
}

/** A picture with its map, for the screen and for the PNG.
 * @param {View} view
 * @param {Record<string, ColourTable>} tables
 * @param {CanvasRenderingContext2D} context
 * @param {number} width
 * @param {number} height */
export function paintSide(view, tables, context, width, height) {
  const { state, values, ground, place } = view;
  context.imageSmoothingQuality = "high";
  context.imageSmoothingEnabled = !ground.crisp;
  context.drawImage(ground.grey, 0, 0, width, height);
  if (!values) return;
  const looks = { ...state, table: tableOf(state, tables), scale: scaleOfSide(view) };
  drawMap(context, width, height, values, place.grid, looks);
}

/** The patch that asks is left out of the scale: it looks at itself most.
 * @param {View} view */
function scaleOfSide({ state, values, place }) {
  const own = state.query ? state.query[0] * place.grid[1] + state.query[1] : -1;
  return (isSigned(state) ? scaleAround : scaleOf)([values], 1, own);
}

/** @param {Views} views */
const scaleOfDifference = ({ difference, seen }) =>
  scaleAround([difference.filter((_, cell) => seen[cell])]);

/** The difference over what both saw of the one picture, or over nothing; where only one of them saw
 * something, it is dim.
 * @param {Compare} compare
 * @param {CanvasRenderingContext2D} context
 * @param {number} width
 * @param {number} height */
export function paintDifference({ views, second, explorer }, context, width, height) {
  const { frame, grid, seen, difference } = views,
    [rows, cols] = grid;
  context.fillStyle = "#fff";
  context.fillRect(0, 0, width, height);
  if (second.same_picture) {
    const across = width / (frame[2] - frame[0]),
      down = height / (frame[3] - frame[1]);
    for (const { ground, place } of [views.sides[1], views.sides[0]]) {
      const [left, top, right, bottom] = place.box;
      context.imageSmoothingEnabled = !ground.crisp;
      context.drawImage(
        ground.grey,
        (left - frame[0]) * across,
        (top - frame[1]) * down,
        (right - left) * across,
        (bottom - top) * down,
      );
    }
  }
  if (!difference) return;
  const table = explorer.tables.difference,
    map = canvasOf(difference, cols, rows, table, scaleOfDifference(views)),
    pen = map.getContext("2d");
  pen.fillStyle = "#14171b";
  for (const [cell, both] of seen.entries())
    if (!both) pen.fillRect(cell % cols, Math.floor(cell / cols), 1, 1);
  context.imageSmoothingEnabled = false;
  context.globalAlpha = second.same_picture ? 0.7 : 1;
  context.drawImage(map, 0, 0, width, height);
  context.globalAlpha = 1;
}

/** Frames around the patch that asks, and around the one that is pointed at.
 * @param {Compare} compare
 * @param {number} side
 * @param {CanvasRenderingContext2D} context
 * @param {number} width
 * @param {number} height
 * @param {number} ratio */
function mark(compare, side, context, width, height, ratio) {
  const { views, hover } = compare,
    grid = side < 2 ? views.sides[side].place.grid : views.grid,
    query = side < 2 ? views.sides[side].state.query : null,
    pointed = hover && patchOn(compare, side, hover);
  /**
   * @param {Patch} patch
   * @param {number} line */
  const frame = (patch, line) =>
    framePatch(context, patch, grid, width, height, "#fff", line * ratio);
  if (query) frame(query, 2);
  if (pointed && !same(pointed, query)) frame(pointed, 1.5);
  showTip(compare, side, pointed, grid);
}

/** The patch of a side that lies where another side was pointed at.
 * @param {Compare} compare
 * @param {number} side
 * @param {{ side: number; patch: Patch }} given
 * @returns {Patch | null} */
export function patchOn({ views, second }, side, given) {
  if (side === given.side) return given.patch;
  const places = [...views.sides.map(({ place }) => place), { grid: views.grid, box: views.frame }];
  return matchingPatch(given.patch, places[given.side], places[side], second.bounds);
}

/**
 * @param {Compare} compare
 * @param {number} side
 * @param {Patch | null} patch
 * @param {Grid} grid */
function showTip(compare, side, patch, [rows, cols]) {
  const { views, t } = compare,
    { tip, box, canvas } = compare.ui.views[side];
  const values = side < 2 ? views.sides[side].values : views.difference;
  const gone = side === 2 && patch && !views.seen[patch[0] * cols + patch[1]];
  tip.hidden = !patch || !values || gone;
  canvas.dataset.pointed = patch ? patch.join() : "";
  if (tip.hidden) return;
  const value = values[patch[0] * cols + patch[1]],
    said = side < 2 ? amount(compare, views.sides[side].state, value) : points(compare, value);
  tip.replaceChildren(
    el("b", {}, t("tip_patch", { row: patch[0] + 1, col: patch[1] + 1 })),
    el("span", {}, said),
  );
  const { width, height } = box.getBoundingClientRect(),
    cell = height / rows,
    x = ((patch[1] + 0.5) * width) / cols - tip.offsetWidth / 2,
    y = patch[0] * cell - tip.offsetHeight - 8;
  tip.style.left = `${Math.max(4, Math.min(width - tip.offsetWidth - 4, x))}px`;
  tip.style.top = `${y >= 0 ? y : (patch[0] + 1) * cell + 8}px`;
}

/** A difference of shares, with its sign.
 * @param {Compare} compare
 * @param {number} value */
export function points({ t }, value) {
  const size = 100 * Math.abs(value),
    digits = size >= 10 ? 1 : size >= 0.1 ? 2 : 3,
    sign = value < 0 ? "\u2212" : "+";
  return t("points", { points: sign + size.toFixed(digits) });
}

/** The colours of each picture, with their meaning.
 * @param {Compare} compare */
export function showLegends(compare) {
  const { views, explorer, ui, t } = compare;
  for (const side of [0, 1, 2]) {
    const [low, bar, high, note] = ui.views[side].legend.children,
      values = views && (side < 2 ? views.sides[side].values : views.difference);
    ui.views[side].legend.style.visibility = values ? "" : "hidden";
    if (!values) continue;
    const settings = side < 2 ? views.sides[side].state : null,
      scale = settings ? scaleOfSide(views.sides[side]) : scaleOfDifference(views),
      table = settings ? tableOf(settings, explorer.tables) : explorer.tables.difference;
    /** @param {number} x */
    const say = (x) => (settings ? amount(compare, settings, x) : points(compare, x));
    bar.style.background = gradient(table);
    low.textContent = say(scale.low);
    high.textContent = (scale.clipped ? "\u2265 " : "") + say(scale.high);
    const scaled = side === 2 && !compare.shares.includes(views.sides[0].state.map);
    note.textContent = scaled ? t("of_all") : "";
  }
}

// Pointer and keys

/**
 * @param {Compare} compare
 * @param {number} side
 * @param {HTMLCanvasElement} canvas */
function listen(compare, side, canvas) {
  /** @param {Patch | null} patch */
  const point = (patch) => {
    compare.hover = patch && { side, patch };
    compare.redraw();
  };
  /** @param {MouseEvent} event */
  const patchUnder = (event) => {
    if (!compare.views) return null;
    const shape = canvas.getBoundingClientRect(),
      grid = side < 2 ? compare.views.sides[side].place.grid : compare.views.grid;
    return patchAt(event.clientX, event.clientY, {
      grid,
      box: [shape.left, shape.top, shape.right, shape.bottom],
    });
  };
  canvas.addEventListener("pointermove", (event) => {
    if (event.pointerType === "touch") return;
    const patch = patchUnder(event);
    if (compare.hover?.side !== side || !same(patch, compare.hover?.patch ?? null)) point(patch);
  });
  for (const gone of ["pointerleave", "blur"]) canvas.addEventListener(gone, () => point(null));
  if (side === 2) return;
  canvas.addEventListener("click", (event) => {
    const patch = patchUnder(event);
    if (patch) choose(compare, side, patch);
  });
  canvas.addEventListener("keydown", (event) => {
    if (compare.views && pressed(compare, side, event.key)) event.preventDefault();
  });
}

/** Both look from this patch; a second click goes back to the answer.
 * @param {Compare} compare
 * @param {number} side
 * @param {Patch} patch */
function choose(compare, side, patch) {
  const { explorer, views } = compare,
    { state } = explorer;
  if (isClass(state)) {
    compare.hover = { side, patch }; // a class map asks for no patch; its value is what one gets
    return compare.redraw();
  }
  const first = side === 0 ? patch : patchOn(compare, 0, { side, patch });
  if (!first) return compare.say("not_seen_first");
  const again = same(patch, views.sides[side].state.query);
  compare.chosen = side === 1 ? { first, second: patch } : null;
  compare.hover = null;
  explorer.set({ query: again ? null : first });
}

/** Whether the key means something here.
 * @param {Compare} compare
 * @param {number} side
 * @param {string} key */
function pressed(compare, side, key) {
  const { hover, views, explorer } = compare,
    [rows, cols] = views.sides[side].place.grid;
  if (ARROWS[key]) {
    const from = hover?.side === side ? hover.patch : views.sides[side].state.query;
    /** @type {Patch} */
    const to = from
      ? [clamp(from[0] + ARROWS[key][0], 0, rows - 1), clamp(from[1] + ARROWS[key][1], 0, cols - 1)]
      : [rows >> 1, cols >> 1];
    compare.hover = { side, patch: to };
    compare.redraw();
    compare.announce();
  } else if ((key === "Enter" || key === " ") && hover?.side === side) {
    choose(compare, side, hover.patch);
  } else if (key === "Escape") {
    compare.hover = null;
    explorer.set({ query: null });
  } else return false;
  return true;
}
