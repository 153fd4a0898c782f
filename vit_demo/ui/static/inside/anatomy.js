// @ts-check
// The model alone: how far its heads look, how widely, its positions, its filters. Means over the examples.

import { fitCanvas } from "../explorer/draw.js";
import { el } from "../explorer/elements.js";
import { part } from "./ask.js";
import { chart } from "./charts.js";
import { asked, number } from "./drawing.js";
import { figure, fixed } from "./numbers.js";
import { showFilters } from "./pixels.js";

/** @param {Walk} walk */
export function buildAnatomy(walk) {
  const { t, facts } = walk;
  const about = el("p", { class: "ins-muted", role: "status" }),
    distance = el("div"),
    entropy = el("div"),
    positions = el("canvas", {
      class: "ins-positions",
      role: "img",
      "aria-label": t("anatomy_positions"),
    }),
    filters = el("div", { class: "ins-filters" }),
    under = [el("p", { class: "ins-operands" }), el("p", { class: "ins-operands" })];
  const centre = el("input", {
    type: "checkbox",
    onchange: () => {
      walk.local.centred = centre.checked;
      walk.refresh();
    },
  });
  centre.checked = walk.local.centred ?? true;
  walk.local.centred = centre.checked;
  /** @param {string} key
   * @param {string} word for its "?"
   * @param {...(Node | string)} children */
  const panel = (key, word, ...children) =>
    el(
      "div",
      { class: "ins-panel" },
      asked(walk, `anatomy_${key}`, word),
      el("p", { class: "ins-muted" }, t(`anatomy_${key}_about`)),
      ...children,
    );
  const node = el(
    "div",
    {},
    el("p", { class: "ins-sentence" }, t("say_anatomy", { model: facts.model })),
    about,
    el(
      "div",
      { class: "ins-halves" },
      panel("distance", "distance", distance, under[0]),
      panel("entropy", "entropy", entropy, under[1]),
      panel(
        "positions",
        "cosine",
        el("label", { class: "ins-check" }, centre, t("centred")),
        positions,
      ),
      panel("filters", "component", filters),
    ),
  );
  let turn = 0;

  /** The examples come one after the other; the mean is of those that are here.
   * @param {PartAnswer[]} found */
  async function draw([grid, pca]) {
    const mine = ++turn;
    drawPositions(walk, positions, grid);
    if (!filters.childElementCount)
      showFilters(walk, filters, pca, /** @type {[number, number]} */ (facts.patch));
    /** @type {PartAnswer[]} */
    const here = [];
    for (let k = 0; k < facts.examples; k++) {
      try {
        here.push(await part(walk, ["example", { example: k }]));
      } catch (error) {
        if (mine === turn) about.textContent = error.message;
        return;
      }
      if (mine !== turn || !node.isConnected) return;
      showMeans(here);
    }
  }

  /** @param {PartAnswer[]} here */
  function showMeans(here) {
    about.textContent = t(here.length < facts.examples ? "mean_coming" : "mean_of", {
      count: here.length,
      all: facts.examples,
    });
    about.dataset.count = String(here.length);
    const mean = (/** @type {string} */ key) =>
      Array.from(
        here[0].arrays[key],
        (_, k) => here.reduce((all, one) => all + one.arrays[key][k], 0) / here.length,
      );
    [
      ["distance", distance, "px"],
      ["entropy", entropy, t("bits")],
    ].forEach(([key, host, unit], k) => {
      const values = mean(String(key)),
        level = here[0].uniform[String(key)];
      /** @type {HTMLElement} */ (host).replaceChildren(
        heads(String(key), values, level, String(unit)),
      );
      /** @type {HTMLElement} */ (host).dataset.values = values.join();
      const all = values.reduce((a, b) => a + b, 0) / values.length;
      under[k].replaceChildren(
        `${t("mean_all_heads")} `,
        number(`mean_${key}`, all, fixed(all, 1)),
        ` ${unit}, ${t("uniform")} `,
        number(`uniform_${key}`, level, fixed(level, 1)),
        ` ${unit}`,
      );
    });
  }

  /** One dot a head.
   * @param {string} key
   * @param {number[]} values
   * @param {number} level
   * @param {string} unit */
  function heads(key, values, level, unit) {
    return chart({
      label: t(`anatomy_${key}`),
      count: facts.layers,
      names: Array.from({ length: facts.layers }, (_, k) => String(k + 1)),
      x: t("layer"),
      y: t(`axis_${key}`),
      to: Math.max(level, ...values) * 1.08,
      series: [],
      level: { value: level, text: t("uniform") },
      points: values.map((value, k) => {
        const [layer, head] = [Math.floor(k / facts.heads), k % facts.heads];
        return {
          kind: "head",
          at: layer,
          value,
          text: t("head_value", { layer: layer + 1, head: head + 1, value: figure(value), unit }),
        };
      }),
    });
  }
  return {
    node,
    draw,
    uses: [],
    needs: () =>
      /** @type {Wish[]} */ ([
        ["position_grid", { centred: walk.local.centred }],
        ["filters", {}],
      ]),
  };
}

/** Every shown patch as a small map of the grid: how alike its position is to all others.
 * @param {Walk} walk
 * @param {HTMLCanvasElement} canvas
 * @param {PartAnswer} answer */
function drawPositions(
  walk,
  canvas,
  { grid: [rows, cols], shown: [down, across], arrays: { cosines } },
) {
  const width = canvas.clientWidth || 320,
    gap = 2;
  canvas.style.aspectRatio = `${across * cols} / ${down * rows}`;
  const ratio = fitCanvas(canvas, width, (width * down * rows) / (across * cols)),
    context = canvas.getContext("2d"),
    table = walk.host.pictures.tables.difference,
    [w, h] = [canvas.width / across, canvas.height / down];
  context.clearRect(0, 0, canvas.width, canvas.height);
  context.imageSmoothingEnabled = false;
  const small = el("canvas", { width: cols, height: rows }),
    pen = small.getContext("2d"),
    image = pen.createImageData(cols, rows),
    pixels = new Uint32Array(image.data.buffer);
  for (let k = 0; k < down * across; k++) {
    for (let j = 0; j < rows * cols; j++) pixels[j] = table[cosines[k * rows * cols + j]];
    pen.putImageData(image, 0, 0);
    const [r, c] = [Math.floor(k / across), k % across];
    context.drawImage(small, c * w, r * h, w - gap * ratio, h - gap * ratio);
  }
}
