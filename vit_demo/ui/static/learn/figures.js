// @ts-check
// Three pictures of the model at the chosen moment: where its heads look in the digit, how alike its
// positions are, and what it takes for what.

import { canvasOf, drawMap, fitCanvas, gradient, scaleOf } from "../explorer/draw.js";
import { el } from "../explorer/elements.js";
import { percent } from "../explorer/words.js";
import { question } from "../glossary.js";

const GREYS = Uint32Array.from({ length: 256 }, (_, k) => (0xff000000 | (k * 0x010101)) >>> 0);
const TILE = 84; // pixels of a head's map, before the screen's own scale
const GAP = 3; // between the squares of the positions
const COSINES = { low: -1, high: 1 };

/** @param {Learn} learn */
export function buildFigures(learn) {
  return el(
    "div",
    { class: "learn-figures" },
    buildHeads(learn),
    buildPositions(learn),
    buildConfusion(learn),
  );
}

/** @param {Learn} learn
 * @param {string} title
 * @param {string[]} words for its "?"
 * @param {...(Node | string)} children */
const figure = ({ language }, title, words, ...children) =>
  el(
    "section",
    { "aria-label": title },
    el("h3", {}, title, " ", question(language, words)),
    ...children,
  );

/** A scale of colours with its ends in words.
 * @param {string} what */
function legend(what) {
  const [low, bar, high] = [el("span", {}), el("i", {}), el("span", {})];
  const node = el("p", { class: "learn-scale" }, low, bar, high, el("span", {}, what));
  /** @param {ColourTable} table
   * @param {[string, string]} ends */
  const set = (table, ends) => {
    [low.textContent, high.textContent] = ends;
    bar.style.background = gradient(table);
  };
  return { node, set };
}

// ---- The wall of heads

/** @param {Learn} learn */
function buildHeads(learn) {
  const { ui, t } = learn;
  ui.wall = el("div", { class: "learn-wall", role: "img" });
  ui.headLegend = legend(t("heads_legend"));
  const choice = el("div", { class: "why-choice", role: "radiogroup", "aria-label": t("map") });
  for (const name of learn.maps) {
    const change = () => {
      learn.map = name;
      showHeads(learn);
    };
    const input = el("input", { type: "radio", name: "learn-map", value: name, onchange: change });
    input.checked = name === learn.map;
    choice.append(el("label", {}, input, el("span", {}, t(`map_${name}`))));
  }
  return figure(
    learn,
    t("heads_title"),
    ["head", ...learn.maps],
    el("p", { class: "learn-muted" }, t("heads_about")),
    choice,
    ui.wall,
    ui.headLegend.node,
  );
}

/** All heads on one scale of colours, which is the same at every moment.
 * @param {Learn} learn */
export function showHeads(learn) {
  const { ui, t, digit, tables, colours, history, at, map } = learn;
  if (!ui.wall || !history || !tables[colours]) return;
  ui.wall.classList.toggle("empty", !digit);
  ui.headLegend.node.hidden = !digit;
  if (!digit) {
    ui.wall.replaceChildren(t("answer_empty"));
    ui.wall.setAttribute("aria-label", t("answer_empty"));
    return;
  }
  const { layers, heads, maps, size } = digit,
    patches = history.grid[0] * history.grid[1],
    scale = scaleOf([maps[map]], 0.99),
    table = tables[colours],
    below = canvasOf(digit.pixels, size[0], size[1], GREYS, { low: 0, high: 256 });
  const cells = [];
  for (let layer = layers - 1; layer >= 0; layer--) {
    cells.push(el("span", {}, String(layer + 1)));
    for (let head = 0; head < heads; head++) {
      const from = ((at * layers + layer) * heads + head) * patches,
        canvas = el("canvas", { title: t("head_name", { layer: layer + 1, head: head + 1 }) }),
        context = canvas.getContext("2d");
      fitCanvas(canvas, TILE, TILE);
      context.imageSmoothingEnabled = false;
      context.drawImage(below, 0, 0, canvas.width, canvas.height);
      drawMap(
        context,
        canvas.width,
        canvas.height,
        maps[map].subarray(from, from + patches),
        history.grid,
        { table, scale, opacity: 0.68, smooth: false },
      );
      cells.push(canvas);
    }
  }
  const numbers = Array.from({ length: heads }, (_, head) => el("span", {}, String(head + 1)));
  ui.wall.style.setProperty("--heads", String(heads));
  ui.wall.replaceChildren(el("span", {}), ...numbers, ...cells);
  ui.wall.setAttribute("aria-label", t("heads_label", { layers, heads, map: t(`map_${map}`) }));
  ui.headLegend.set(table, [
    percent(scale.low),
    `${percent(scale.high)}${scale.clipped ? "+" : ""}`,
  ]);
}

