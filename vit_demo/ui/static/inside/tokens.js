// @ts-check
// Steps 3 and 4: the class token and the positions, LayerNorm.

import { el } from "../explorer/elements.js";
import { shortName } from "../explorer/words.js";
import { chart } from "./charts.js";
import {
  asked,
  bar,
  choices,
  chosenPatch,
  chosenToken,
  number,
  placeOf,
  prefixCount,
  strip,
  tokenGrid,
  tokenName,
} from "./drawing.js";
import { figure, fixed, median, rowsOf } from "./numbers.js";
import { labelled } from "./pixels.js";

const MEASURES = ["patch", "position", "sum"];

/** @type {WalkStep} */
export const embedding = {
  name: "embedding",
  uses: ["patch"],
  onlyPatches: true,
  shapes: ({ grid: [rows, cols], width, tokens }) => [
    `${rows * cols} × ${width}`,
    `(${tokens - rows * cols} + ${rows * cols}) × ${width} = ${tokens} × ${width}`,
  ],
  needs(walk) {
    const centred = walk.local.centred ?? false,
      { each_with_each: all } = walk.facts;
    return [
      ["embedding", {}],
      ["positions", all ? { centred } : { centred, query: walk.choice.query }],
      ...(walk.guesses.has("embedding") ? [/** @type {Wish} */ (["shuffle", {}])] : []),
    ];
  },
  guess: (_, [, , shuffled]) => ({
    right: "c",
    values: { difference: figure(shuffled?.difference ?? 0, 2) },
  }),
  build(walk) {
    const { facts, t, local } = walk,
      P = prefixCount(facts),
      n = facts.grid[0] * facts.grid[1];
    let answers = null,
      pointed = null;
    const point = (/** @type {number | null} */ token) => {
      pointed = token;
      draw(answers);
    };
    local.measure ??= "sum";
    const grid = tokenGrid(walk, { label: t("lengths"), point }),
      cosines = tokenGrid(walk, { label: t("cosines"), point });
    const centre = el("input", {
      type: "checkbox",
      onchange: () => {
        local.centred = centre.checked;
        walk.refresh();
      },
    });
    centre.checked = local.centred ?? false;
    const facts3 = el("p", { class: "ins-operands" }),
      similar = el("p", { class: "ins-operands" }),
      prefix = el("p", { class: "ins-muted" }),
      shuffled = el("div", { class: "ins-shuffle", hidden: true });
    const measure = choices(
      t("lengths"),
      MEASURES.map((name) => [name, t(`length_${name}`)]),
      local.measure,
      (name) => {
        local.measure = name;
        draw(answers);
      },
    );
    const node = el(
      "div",
      {},
      el(
        "div",
        { class: "ins-halves" },
        el("div", {}, el("h4", {}, t("lengths")), measure, grid.node, facts3, prefix),
        el(
          "div",
          {},
          asked(walk, "cosines", "cosine"),
          el("label", { class: "ins-check" }, centre, t("centred")),
          cosines.node,
          similar,
          el(
            "p",
            { class: "ins-muted" },
            t(facts.each_with_each ? "cosines_about" : "cosines_click"),
          ),
        ),
      ),
      shuffled,
    );

    /** @param {PartAnswer[]} found */
    function draw(found) {
      answers = found;
      const [lengths, positions, order] = found,
        own = chosenPatch(walk),
        at = pointed === null ? own : pointed - P;
      const [patch, position, both] = MEASURES.map((_, k) =>
        lengths.arrays.lengths.subarray(k * n, (k + 1) * n),
      );
      const shown = { patch, position, sum: both }[local.measure];
      grid.draw({ values: shown, pointed, chosen: P + own });
      facts3.replaceChildren(
        `${tokenName(walk, P + at)}: ${t("length_patch")} `,
        number("patch", patch[at], figure(patch[at])),
        `, ${t("length_position")} `,
        number("position", position[at], figure(position[at])),
        `, ${t("length_sum")} `,
        number("sum", both[at], figure(both[at])),
      );
      const all = positions.arrays.all,
        asked = all ? at : own,
        row = all
          ? Float32Array.from({ length: n }, (_, k) => all[asked * n + k] / 127.5 - 1)
          : positions.arrays.row;
      cosines.draw({ values: row, signed: true, most: 1, pointed, chosen: P + own });
      similar.replaceChildren(
        t("cosine_of", { a: tokenName(walk, P + asked), b: tokenName(walk, P + (all ? own : at)) }),
        " ",
        number("cosine", row[all ? own : at], fixed(row[all ? own : at])),
      );
      prefix.textContent = Array.from(
        { length: P },
        (_, k) => `${tokenName(walk, k)} ${figure(lengths.arrays.prefix[k])}`,
      ).join(" · ");
      shuffled.hidden = !order;
      if (order && !shuffled.childElementCount) showShuffled(walk, shuffled, order);
    }
    return { node, draw };
  },
};

