// @ts-check
// Steps 9 and 10: what the head would say after each layer, the ledger of a logit, the answer, and back.

import { el } from "../explorer/elements.js";
import { shortName } from "../explorer/words.js";
import { question } from "../glossary.js";
import { theExplorer } from "../page/explorer.js";
import { openTab } from "../page/tabs.js";
import { chart } from "./charts.js";
import {
  asked,
  bar,
  cells,
  formulaLine,
  keepFocus,
  number,
  strip,
  tokenGrid,
  tokenName,
} from "./drawing.js";
import { count, figure, fixed, most, sum } from "./numbers.js";

/** @type {WalkStep} */
export const layers = {
  name: "layers",
  uses: ["label"],
  needsLabels: true,
  shapes: ({ tokens, width, layers: L, classes }) => [
    `${L + 1} × (${tokens} × ${width})`,
    `${L + 1} × ${count(classes)}`,
  ],
  needs: ({ choice: { label }, guesses }) => [
    ["lens", {}],
    ["ledger", { label }],
    ...(guesses.has("layers") ? [/** @type {Wish} */ (["random_lens", {}])] : []),
  ],
  guess: (_, [, , random]) => ({
    right: "a",
    values: {
      answer: shortName(random?.answer ?? ""),
      first: random?.ranks[0] ?? "",
      middle: random?.ranks[random.ranks.length >> 1] ?? "",
    },
  }),
  build(walk) {
    const { t, facts } = walk;
    let answers = null,
      cell = null;
    const columns = facts.heads + 2,
      size = /** @type {[number, number]} */ ([facts.layers, columns]);
    const curve = el("div"),
      firsts = el("ol", { class: "ins-firsts" }),
      ledger = cells(walk, {
        label: t("ledger_keys"),
        size,
        point: (at) => {
          cell = at;
          draw(answers);
        },
      }),
      heading = el("span"),
      operands = el("p", { class: "ins-operands" }),
      total = el("div"),
      rowTotals = el("div", { class: "ins-totals" });
    Object.assign(ledger.node.style, { aspectRatio: "auto", height: `${24 * facts.layers}px` });
    const node = el(
      "div",
      {},
      el("p", { class: "ins-caution" }, t("caution")),
      el(
        "div",
        { class: "ins-halves" },
        el("div", {}, asked(walk, "lens", "logit_lens"), curve),
        el("div", {}, el("h4", {}, t("first_after")), firsts),
      ),
      el("h4", {}, heading, " ", question(walk.language, ["logit"])),
      el("p", { class: "ins-muted" }, t("ledger_about")),
      el(
        "div",
        { class: "ins-ledger" },
        el(
          "div",
          { class: "ins-ledger-rows", "aria-hidden": "true" },
          ...Array.from({ length: facts.layers }, (_, k) => el("span", {}, String(k + 1))),
        ),
        el(
          "div",
          {},
          el(
            "div",
            { class: "ins-ledger-heads", "aria-hidden": "true", style: `--columns: ${columns}` },
            ...Array.from({ length: facts.heads }, (_, k) => el("span", {}, String(k + 1))),
            el("span", {}, t("bias_short")),
            el("span", {}, "MLP"),
          ),
          ledger.node,
        ),
        rowTotals,
      ),
      operands,
      total,
    );

    /** @param {PartAnswer[]} found */
    function draw(found) {
      answers = found;
      const [lens, sums, random] = found;
      showLens(walk, curve, lens, random);
      firsts.replaceChildren(
        ...lens.first.map(([label, share], k) =>
          el(
            "li",
            { class: label === lens.answer ? "same" : "" },
            el("span", { class: "ins-muted" }, k ? t("after", { layer: k }) : t("before_all")),
            el("span", {}, shortName(label)),
            bar(share),
            number("share", share, `${(100 * share).toFixed(1)} %`),
          ),
        ),
      );
      const name = shortName(sums.name),
        { heads, biases, mlps } = sums.arrays;
      const value = (/** @type {number} */ layer, /** @type {number} */ c) =>
        c < facts.heads
          ? heads[layer * facts.heads + c]
          : c === facts.heads
            ? biases[layer]
            : mlps[layer];
      const values = Array.from({ length: facts.layers * columns }, (_, k) =>
        value(Math.floor(k / columns), k % columns),
      );
      heading.textContent = t("ledger", { label: name });
      ledger.draw(values, { pointed: cell });
      const rows = Array.from({ length: facts.layers }, (_, layer) =>
          sum(values.slice(layer * columns, (layer + 1) * columns)),
        ),
        largest = most(rows) || 1;
      rowTotals.replaceChildren(
        ...rows.map((x) =>
          el(
            "span",
            {},
            el("i", {
              class: x < 0 ? "less" : "more",
              style: `width: ${(50 * Math.abs(x)) / largest}%`,
            }),
            number("row", x),
          ),
        ),
      );
      const k = cell ?? 0,
        [layer, c] = [Math.floor(k / columns), k % columns];
      const part =
        c < facts.heads
          ? t("head_k", { k: c + 1 })
          : c === facts.heads
            ? t("projection_bias")
            : "MLP";
      operands.textContent =
        cell === null
          ? t("point_ledger")
          : t("adds", { layer: layer + 1, part, value: fixed(values[k], 3), label: name });
      operands.dataset.value = cell === null ? "" : String(values[k]);
      total.replaceChildren(
        formulaLine(
          `${t("embedding")} `,
          number("embedding", sums.embedding),
          ` + ${t("all_heads")} `,
          number("heads", sum(heads)),
          ` + ${t("biases")} `,
          number("biases", sum(biases)),
          " + MLPs ",
          number("mlps", sum(mlps)),
          ` + ${t("constant")} `,
          number("constant", sums.constant),
          " = ",
          number("total", sums.total, fixed(sums.total, 3)),
        ),
        el(
          "p",
          { class: "ins-muted" },
          t("is_logit", { label: name }),
          " ",
          number("logit", sums.logit, fixed(sums.logit, 3)),
        ),
      );
    }
    return { node, draw };
  },
};