// ---- Positions

/** @param {Learn} learn */
function buildPositions(learn) {
  const { ui, t } = learn;
  ui.positions = el("canvas", {
    class: "learn-positions",
    role: "img",
    "aria-label": t("positions_label"),
  });
  ui.positionLegend = legend(t("positions_legend"));
  return figure(
    learn,
    t("positions_title"),
    ["cosine"],
    el("p", { class: "learn-muted" }, t("positions_about")),
    ui.positions,
    ui.positionLegend.node,
  );
}

/** One square a patch: the cosine of its position with those of all patches, at their places.
 * @param {Learn} learn */
export function showPositions({ ui, tables, history, positions, at }) {
  if (!ui.positions || !history || !tables.difference) return;
  const [rows, cols] = history.grid,
    n = rows * cols,
    side = 300;
  fitCanvas(ui.positions, side, (side * rows) / cols);
  const context = ui.positions.getContext("2d"),
    gap = GAP * (window.devicePixelRatio || 1),
    w = (ui.positions.width - (cols - 1) * gap) / cols,
    h = (ui.positions.height - (rows - 1) * gap) / rows;
  context.clearRect(0, 0, ui.positions.width, ui.positions.height);
  context.imageSmoothingEnabled = false;
  for (let patch = 0; patch < n; patch++) {
    const from = (at * n + patch) * n,
      square = canvasOf(positions.subarray(from, from + n), cols, rows, tables.difference, COSINES);
    const x = (patch % cols) * (w + gap),
      y = Math.floor(patch / cols) * (h + gap);
    context.drawImage(square, Math.round(x), Math.round(y), Math.round(w), Math.round(h));
  }
  ui.positionLegend.set(tables.difference, ["\u22121", "1"]);
}

// ---- The confusion matrix

/** @param {Learn} learn */
function buildConfusion(learn) {
  const { ui, t, number, history } = learn,
    { labels, test_pictures } = history;
  ui.cells = labels.map(() => labels.map(() => el("td", {})));
  ui.counts = el("p", { class: "learn-muted" });
  const head = el(
    "tr",
    {},
    el("td", {}),
    ...labels.map((label) => el("th", { scope: "col" }, label)),
  );
  const rows = labels.map((label, k) =>
    el("tr", {}, el("th", { scope: "row" }, label), ...ui.cells[k]),
  );
  return figure(
    learn,
    t("confusion_title", { count: number(test_pictures) }),
    ["confusion"],
    ui.counts,
    el(
      "table",
      { class: "learn-confusion", "aria-label": t("confusion_label") },
      el("thead", {}, head),
      el("tbody", {}, ...rows),
    ),
    el("p", { class: "learn-muted" }, t("confusion_about")),
  );
}

/** @param {Learn} learn */
export function showConfusion({ ui, t, number, history, at }) {
  const { confusion } = history.moments[at];
  let right = 0;
  confusion.forEach((row, truth) => {
    const all = row.reduce((a, b) => a + b, 0);
    right += row[truth];
    row.forEach((count, answer) => {
      const cell = ui.cells[truth][answer];
      cell.textContent = count ? String(count) : "";
      cell.className = answer === truth ? "right" : "wrong";
      cell.style.setProperty(
        "--share",
        `${(100 * Math.sqrt(count / Math.max(1, all))).toFixed(1)}%`,
      );
    });
  });
  ui.counts.textContent = t("confusion_counts", {
    right: number(right),
    wrong: number(history.test_pictures - right),
  });
}
