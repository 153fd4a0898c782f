// @ts-check
// Steps 5, 6 and 7: queries, keys and values; softmax; the weighted sum and what each head writes.

import { el } from "../explorer/elements.js";
import { question } from "../glossary.js";
import {
  bar,
  chosenToken,
  formulaLine,
  gridSide,
  number,
  prefixCount,
  smallMap,
  strip,
  tokenGrid,
  tokenName,
} from "./drawing.js";
import { secret } from "./guess.js";
import {
  descending,
  entropy,
  figure,
  fixed,
  length,
  products,
  rowsOf,
  scoresOf,
  sharesOf,
  softmax,
  sum,
  weightedSum,
} from "./numbers.js";
import { labelled } from "./pixels.js";

/** Keys or values, a row a token; made once.
 * @param {Walk} walk
 * @param {PartAnswer} answer
 * @param {string} name
 * @returns {Float32Array[]} */
function rows({ facts }, answer, name) {
  answer.rows ??= rowsOf(answer, name, facts.tokens);
  return answer.rows;
}

/** @type {WalkStep} */
export const qkv = {
  name: "qkv",
  uses: ["patch", "layer", "head"],
  shapes: ({ tokens, width, heads }) => [
    `${tokens} × ${width}`,
    `q, k, v: 3 × ${heads} × ${tokens} × ${width / heads}`,
  ],
  needs: ({ choice: { layer, head, query } }) => [
    ["query", { layer, head, query }],
    ["keys", { layer, head }],
  ],
  guess: ({ facts: { width, heads } }) => ({
    right: "a",
    values: { d: width / heads, root: figure(Math.sqrt(width / heads)) },
  }),
  build(walk) {
    const { t } = walk;
    let answers = null,
      token = null,
      cell = null;
    const grid = tokenGrid(walk, {
      label: t("scores"),
      prefix: true,
      point: (at) => {
        token = at;
        draw(answers);
      },
    });
    const names = ["q", "k", "product", "v"];
    const strips = names.map((name) =>
      strip(walk, {
        label: t(`strip_${name}`),
        point: (at) => {
          cell = at;
          draw(answers);
        },
      }),
    );
    const labels = names.map((name, k) => labelled(t(`strip_${name}`), strips[k].node));
    const operands = el("p", { class: "ins-operands" }),
      total = el("div");
    const node = el(
      "div",
      { class: "ins-two" },
      gridSide(t("scores"), grid, t("point_token")),
      el("div", { class: "ins-main" }, ...labels.slice(0, 3), operands, total, labels[3]),
    );

    /** @param {PartAnswer[]} found */
    function draw(found) {
      answers = found;
      const [asking, coming] = found,
        { query, value } = asking.arrays,
        keys = rows(walk, coming, "keys"),
        chosen = chosenToken(walk),
        other = token ?? chosen,
        d = query.length;
      const scores = scoresOf(query, keys),
        each = products(query, keys[other]),
        all = sum(each);
      grid.draw({ values: scores, pointed: token });
      [query, keys[other], each, value].forEach((values, k) => {
        strips[k].draw(values, { pointed: cell });
      });
      const name = (/** @type {number} */ k, /** @type {string} */ text) => {
        labels[k].firstChild.textContent = text;
      };
      name(0, `q · ${tokenName(walk, chosen)}`);
      name(1, `k · ${tokenName(walk, other)}`);
      name(2, "q × k");
      name(3, `v · ${tokenName(walk, chosen)}`);
      const k = cell ?? 0;
      operands.textContent =
        cell === null
          ? t("point_product")
          : `${figure(query[k])} × ${figure(keys[other][k])} = ${figure(each[k])}`;
      operands.dataset.value = cell === null ? "" : String(each[k]);
      total.replaceChildren(
        formulaLine(
          `${t("sum_of", { count: d })} `,
          number("sum", all, figure(all)),
          ` / √${d} = `,
          number("score", scores[other], figure(scores[other])),
          el(
            "span",
            { class: "ins-muted" },
            ` ${t("score_of", { token: tokenName(walk, other) })}`,
          ),
        ),
      );
    }
    return { node, draw };
  },
};

