// @ts-check
// Steps 1 and 2: from pixels to normalised numbers, and from a patch to a token.

import { el } from "../explorer/elements.js";
import { svg } from "../svg.js";
import {
  asked,
  bar,
  cells,
  chosenPatch,
  formulaLine,
  gridSide,
  number,
  prefixCount,
  strip,
  tokenGrid,
} from "./drawing.js";
import { secret } from "./guess.js";
import { figure, fixed, most } from "./numbers.js";

const CHANNELS = { 1: ["grey"], 3: ["red", "green", "blue"] };

/** The values of one channel.
 * @param {ArrayLike<number>} all
 * @param {number} channel
 * @param {number} size */
const plane = (all, channel, size) => Array.from(all).slice(channel * size, (channel + 1) * size);

/** @type {WalkStep} */
export const pixels = {
  name: "pixels",
  uses: ["patch"],
  onlyPatches: true,
  shapes: ({ size: [H, W], channels }, t) => [
    `${H} × ${W} × ${channels} ${t("bytes")}`,
    `${channels} × ${H} × ${W}`,
  ],
  needs: (walk) => [["patch", { query: walk.choice.query }]],
  guess({ facts }) {
    const ends = facts.mean.map((mean, c) => [-mean / facts.std[c], (1 - mean) / facts.std[c]]);
    const list = (/** @type {number[]} */ values) => values.map((x) => fixed(x)).join(", ");
    return {
      right: "a",
      values: {
        mean: list(facts.mean.map((m) => 255 * m)).replace(/\.\d+/g, ""),
        black: list(ends.map(([low]) => low)),
        white: list(ends.map(([, high]) => high)),
      },
    };
  },
  build(walk) {
    const { facts, t } = walk,
      [p, q] = facts.patch,
      names = CHANNELS[facts.channels];
    let answer = null,
      pixel = null;
    const point = (/** @type {number | null} */ at) => {
      pixel = at;
      draw([answer]);
    };
    const grid = tokenGrid(walk, { label: t("crop") });
    const size = /** @type {[number, number]} */ ([p, q]);
    const zoom = cells(walk, { label: t("zoom_keys"), point, size }),
      planes = names.map(() => cells(walk, { size }));
    const table = el("tbody"),
      lines = el("div", { class: "ins-lines" });
    const node = el(
      "div",
      { class: "ins-two" },
      gridSide(t("crop"), grid, t("click_patch")),
      el(
        "div",
        { class: "ins-main" },
        el("h4", {}, t("one_patch", { p, q, C: facts.channels })),
        el(
          "div",
          { class: "ins-planes" },
          el("figure", {}, zoom.node, el("figcaption", {}, t("patch_colour"))),
          ...planes.map((one, c) => el("figure", {}, one.node, el("figcaption", {}, t(names[c])))),
        ),
        el("p", { class: "ins-muted" }, t("point_pixel")),
        el(
          "table",
          { class: "ins-table" },
          el("thead", {}, row("th", t("channel"), t("byte"), t("normalised"))),
          table,
        ),
        lines,
      ),
    );

    /** @param {PartAnswer[]} answers */
    function draw([found]) {
      answer = found;
      const at = pixel ?? (p >> 1) * q + (q >> 1),
        { values, pixels: normalised } = found.arrays,
        colour = (/** @type {number} */ c, /** @type {number} */ k) => values[c * p * q + k];
      grid.draw({ lines: true, chosen: prefixCount(facts) + chosenPatch(walk) });
      zoom.draw(values, {
        pointed: at,
        colour: (k) =>
          `rgb(${[0, 1, 2].map((c) => colour(Math.min(c, names.length - 1), k)).join(" ")})`,
      });
      planes.forEach((one, c) => {
        one.draw(plane(values, c, p * q), {
          pointed: at,
          colour: (k) => tint(names[c], colour(c, k)),
        });
      });
      table.replaceChildren(
        ...names.map((name, c) => {
          const [mean, std] = [facts.mean[c], facts.std[c]],
            byte = colour(c, at);
          return row(
            "td",
            el("span", { class: `ins-${name}` }, t(name)),
            number(`byte_${c}`, byte, String(byte)),
            el(
              "span",
              {},
              `(${byte} / 255 − ${+mean.toFixed(3)}) / ${+std.toFixed(3)} = `,
              number(`normalised_${c}`, normalised[c * p * q + at]),
            ),
          );
        }),
      );
      lines.replaceChildren(
        ...names.map((name, c) =>
          numberLine(walk, name, facts.mean[c], facts.std[c], normalised[c * p * q + at]),
        ),
      );
    }
    return { node, draw };
  },
};

