// @ts-check
// The drawings that several steps share: the picture with its tokens, strips of numbers, small maps, bars.

import { drawMap, fitCanvas, frame, scaleAround, scaleOf, shadeOf } from "../explorer/draw.js";
import { ARROWS, el } from "../explorer/elements.js";
import { clamp } from "../explorer/state.js";
import { question } from "../glossary.js";
import { find } from "../page/dom.js";
import { fixed, most } from "./numbers.js";

/** The page's colours, as the theme has them now.
 * @param {Element} root */
function inks(root) {
  const style = getComputedStyle(root);
  /** @param {string} name */
  const of = (name) => style.getPropertyValue(`--${name}`).trim();
  return {
    ink: of("ink"),
    muted: of("muted"),
    line: of("line"),
    soft: of("soft"),
    accent: of("accent"),
    more: of("more"),
    less: of("less"),
  };
}

/** A number with a name, for readers and for tests.
 * @param {string} name
 * @param {number} value
 * @param {string} [text] */
export function number(name, value, text = fixed(value)) {
  return el("output", { class: "ins-number", "data-number": name, "data-value": value }, text);
}

/** Which token stands in the walk for "none chosen": the class token, or the middle patch.
 * @param {Walk} walk */
export function chosenToken(walk) {
  const { facts, choice } = walk,
    P = prefixCount(facts);
  if (choice.query) return P + choice.query[0] * facts.grid[1] + choice.query[1];
  return facts.pool === "token" ? 0 : P + middlePatch(facts);
}

/** @param {Facts} facts */
export const prefixCount = ({ prefix }) => Object.values(prefix).reduce((a, b) => a + b, 0);

/** @param {Facts} facts */
const middlePatch = ({ grid: [rows, cols] }) => (rows >> 1) * cols + (cols >> 1);

/** The patch that stands for the chosen token where only patches count.
 * @param {Walk} walk */
export function chosenPatch(walk) {
  const number = chosenToken(walk) - prefixCount(walk.facts);
  return number >= 0 ? number : middlePatch(walk.facts);
}

/** @param {Walk} walk
 * @param {number} token */
export function tokenName({ facts, t }, token) {
  const P = prefixCount(facts);
  if (token >= P) {
    const [row, col] = placeOf(facts, token - P);
    return t("patch_at", { row: row + 1, col: col + 1 });
  }
  let before = 0;
  for (const [name, many] of Object.entries(facts.prefix)) {
    if (token < before + many) return t(name) + (many > 1 ? ` ${token - before + 1}` : "");
    before += many;
  }
  return "";
}

/** @param {Facts} facts
 * @param {number} patch
 * @returns {Patch} */
export const placeOf = ({ grid: [, cols] }, patch) => [Math.floor(patch / cols), patch % cols];

/** Let a canvas be pointed at, with the pointer or with the arrow keys. `at` is the thing under the
 * pointer, `moved` the one that a key leads to; `choose` is a click or Enter.
 * @param {HTMLCanvasElement} canvas
 * @param {{ at: (event: MouseEvent) => number; moved: (from: number | null, by: Patch) => number;
 *   point: (thing: number | null, byKey: boolean) => void; choose?: (thing: number) => void }} given */