/** @type {WalkStep} */
export const softmaxStep = {
  name: "softmax",
  uses: ["patch", "layer", "head"],
  shapes: ({ tokens, heads }) => [
    `${heads} × ${tokens} × ${tokens}`,
    `${heads} × ${tokens} × ${tokens}, Σ = 1`,
  ],
  needs: qkv.needs,
  guess: () => ({ right: "b", values: { factor: Math.round(Math.exp(10)).toLocaleString("en") } }),
  build(walk) {
    const { t, local, facts } = walk;
    let answers = null,
      token = null;
    local.temperature ??= 1;
    local.plus ??= 0;
    const grid = tokenGrid(walk, {
      label: t("shares"),
      prefix: true,
      point: (at) => {
        token = at;
        draw(answers);
      },
    });
    const slider = el("input", {
      type: "range",
      min: -1,
      max: 1,
      step: 0.05,
      "aria-label": t("temperature"),
      oninput: () => {
        local.temperature = 10 ** +slider.value;
        draw(answers);
      },
    });
    slider.value = String(Math.log10(local.temperature));
    const plus = el("input", {
      type: "checkbox",
      onchange: () => {
        local.plus = plus.checked ? 10 : 0;
        draw(answers);
      },
    });
    plus.checked = local.plus > 0;
    const warm = el("output", { class: "ins-number" }),
      table = el("tbody"),
      foot = el("tfoot"),
      words = el("span"),
      more = el("label", { class: "ins-check", hidden: true }, plus, t("plus_ten"));
    const head = el(
      "thead",
      {},
      el(
        "tr",
        {},
        ...["token", "score", "exponential", "share"].map((key) =>
          el("th", { scope: "col" }, t(key)),
        ),
      ),
    );
    const node = el(
      "div",
      { class: "ins-two" },
      gridSide(t("shares"), grid, t("point_share")),
      el(
        "div",
        { class: "ins-main" },
        el("table", { class: "ins-table ins-soft" }, head, table, foot),
        el("p", {}, words, " ", question(walk.language, ["entropy"])),
        el(
          "div",
          { class: "ins-slider" },
          el(
            "span",
            { class: "ins-muted" },
            t("temperature"),
            " ",
            question(walk.language, ["temperature"]),
          ),
          slider,
          warm,
        ),
        more,
      ),
    );

    /** @param {PartAnswer[]} found */
    function draw(found) {
      answers = found;
      const [asking, coming] = found;
      const scores = scoresOf(asking.arrays.query, rows(walk, coming, "keys")).map(
          (x) => x + local.plus,
        ),
        { exponentials, total, shares } = softmax(scores, local.temperature),
        order = descending(scores),
        listed = order.slice(0, 6);
      more.hidden = !walk.guesses.has("softmax");
      if (token !== null && !listed.includes(token)) listed.splice(5, 1, token);
      grid.draw({ values: shares, pointed: token });
      const low = scores[order.at(-1)],
        high = scores[order[0]];
      const cell = (
        /** @type {number} */ share,
        /** @type {string} */ name,
        /** @type {number} */ value,
        /** @type {string} */ text,
      ) => el("td", {}, bar(share), number(name, value, text));
      table.replaceChildren(
        ...listed.map((k) =>
          el(
            "tr",
            { class: k === token ? "pointed" : "", "data-token": k },
            el("th", { scope: "row" }, tokenName(walk, k)),
            cell((scores[k] - low) / (high - low || 1), "score", scores[k], fixed(scores[k])),
            cell(exponentials[k], "exponential", exponentials[k], fixed(exponentials[k], 3)),
            cell(
              shares[k] / shares[order[0]],
              "share",
              shares[k],
              `${(100 * shares[k]).toFixed(2)} %`,
            ),
          ),
        ),
      );
      foot.replaceChildren(
        el(
          "tr",
          {},
          el("th", { scope: "row" }, t("all_tokens", { count: facts.tokens })),
          el("td", {}),
          el("td", {}, number("total", total, fixed(total, 3))),
          el("td", {}, number("ones", sum(shares), fixed(sum(shares), 3))),
        ),
      );
      const bits = entropy(shares);
      words.replaceChildren(
        `${t("entropy")} `,
        number("entropy", bits),
        ` ${t("bits_of", { most: fixed(Math.log2(facts.tokens)) })}`,
      );
      warm.textContent = fixed(local.temperature);
      warm.dataset.value = String(local.temperature);
    }
    return { node, draw };
  },
};