/** A grey value in the colour of its channel.
 * @param {string} name
 * @param {number} value */
function tint(name, value) {
  const only = {
    red: [1, 0.25, 0.25],
    green: [0.25, 1, 0.25],
    blue: [0.35, 0.35, 1],
    grey: [1, 1, 1],
  }[name];
  return `rgb(${only.map((share) => Math.round(share * value)).join(" ")})`;
}

/** Where black, 0 and white lie for a channel, and where this pixel.
 * @param {Walk} walk
 * @param {string} name
 * @param {number} mean
 * @param {number} std
 * @param {number} value */
function numberLine({ t }, name, mean, std, value) {
  const black = -mean / std,
    white = (1 - mean) / std,
    x = (/** @type {number} */ v) => 40 + ((v - black) / (white - black)) * 380;
  /** @param {number} v
   * @param {string} text */
  const tick = (v, text) => [
    svg("path", { class: "tick", d: `M${x(v)} 12V22` }),
    svg("text", { x: x(v), y: 38, "text-anchor": "middle" }, text),
  ];
  return svg(
    "svg",
    {
      class: "ins-line",
      viewBox: "0 0 460 44",
      role: "img",
      "aria-label": `${t(name)}: ${fixed(value)}`,
    },
    svg("path", { class: "axis", d: `M${x(black)} 17H${x(white)}` }),
    ...tick(black, `${t("black")} ${fixed(black)}`),
    ...tick(0, "0"),
    ...tick(white, `${t("white")} ${fixed(white)}`),
    svg("circle", { class: `dot ins-fill-${name}`, cx: x(value), cy: 17, r: 6 }),
  );
}

/** @param {"th" | "td"} tag
 * @param {...(Node | string)} texts */
function row(tag, ...texts) {
  return el("tr", {}, ...texts.map((text) => el(tag, tag === "th" ? { scope: "col" } : {}, text)));
}