/** The picture with its patches in another order, and what the model says to it.
 * @param {Walk} walk
 * @param {HTMLElement} host
 * @param {PartAnswer} answer */
function showShuffled(walk, host, answer) {
  const { t, facts } = walk,
    { order } = answer.arrays;
  /** @param {string} name
   * @param {boolean} mixed */
  const tile = (name, mixed) =>
    el(
      "figure",
      { "data-shuffle": name },
      shuffledPicture(walk, mixed ? order : null),
      el("figcaption", {}, t(`shuffle_${name}`)),
      ...answer[name].map(([label, share]) =>
        el(
          "div",
          { class: "ins-row" },
          el("span", {}, shortName(label)),
          bar(share),
          number("share", share, `${(100 * share).toFixed(1)} %`),
        ),
      ),
    );
  host.replaceChildren(
    tile("logits", false),
    tile("with_positions", true),
    tile("without_positions", true),
    ...(facts.classes
      ? []
      : [
          el(
            "p",
            { class: "ins-muted" },
            t("shuffle_features", { difference: figure(answer.difference, 2) }),
          ),
        ]),
  );
}

/** @param {Walk} walk
 * @param {ArrayLike<number> | null} order */
function shuffledPicture(walk, order) {
  const { seen, data } = walk.host.pictures,
    [w, h] = data.picture.size,
    [rows, cols] = walk.facts.grid;
  const canvas = el("canvas", {
    class: `ins-map${seen.crisp ? " ins-crisp" : ""}`,
    role: "presentation",
    width: w,
    height: h,
  });
  const context = canvas.getContext("2d"),
    [dx, dy] = [w / cols, h / rows];
  for (let k = 0; k < rows * cols; k++) {
    const [r, c] = placeOf(walk.facts, k),
      [i, j] = placeOf(walk.facts, order ? order[k] : k);
    context.drawImage(seen.colour, j * dx, i * dy, dx, dy, c * dx, r * dy, dx, dy);
  }
  return canvas;
}