/** @type {WalkStep} */
export const heads = {
  name: "heads",
  uses: ["patch", "layer", "head"],
  shapes: ({ tokens, width, heads: h }) => [
    `${h} × (${tokens} × ${tokens} · ${tokens} × ${width / h})`,
    `${tokens} × ${width}`,
  ],
  needs: ({ choice: { layer, head, query } }) => [
    ["values", { layer, head }],
    ["heads", { layer, query }],
  ],
  guess(walk, [, found]) {
    const P = prefixCount(walk.facts),
      maps = sharesOf(found.arrays.shares, found.arrays.shares_scale);
    const peaks = maps.map((shares) => Math.max(...shares.subarray(P))),
      brightest = descending(peaks)[0],
      longest = descending(found.arrays.lengths)[0];
    const values = {
      bright: brightest + 1,
      peak: `${(100 * peaks[brightest]).toFixed(1)} %`,
      long: longest + 1,
      length: figure(found.arrays.lengths[longest]),
      own: figure(found.arrays.lengths[brightest]),
    };
    return { right: "b", values, text: `guess_heads_${brightest === longest ? "same" : "other"}` };
  },
  build(walk) {
    const { t, facts, local } = walk,
      P = prefixCount(facts);
    let answers = null,
      token = null;
    local.added ??= facts.tokens;
    const grid = tokenGrid(walk, {
      label: t("added_so_far"),
      prefix: true,
      point: (at) => {
        token = at;
        drawSum();
      },
    });
    const slider = el("input", {
      type: "range",
      min: 0,
      max: facts.tokens,
      step: 1,
      "aria-label": t("added"),
      oninput: () => {
        local.added = +slider.value;
        drawSum();
      },
    });
    slider.value = String(local.added);
    const own = strip(walk, { label: t("own_value") }),
      total = strip(walk, { label: t("running_sum"), height: 80 }),
      words = el("p", { class: "ins-operands" }),
      part = el("p", { class: "ins-operands" }),
      adds = el("p"),
      hidden = secret(walk, "heads", adds);
    const tiles = Array.from({ length: facts.heads }, (_, k) =>
      el("button", {
        type: "button",
        class: "ins-head",
        "data-head": k,
        onclick: () => walk.choose({ head: k }),
      }),
    );
    const node = el(
      "div",
      {},
      el(
        "div",
        { class: "ins-two" },
        el("div", { class: "ins-side" }, el("h4", {}, t("added_so_far")), grid.node),
        el(
          "div",
          { class: "ins-main" },
          el(
            "div",
            { class: "ins-slider" },
            el("span", { class: "ins-muted" }, t("added")),
            slider,
          ),
          words,
          labelled(t("running_sum"), total.node),
          labelled(t("own_value"), own.node),
          part,
        ),
      ),
      el("h4", {}, t("what_heads_write")),
      el("p", { class: "ins-muted" }, t("what_heads_write_about")),
      el("div", { class: "ins-heads" }, ...tiles),
      ...hidden.nodes,
    );

    /** @param {PartAnswer[]} found */
    function draw(found) {
      answers = found;
      const [, all] = found;
      all.maps ??= sharesOf(all.arrays.shares, all.arrays.shares_scale);
      drawSum();
      drawHeads(all, all.maps);
    }

    /** What the chosen head has seen so far. */
    function drawSum() {
      const [coming, all] = answers,
        { maps } = all,
        { head } = walk.choice,
        shares = maps[head],
        values = rows(walk, coming, "values"),
        d = values[0].length,
        order = descending(shares),
        added = new Set(order.slice(0, local.added));
      const soFar = weightedSum(shares, values, [...added]),
        end = all.arrays.seen.subarray(head * d, (head + 1) * d);
      grid.draw({ values: shares, pointed: token, dim: (k) => !added.has(P + k) });
      total.draw(soFar, { ghost: end });
      const covered = sum([...added].map((k) => shares[k]));
      words.replaceChildren(
        number("added", local.added, t("added_of", { k: local.added, count: facts.tokens })),
        " ",
        number("covered", covered, `${(100 * covered).toFixed(1)} %`),
        ` ${t("of_attention")} `,
        number("so_far", length(soFar), figure(length(soFar))),
        ` ${t("of_length")} `,
        number("seen", length(end), figure(length(end))),
      );
      const at = token ?? order[0];
      own.draw(values[at]);
      part.replaceChildren(
        `${tokenName(walk, at)}: ${t("share")} `,
        number("share", shares[at], `${(100 * shares[at]).toFixed(2)} %`),
        ` × ${t("value_length")} `,
        number("value", length(values[at]), figure(length(values[at]))),
      );
    }

    /** Where each head looks, and what it writes.
     * @param {PartAnswer} all
     * @param {Float32Array[]} maps */
    function drawHeads(all, maps) {
      const { lengths } = all.arrays,
        most = Math.max(...lengths),
        open = walk.guesses.has("heads");
      hidden.show();
      maps.forEach((map, k) => {
        const patches = map.subarray(P),
          length = number("length", lengths[k], figure(lengths[k]));
        tiles[k].setAttribute("aria-pressed", String(k === walk.choice.head));
        tiles[k].replaceChildren(
          smallMap(walk, patches, { size: 110 }),
          el("strong", {}, t("head_k", { k: k + 1 })),
          el("small", {}, `${t("brightest")} ${(100 * Math.max(...patches)).toFixed(1)} %`),
          ...(open ? [bar(lengths[k] / most), el("small", {}, `${t("writes")} `, length)] : []),
        );
      });
      adds.replaceChildren(
        `${t("together")} `,
        number("part", all.part, figure(all.part)),
        el("span", { class: "ins-muted" }, ` ${t("together_about", { bias: figure(all.bias) })}`),
      );
    }
    return { node, draw };
  },
};