function pointable(canvas, { at, moved, point, choose }) {
  let here = null;
  const go = (/** @type {number | null} */ thing, byKey = false) => {
    if (thing === here) return;
    here = thing;
    point(thing, byKey);
  };
  canvas.addEventListener("pointermove", (event) => go(at(event)));
  canvas.addEventListener("pointerdown", (event) => go(at(event)));
  canvas.addEventListener("pointerleave", () => go(null));
  canvas.addEventListener("blur", () => go(null));
  canvas.addEventListener("click", (event) => choose?.(at(event)));
  canvas.addEventListener("keydown", (event) => {
    const by = ARROWS[event.key];
    if (by) go(moved(here, by), true);
    else if ((event.key === "Enter" || event.key === " ") && here !== null && choose) choose(here);
    else if (event.key === "Escape") go(null);
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
}

/** Where in a canvas something happened, as shares of its width and height.
 * @param {HTMLCanvasElement} canvas
 * @param {MouseEvent} event */
function shareAt(canvas, event) {
  const box = canvas.getBoundingClientRect();
  return [
    clamp((event.clientX - box.left) / box.width, 0, 0.9999),
    clamp((event.clientY - box.top) / box.height, 0, 0.9999),
  ];
}

/** A heading with a word that not everybody knows.
 * @param {Pick<Walk, "t" | "language">} walk
 * @param {string} key
 * @param {...string} words */
export const asked = ({ t, language }, key, ...words) =>
  el("h4", {}, t(key), " ", question(language, words));

/** A grid with its title, and what to do with it.
 * @param {string} title
 * @param {{ node: HTMLElement }} grid
 * @param {string} hint */
export const gridSide = (title, grid, hint) =>
  el(
    "div",
    { class: "ins-side" },
    el("h4", {}, title),
    grid.node,
    el("p", { class: "ins-muted" }, hint),
  );

/** The picture with its patches, and the tokens that belong to no patch above it.
 * @param {Walk} walk
 * @param {{ label: string; prefix?: boolean; choose?: boolean;
 *   point?: (token: number | null) => void }} given */
export function tokenGrid(walk, { label, prefix = false, choose = true, point }) {
  const { facts } = walk,
    [rows, cols] = facts.grid,
    P = prefixCount(facts),
    { data } = walk.host.pictures;
  const canvas = el("canvas", {
    class: "ins-picture",
    tabindex: 0,
    role: "application",
    "aria-label": `${label} ${walk.t("grid_keys")}`,
    style: `aspect-ratio: ${data.picture.size[0]} / ${data.picture.size[1]}`,
  });
  const said = (/** @type {number | null} */ token, byKey = false) => {
    point?.(token);
    if (byKey) walk.say(tokenName(walk, token));
  };
  pointable(canvas, {
    at: (event) => {
      const [x, y] = shareAt(canvas, event);
      return P + Math.floor(y * rows) * cols + Math.floor(x * cols);
    },
    moved: (from, [down, right]) => {
      const [row, col] = placeOf(facts, from === null ? chosenPatch(walk) : from - P);
      if (from === null) return P + row * cols + col;
      return P + clamp(row + down, 0, rows - 1) * cols + clamp(col + right, 0, cols - 1);
    },
    point: said,
    choose: choose ? (token) => walk.choose({ query: placeOf(facts, token - P) }) : undefined,
  });
  const chips = prefix
    ? Array.from({ length: P }, (_, token) =>
        el(
          "button",
          {
            type: "button",
            class: "ins-chip",
            "data-token": token,
            onpointerenter: () => said(token),
            onpointerleave: () => said(null),
            onfocus: () => said(token),
            onblur: () => said(null),
            onclick: () => token === 0 && facts.pool === "token" && walk.choose({ query: null }),
          },
          el("i", { class: "ins-swatch" }),
          tokenName(walk, token),
        ),
      )
    : [];
  const node = el(
    "div",
    { class: "ins-grid" },
    ...(chips.length ? [el("div", { class: "ins-chips" }, ...chips)] : []),
    canvas,
  );
  /** `values` are of all tokens, or of the patches alone.
   * @param {{ values?: ArrayLike<number> | null; signed?: boolean; most?: number; gaps?: boolean;
   *   lines?: boolean; pointed?: number | null; chosen?: number; marked?: number[]; opacity?: number;
   *   dim?: (patch: number) => boolean }} [given] */
  function draw(given = {}) {
    const chosen = given.chosen ?? chosenToken(walk);
    const scale = paintTokens(walk, canvas, { ...given, chosen }, P);
    for (const chip of chips) {
      const token = +chip.dataset.token;
      chip.setAttribute("aria-pressed", String(token === chosen));
      chip.classList.toggle("pointed", token === given.pointed);
      const shown = given.values && given.values.length > rows * cols && scale;
      /** @type {HTMLElement} */ (chip.firstChild).style.background = shown
        ? colourOf(walk, given.values[token], scale, given.signed)
        : "";
    }
    return scale;
  }
  return { node, canvas, draw };
}

/** @param {Walk} walk
 * @param {number} value
 * @param {Scale} scale
 * @param {boolean} [signed] */
function colourOf(walk, value, scale, signed = false) {
  const { tables, colours } = walk.host.pictures,
    table = tables[signed ? "difference" : colours];
  const c = table[shadeOf(value, scale)];
  return `rgb(${c & 255} ${(c >> 8) & 255} ${(c >> 16) & 255})`;
}

/** @param {Walk} walk
 * @param {HTMLCanvasElement} canvas
 * @param {any} given
 * @param {number} P */
function paintTokens(walk, canvas, given, P) {
  const { facts } = walk,
    { ground, seen, tables, colours, data } = walk.host.pictures,
    { colour, grey, crisp } = given.values ? ground : seen,
    [rows, cols] = facts.grid,
    [w, h] = data.picture.size;
  const width = canvas.clientWidth || 280,
    ratio = fitCanvas(canvas, width, (width * h) / w),
    context = canvas.getContext("2d"),
    { width: W, height: H } = canvas;
  context.clearRect(0, 0, W, H);
  context.imageSmoothingEnabled = !crisp;
  context.imageSmoothingQuality = "high";
  context.drawImage(given.values ? grey : colour, 0, 0, W, H);
  let scale = null;
  if (given.values) {
    const patches = Array.from(given.values).slice(-rows * cols);
    scale = given.signed
      ? given.most
        ? { low: -given.most, high: given.most }
        : scaleAround([given.values])
      : scaleOf([patches]);
    drawMap(context, W, H, patches, facts.grid, {
      table: tables[given.signed ? "difference" : colours],
      scale,
      opacity: given.opacity ?? 0.75,
      smooth: false,
    });
  }
  const [dx, dy] = [W / cols, H / rows];
  if (given.dim) {
    context.fillStyle = "#101318";
    context.globalAlpha = 0.72;
    for (let k = 0; k < rows * cols; k++)
      if (given.dim(k)) context.fillRect((k % cols) * dx, Math.floor(k / cols) * dy, dx, dy);
    context.globalAlpha = 1;
  }
  if (given.gaps || given.lines) {
    context.strokeStyle = given.gaps ? getComputedStyle(document.body).backgroundColor : "#fff5";
    context.lineWidth = (given.gaps ? 2.5 : 1) * ratio;
    context.beginPath();
    for (let c = 1; c < cols; c++) {
      context.moveTo(c * dx, 0);
      context.lineTo(c * dx, H);
    }
    for (let r = 1; r < rows; r++) {
      context.moveTo(0, r * dy);
      context.lineTo(W, r * dy);
    }
    context.stroke();
  }
  /**
   * @param {number} token
   * @param {string} colour
   * @param {number} line */
  const box = (token, colour, line) => {
    if (token === null || token === undefined || token < P) return;
    const [row, col] = placeOf(facts, token - P);
    frame(context, col * dx, row * dy, dx, dy, colour, "#000a", line * ratio);
  };
  for (const token of given.marked ?? []) box(token, "#ff5c4d", 1.5);
  box(given.chosen, given.gaps ? inks(walk.root).accent : "#fff", given.gaps ? 3.5 : 2.5);
  if (given.pointed !== given.chosen) box(given.pointed, "#ffd54a", 2);
  return scale;
}

/** A strip of numbers: bars around zero, each of which can be pointed at.
 * @param {Walk} walk
 * @param {{ label: string; height?: number; point?: (at: number | null) => void;
 *   choose?: (at: number) => void }} given */
export function strip(walk, { label, height = 54, point = () => {}, choose }) {
  const canvas = el("canvas", {
    class: "ins-strip",
    style: `height: ${height}px`,
    tabindex: 0,
    role: "application",
    "aria-label": `${label} ${walk.t("strip_keys")}`,
  });
  let length = 1;
  pointable(canvas, {
    at: (event) => Math.floor(shareAt(canvas, event)[0] * length),
    moved: (from, [, right]) => (from === null ? 0 : clamp(from + right, 0, length - 1)),
    point,
    choose,
  });
  /**
   * @param {ArrayLike<number>} values
   * @param {{ pointed?: number | null; chosen?: number | null; most?: number; mean?: number;
   *   band?: number; ghost?: ArrayLike<number> }} [given] */
  function draw(values, given = {}) {
    length = values.length;
    const ratio = fitCanvas(canvas, canvas.clientWidth || 300, height),
      context = canvas.getContext("2d"),
      { width: W, height: H } = canvas,
      ink = inks(walk.root);
    const top = given.most || Math.max(most(values), most(given.ghost ?? []), 1e-12),
      y = (/** @type {number} */ x) => H / 2 - (x / top) * (H / 2 - ratio),
      step = W / length,
      wide = Math.max(step > 4 * ratio ? step - ratio : step, 0.6);
    context.clearRect(0, 0, W, H);
    context.fillStyle = ink.line;
    context.globalAlpha = 0.45;
    if (given.band)
      context.fillRect(0, y(given.mean + given.band), W, y(-given.band) - y(given.band));
    context.globalAlpha = 1;
    context.fillStyle = ink.line;
    context.fillRect(0, H / 2 - ratio / 2, W, ratio);
    if (given.ghost) {
      context.fillStyle = ink.line;
      for (let k = 0; k < length; k++) bar(k * step, given.ghost[k]);
    }
    for (let k = 0; k < length; k++) {
      context.fillStyle = values[k] < 0 ? ink.less : ink.more;
      context.globalAlpha = k === given.pointed || k === given.chosen ? 1 : 0.72;
      bar(k * step, values[k]);
    }
    context.globalAlpha = 1;
    if (given.mean !== undefined) {
      context.fillStyle = ink.ink;
      context.fillRect(0, y(given.mean) - ratio / 2, W, ratio);
    }
    for (const [at, colour] of [
      [given.chosen, ink.ink],
      [given.pointed, ink.accent],
    ]) {
      if (at === null || at === undefined) continue;
      context.strokeStyle = /** @type {string} */ (colour);
      context.lineWidth = 1.5 * ratio;
      const grow = Math.max(0, 3 * ratio - step / 2);
      context.strokeRect(+at * step - grow, ratio, step + 2 * grow, H - 2 * ratio);
    }
    /** @param {number} x
     * @param {number} value */
    function bar(x, value) {
      const from = y(0),
        to = y(value);
      context.fillRect(x, Math.min(from, to), wide, Math.max(Math.abs(from - to), 0.5));
    }
  }
  return { node: canvas, draw };
}

/** Numbers on a small canvas, a cell each: planes of a patch, kernels, maps.
 * @param {Walk} walk
 * @param {{ label?: string; point?: (at: number | null) => void; size?: [rows: number, cols: number] }} given */
export function cells(walk, { label, point, size: [rows, cols] = [1, 1] }) {
  const canvas = el("canvas", {
    class: "ins-cells",
    style: `aspect-ratio: ${cols} / ${rows}`,
    ...(point
      ? { tabindex: 0, role: "application", "aria-label": label }
      : { role: "presentation" }),
  });
  if (point)
    pointable(canvas, {
      at: (event) => {
        const [x, y] = shareAt(canvas, event);
        return Math.floor(y * rows) * cols + Math.floor(x * cols);
      },
      moved: (from, [down, right]) => {
        const at = from ?? 0;
        return (
          clamp(Math.floor(at / cols) + down, 0, rows - 1) * cols +
          clamp((at % cols) + right, 0, cols - 1)
        );
      },
      point,
    });
  /** `colour` gives each cell's colour; without it, red and blue around zero.
   * @param {ArrayLike<number>} values
   * @param {{ most?: number; pointed?: number | null; colour?: (k: number) => string }} [given] */
  function draw(values, given = {}) {
    const width = canvas.clientWidth || 80,
      ratio = fitCanvas(canvas, width, canvas.clientHeight || (width * rows) / cols),
      context = canvas.getContext("2d"),
      [dx, dy] = [canvas.width / cols, canvas.height / rows];
    const top = given.most || most(values) || 1e-12;
    for (let k = 0; k < rows * cols; k++) {
      const [x, y] = [Math.round((k % cols) * dx), Math.round(Math.floor(k / cols) * dy)];
      context.fillStyle =
        given.colour?.(k) ?? colourOf(walk, values[k], { low: -top, high: top }, true);
      context.fillRect(x, y, Math.ceil(dx), Math.ceil(dy));
    }
    const at = given.pointed;
    if (at !== null && at !== undefined)
      frame(
        context,
        (at % cols) * dx,
        Math.floor(at / cols) * dy,
        dx,
        dy,
        "#ffd54a",
        "#000a",
        ratio,
      );
  }
  return { node: canvas, draw };
}

/** The picture in grey with a map over it, small.
 * @param {Walk} walk
 * @param {ArrayLike<number>} values of the patches
 * @param {{ size?: number; signed?: boolean; scale?: Scale }} [given] */
export function smallMap(walk, values, { size = 120, signed = false, scale } = {}) {
  const { ground, tables, colours, data } = walk.host.pictures,
    [w, h] = data.picture.size;
  const canvas = el("canvas", { class: "ins-map", role: "presentation" });
  fitCanvas(canvas, size, (size * h) / w);
  canvas.style.aspectRatio = `${w} / ${h}`;
  const context = canvas.getContext("2d");
  context.imageSmoothingEnabled = !ground.crisp;
  context.drawImage(ground.grey, 0, 0, canvas.width, canvas.height);
  drawMap(context, canvas.width, canvas.height, values, walk.facts.grid, {
    table: tables[signed ? "difference" : colours],
    scale: scale ?? (signed ? scaleAround([values]) : scaleOf([values])),
    opacity: 0.75,
    smooth: false,
  });
  return canvas;
}

/** A bar whose length is a share of 1.
 * @param {number} share
 * @param {string} [kind] */
export function bar(share, kind = "") {
  return el(
    "span",
    { class: `ins-bar ${kind}`, "aria-hidden": "true" },
    el("i", { style: `width: ${(100 * clamp(share, 0, 1)).toFixed(2)}%` }),
  );
}

/** A switch of two or more.
 * @param {string} label
 * @param {[value: string, text: string][]} options
 * @param {string} chosen
 * @param {(value: string) => void} change */
export function choices(label, options, chosen, change) {
  const name = `ins-${++serial}`;
  return el(
    "div",
    { class: "ins-choice", role: "radiogroup", "aria-label": label },
    ...options.map(([value, text]) => {
      const input = el("input", { type: "radio", name, value, onchange: () => change(value) });
      input.checked = value === chosen;
      return el("label", {}, input, el("span", {}, text));
    }),
  );
}

let serial = 0;

/** A sum in words and numbers: parts that are shown, joined by signs.
 * @param {...(Node | string)} parts */
export const formulaLine = (...parts) => el("p", { class: "ins-sum" }, ...parts);

/** New children; whoever had the focus keeps it, by the `data-label` around it.
 * @param {HTMLElement} parent
 * @param {...HTMLElement} children */
export function keepFocus(parent, ...children) {
  const held = parent.contains(document.activeElement),
    label = held && document.activeElement.closest("[data-label]");
  parent.replaceChildren(...children);
  if (label instanceof HTMLElement)
    find(parent, `[data-label="${label.dataset.label}"] button`)?.focus();
}