/** @type {WalkStep} */
export const norm = {
  name: "norm",
  uses: ["patch", "layer"],
  shapes: ({ tokens, width }) => [`${tokens} × ${width}`, `${tokens} × ${width}`],
  needs: ({ choice: { layer, query } }) => [
    ["norm", { layer, query }],
    ["lengths", {}],
  ],
  guess(walk, [, lengths]) {
    const own = rowsOf(lengths, "lengths", walk.facts.layers + 1)[walk.choice.layer];
    return {
      right: "b",
      values: {
        low: figure(Math.min(...own)),
        high: figure(Math.max(...own)),
        root: figure(Math.sqrt(walk.facts.width)),
      },
    };
  },
  build(walk) {
    const { t } = walk;
    let answers = null,
      pointed = null;
    const names = ["before", "standard", "after"];
    const strips = names.map((name) =>
      strip(walk, {
        label: t(`norm_${name}`),
        point: (at) => {
          pointed = at;
          draw(answers);
        },
      }),
    );
    const operands = el("p", { class: "ins-operands" }),
      moments = el("p", { class: "ins-sum" }),
      grid = tokenGrid(walk, {
        label: t("length_now"),
        prefix: true,
        point: (token) => drawGrid(token),
      }),
      curve = el("div"),
      marked = el("p", { class: "ins-marked" }),
      under = el("p", { class: "ins-operands" });
    const node = el(
      "div",
      {},
      el("h4", {}, t("one_token")),
      ...strips.map((one, k) => labelled(t(`norm_${names[k]}`), one.node)),
      moments,
      operands,
      el(
        "div",
        { class: "ins-halves" },
        el("div", {}, el("h4", {}, t("length_now")), grid.node, under),
        el("div", {}, el("h4", {}, t("lengths_layers")), curve, marked),
      ),
    );
    let rows = [];

    /** @param {number | null} token */
    function drawGrid(token) {
      const own = rows[walk.choice.layer],
        [, { marked: long }] = answers,
        at = token ?? chosenToken(walk);
      grid.draw({
        values: own,
        pointed: token,
        marked: long.filter(([layer]) => layer === walk.choice.layer).map(([, k]) => k),
      });
      under.replaceChildren(
        `${tokenName(walk, at)}: ${t("length")} `,
        number("length", own[at], figure(own[at])),
      );
    }

    /** @param {PartAnswer[]} found */
    function draw(found) {
      answers = found;
      const [{ mean, deviation, arrays }, lengths] = found,
        { before, after, weight, bias } = arrays;
      const standard = Float32Array.from(before, (x) => (x - mean) / deviation);
      rows = rowsOf(lengths, "lengths", walk.facts.layers + 1);
      strips[0].draw(before, { pointed, mean, band: deviation });
      strips[1].draw(standard, { pointed, mean: 0, band: 1 });
      strips[2].draw(after, { pointed });
      moments.replaceChildren(
        `${t("before")}: ${t("mean")} `,
        number("mean", mean, figure(mean)),
        `, ${t("deviation")} `,
        number("deviation", deviation, figure(deviation)),
        `. ${t("then")}: ${t("mean")} 0, ${t("deviation")} 1.`,
      );
      const k = pointed ?? 0;
      operands.textContent =
        pointed === null
          ? t("point_number")
          : `(${figure(before[k])} − ${figure(mean)}) / ${figure(deviation)} × ${figure(weight[k])} + ${figure(bias[k])} = ${figure(after[k])}`;
      operands.dataset.value = pointed === null ? "" : String(after[k]);
      drawGrid(null);
      showLengths(walk, curve, marked, rows, lengths);
    }
    return { node, draw };
  },
};

/** The lengths of all tokens over the layers: the median, the range, the chosen one, and long ones.
 * @param {Walk} walk
 * @param {HTMLElement} host
 * @param {HTMLElement} words
 * @param {ArrayLike<number>[]} rows
 * @param {PartAnswer} answer */
function showLengths(walk, host, words, rows, { marked, count, times }) {
  const { t, facts } = walk,
    token = chosenToken(walk);
  const lists = rows.map((row) => Array.from(row)),
    high = lists.map((row) => Math.max(...row));
  host.replaceChildren(
    chart({
      label: t("lengths_layers"),
      count: rows.length,
      names: ["0", ...Array.from({ length: facts.layers }, (_, k) => String(k + 1))],
      x: t("after_layer"),
      y: t("length"),
      to: Math.max(...high),
      at: walk.choice.layer,
      series: [
        { kind: "range", low: lists.map((row) => Math.min(...row)), high },
        { kind: "median", values: lists.map(median) },
        { kind: "chosen", values: lists.map((row) => row[token]) },
      ],
      points: marked.map(([layer, k]) => ({
        kind: "long",
        at: layer,
        value: lists[layer][k],
        text: `${tokenName(walk, k)}: ${figure(lists[layer][k])}`,
      })),
    }),
    el(
      "ul",
      { class: "ins-legend" },
      ...["chosen", "median", "range", "long"].map((kind) =>
        el(
          "li",
          {},
          el("i", { class: kind }),
          t(`legend_${kind}`, { token: tokenName(walk, token) }),
        ),
      ),
    ),
  );
  words.textContent = count ? t("marked", { count, times }) : t("marked_none", { times });
  words.dataset.count = String(count);
}