/** @type {WalkStep} */
export const patches = {
  name: "patches",
  uses: ["patch"],
  onlyPatches: true,
  shapes: ({ channels, size: [H, W], grid: [rows, cols], width }) => [
    `${channels} × ${H} × ${W}`,
    `${rows} · ${cols} × ${width} = ${rows * cols} × ${width}`,
  ],
  needs(walk) {
    const { query } = walk.choice,
      { channel } = walk.local;
    return [
      ["patch", { query }],
      channel === undefined ? ["kernel", { query }] : ["kernel", { channel }],
      ["filters", {}],
    ];
  },
  guess: (walk, [patch]) => ({
    right: "b",
    values: { difference: figure(patch.difference, 2), ...sizes(walk) },
  }),
  build(walk) {
    const { facts, t } = walk,
      [p, q] = facts.patch,
      names = CHANNELS[facts.channels],
      size = /** @type {[number, number]} */ ([p, q]);
    let answers = null,
      cell = null,
      pointed = null;
    const grid = tokenGrid(walk, { label: t("cut") });
    const point = (/** @type {number} */ c) => (/** @type {number | null} */ at) => {
      cell = at === null ? null : c * p * q + at;
      draw(answers);
    };
    const rows = ["pixel_values", "kernel", "products"].map((name) => ({
      name,
      planes: names.map((channel, c) =>
        cells(walk, {
          size,
          point: point(c),
          label: `${t(name)}, ${t(channel)}. ${t("cell_keys")}`,
        }),
      ),
    }));
    const strips = ["convolution", "unfold"].map((name) => ({
      name,
      strip: strip(walk, {
        label: t(`by_${name}`),
        point: (at) => {
          pointed = at;
          draw(answers);
        },
        choose: (at) => {
          walk.local.channel = at;
          walk.refresh();
        },
      }),
    }));
    const total = el("div"),
      operands = el("p", { class: "ins-operands" }),
      values = el("p", { class: "ins-operands" }),
      opened = el("h4"),
      difference = el("p"),
      hidden = secret(walk, "patches", labelled(t("by_unfold"), strips[1].strip.node), difference),
      filters = el("div", { class: "ins-filters" });
    const figures = rows.flatMap(({ name, planes }, k) => [
      ...(k ? [el("span", { class: "ins-sign", "aria-hidden": "true" }, k === 1 ? "×" : "=")] : []),
      el(
        "figure",
        {},
        el("div", { class: "ins-stack" }, ...planes.map((one) => one.node)),
        el("figcaption", {}, t(name)),
      ),
    ]);
    const node = el(
      "div",
      {},
      el(
        "div",
        { class: "ins-two" },
        gridSide(t("cut"), grid, t("click_patch")),
        el(
          "div",
          { class: "ins-main" },
          el("h4", {}, t("two_ways", sizes(walk))),
          labelled(t("by_convolution"), strips[0].strip.node),
          ...hidden.nodes,
          values,
          opened,
          el("div", { class: "ins-products" }, ...figures),
          operands,
          total,
        ),
      ),
      asked(walk, "filters", "component"),
      el("p", { class: "ins-muted" }, t("filters_about", sizes(walk))),
      filters,
    );

    /** @param {PartAnswer[]} found */
    function draw(found) {
      answers = found;
      const [patch, kernel, pca] = found,
        { pixels: numbers, convolution, unfold } = patch.arrays,
        weights = kernel.arrays.kernel,
        channel = kernel.channel,
        products = Array.from(weights, (w, k) => w * numbers[k]);
      hidden.show();
      grid.draw({ gaps: true, chosen: prefixCount(facts) + chosenPatch(walk) });
      const top = Math.max(most(convolution), most(unfold));
      for (const { name, strip: one } of strips)
        one.draw(patch.arrays[name], { most: top, pointed, chosen: channel });
      const at = pointed ?? channel;
      values.replaceChildren(
        `${t("output_number", { k: at + 1 })} `,
        number("convolution", convolution[at], figure(convolution[at])),
        ...(walk.guesses.has("patches")
          ? [` ${t("and_unfold")} `, number("unfold", unfold[at], figure(unfold[at]))]
          : []),
      );
      difference.replaceChildren(
        `${t("largest_difference", sizes(walk))} `,
        number("difference", patch.difference, figure(patch.difference, 2)),
      );
      opened.textContent = t("opened", { k: channel + 1 });
      const arrays = { pixel_values: numbers, kernel: weights, products };
      for (const { name, planes } of rows) {
        const largest = most(arrays[name]);
        planes.forEach((one, c) => {
          const here = cell !== null && Math.floor(cell / (p * q)) === c ? cell % (p * q) : null;
          one.draw(plane(arrays[name], c, p * q), { most: largest, pointed: here });
        });
      }
      const k = cell ?? 0;
      operands.textContent =
        cell === null
          ? t("point_cell")
          : `${figure(numbers[k])} × ${figure(weights[k])} = ${figure(products[k])}`;
      operands.dataset.value = cell === null ? "" : String(products[k]);
      const sum = products.reduce((a, b) => a + b, 0);
      total.replaceChildren(
        formulaLine(
          `${t("sum_of", { count: products.length })} `,
          number("sum", sum, figure(sum)),
          ` + ${t("bias")} `,
          number("bias", kernel.bias, figure(kernel.bias)),
          " = ",
          number("output", sum + kernel.bias, figure(sum + kernel.bias)),
        ),
      );
      if (!filters.childElementCount) showFilters(walk, filters, pca, size);
    }
    return { node, draw };
  },
};

/** @param {Walk} walk */
const sizes = ({ facts: { channels, patch, grid, width } }) => ({
  C: channels,
  p: patch[0],
  q: patch[1],
  n: grid[0] * grid[1],
  D: width,
  pixels: channels * patch[0] * patch[1],
});

/** @param {string} text
 * @param {Node} node */
export const labelled = (text, node) =>
  el("div", { class: "ins-labelled" }, el("span", { class: "ins-muted" }, text), node);

/** The principal components of the kernels, with the share of the variance that lies along each.
 * @param {Walk} walk
 * @param {HTMLElement} host
 * @param {PartAnswer} answer
 * @param {[number, number]} size */
export function showFilters(walk, host, { count, arrays: { components, variance } }, [p, q]) {
  const { channels } = walk.facts,
    one = channels * p * q;
  host.replaceChildren(
    ...Array.from({ length: count }, (_, k) => {
      const codes = components.subarray(k * one, (k + 1) * one),
        tile = cells(walk, { size: [p, q] });
      const colour = (/** @type {number} */ at) =>
        `rgb(${[0, 1, 2].map((c) => codes[Math.min(c, channels - 1) * p * q + at]).join(" ")})`;
      const share = `${(100 * variance[k]).toFixed(1)} %`;
      const figure = el(
        "figure",
        {},
        tile.node,
        el("figcaption", {}, share),
        bar(variance[k] / variance[0]),
      );
      requestAnimationFrame(() => tile.draw(new Float32Array(p * q), { colour }));
      return figure;
    }),
  );
}