/** The rank of the answer after each layer; random weights beside it.
 * @param {Walk} walk
 * @param {HTMLElement} host
 * @param {PartAnswer} lens
 * @param {PartAnswer} [random] */
function showLens({ t, facts }, host, lens, random) {
  const series = [{ kind: "chosen", values: lens.ranks }];
  if (random) series.unshift({ kind: "random", values: random.ranks });
  const point = (/** @type {string} */ kind, /** @type {PartAnswer} */ one) =>
    one.ranks.map((value, at) => ({
      kind,
      at,
      value,
      text: t("rank_is", {
        label: shortName(one.answer),
        rank: value,
        share: `${(100 * one.shares[at]).toFixed(1)} %`,
      }),
    }));
  host.replaceChildren(
    chart({
      label: `${t("lens")}: ${lens.ranks.join(", ")}`,
      count: lens.ranks.length,
      names: lens.ranks.map((_, k) => String(k)),
      x: t("after_layer"),
      y: t("rank"),
      log: true,
      down: true,
      to: Math.max(facts.classes, 2),
      series,
      points: [...(random ? point("random", random) : []), ...point("chosen", lens)],
    }),
    el(
      "ul",
      { class: "ins-legend" },
      el(
        "li",
        {},
        el("i", { class: "chosen" }),
        t("legend_answer", { label: shortName(lens.answer) }),
      ),
      ...(random
        ? [
            el(
              "li",
              {},
              el("i", { class: "random" }),
              t("legend_random", { label: shortName(random.answer) }),
            ),
          ]
        : []),
    ),
  );
  host.dataset.ranks = lens.ranks.join();
  host.dataset.random = random ? random.ranks.join() : "";
}

/** @type {WalkStep} */
export const answer = {
  name: "answer",
  uses: ["label"],
  needsLabels: true,
  shapes: ({ width, classes, distilled }) => [
    distilled ? `2 × ${width}` : String(width),
    count(classes),
  ],
  needs: ({ choice: { label } }) => [
    ["answer", { label }],
    ["back", { label }],
  ],
  guess: () => ({ right: "c", values: {} }),
  build(walk) {
    const { t, facts, local } = walk;
    let answers = null,
      at = null,
      token = null;
    const products = strip(walk, {
      label: t("answer_products"),
      height: 90,
      point: (k) => {
        at = k;
        draw(answers);
      },
    });
    const operands = el("p", { class: "ins-operands" }),
      total = el("div"),
      table = el("tbody"),
      rest = el("p", { class: "ins-muted" }),
      heading = el("h4"),
      grid = tokenGrid(walk, {
        label: t("class_map"),
        choose: false,
        point: (k) => {
          token = k;
          draw(answers);
        },
      }),
      under = el("p", { class: "ins-operands" });
    const titles = ["label", "logit", "exponential", "probability"];
    const node = el(
      "div",
      {},
      heading,
      products.node,
      operands,
      total,
      el("h4", {}, t("to_probabilities")),
      el(
        "table",
        { class: "ins-table ins-soft" },
        el("thead", {}, el("tr", {}, ...titles.map((key) => el("th", { scope: "col" }, t(key))))),
        table,
      ),
      rest,
      el(
        "div",
        { class: "ins-two" },
        el(
          "div",
          { class: "ins-side" },
          asked(walk, "class_map", "contribution", "log_p"),
          grid.node,
          under,
        ),
        el(
          "div",
          { class: "ins-main" },
          el("p", {}, t("and_back")),
          el(
            "div",
            { class: "ins-buttons" },
            el(
              "button",
              { type: "button", class: "ins-main-button", onclick: () => leave("trust") },
              t("to_trust"),
            ),
            el("button", { type: "button", onclick: () => leave("explore") }, t("to_explore")),
          ),
        ),
      ),
    );
    /** To another tab, with this label's map.
     * @param {string} tab */
    function leave(tab) {
      walk.choose({ label: answers[0].label });
      if (theExplorer()) openTab(tab);
    }

    /** @param {PartAnswer[]} found */
    function draw(found) {
      answers = found;
      const [said, back] = found,
        { features, weights, products: each } = said.arrays,
        name = shortName(said.name),
        all = sum(each),
        top = said.top[0][3];
      local.labelNames = { ...local.labelNames, [said.label]: said.name };
      heading.textContent = t("logit_of", { label: name, count: each.length });
      products.draw(each, { pointed: at });
      const half = facts.distilled ? " / 2" : "",
        k = at ?? 0;
      operands.textContent =
        at === null
          ? t("point_feature")
          : `${figure(features[k])} × ${figure(weights[k])}${half} = ${figure(each[k])}`;
      operands.dataset.value = at === null ? "" : String(each[k]);
      total.replaceChildren(
        formulaLine(
          `${t("sum_of", { count: each.length })} `,
          number("sum", all),
          ` + ${t("bias")} `,
          number("bias", said.bias),
          " = ",
          number("logit", said.logit, fixed(said.logit, 3)),
          el("span", { class: "ins-muted" }, ` ${t("the_logit", { label: name })}`),
        ),
      );
      keepFocus(
        table,
        ...said.top.map(([label, share, index, logit]) =>
          el(
            "tr",
            { class: index === said.label ? "pointed" : "", "data-label": index },
            el(
              "th",
              { scope: "row" },
              el(
                "button",
                { type: "button", class: "ins-link", onclick: () => walk.choose({ label: index }) },
                shortName(label),
              ),
            ),
            el("td", {}, number("logit", logit)),
            el(
              "td",
              {},
              number("exponential", Math.exp(logit - top), fixed(Math.exp(logit - top), 3)),
            ),
            el("td", {}, bar(share), number("probability", share, `${(100 * share).toFixed(2)} %`)),
          ),
        ),
      );
      const left = 1 - sum(said.top.map(([, share]) => share));
      rest.textContent =
        said.classes > said.top.length
          ? t("the_rest", {
              count: count(said.classes - said.top.length),
              share: `${(100 * Math.max(0, left)).toFixed(2)} %`,
            })
          : t("all_one");
      const map = back.arrays.map,
        P = facts.tokens - facts.grid[0] * facts.grid[1];
      grid.draw({ values: map, signed: true, pointed: token, chosen: -1 });
      under.textContent =
        token === null
          ? t("point_map", { label: name })
          : t("patch_adds", { patch: tokenName(walk, token), value: fixed(map[token - P], 3) });
      under.dataset.value = token === null ? "" : String(map[token - P]);
    }
    return { node, draw };
  },
};
