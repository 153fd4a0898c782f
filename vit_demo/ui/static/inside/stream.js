// @ts-check
// Step 8: the residual stream, and what attention and the MLP add to it.

import { el } from "../explorer/elements.js";
import { svg } from "../svg.js";
import { chart } from "./charts.js";
import { bar, number, smallMap } from "./drawing.js";
import { secret } from "./guess.js";
import { count, figure, fixed } from "./numbers.js";

const PARTS = ["stream", "attention", "mlp"];

/** @type {WalkStep} */
export const mlp = {
  name: "mlp",
  uses: ["patch", "layer"],
  shapes: ({ tokens, width, units }) => [
    `${tokens} × ${width}`,
    `${tokens} × ${count(units)} → ${tokens} × ${width}`,
  ],
  needs: ({ choice: { layer, query } }) => [
    ["residual", { query }],
    ["units", { layer, query }],
  ],
  guess(walk, [residual]) {
    const [x, a, m, y] = lengthsOf(residual, walk.choice.layer),
      added = Math.sqrt(
        Math.max(0, a * a + m * m + 2 * a * m * residual.arrays.cosines[3 * walk.choice.layer + 2]),
      ),
      ratio = added / x;
    return {
      right: ratio < 2 / 3 ? "a" : ratio <= 1.5 ? "b" : "c",
      values: {
        stream: figure(x),
        added: figure(added),
        ratio: figure(ratio, 2),
        layer: walk.choice.layer + 1,
        y,
      },
    };
  },
  build(walk) {
    const { t, facts } = walk;
    const vectors = el("div"),
      numbers = el("div", { class: "ins-numbers" }),
      curves = el("div"),
      active = el("div", { class: "ins-row" }),
      units = el("div", { class: "ins-units" });
    const hidden = secret(
      walk,
      "mlp",
      el(
        "div",
        { class: "ins-halves" },
        el("div", {}, el("h4", {}, t("vectors")), vectors, numbers),
        el("div", {}, el("h4", {}, t("over_layers")), curves),
      ),
    );
    const node = el(
      "div",
      {},
      ...hidden.nodes,
      el("h4", {}, t("units")),
      active,
      el("p", { class: "ins-muted" }, t("units_about")),
      units,
    );

    /** @param {PartAnswer[]} found */
    function draw([residual, strongest]) {
      const { layer } = walk.choice,
        cosines = Array.from(residual.arrays.cosines.subarray(3 * layer, 3 * layer + 3)),
        lengths = lengthsOf(residual, layer);
      hidden.show();
      vectors.replaceChildren(vectorPicture(walk, lengths, cosines));
      const pairs = ["stream_attention", "both_mlp", "attention_mlp"];
      numbers.replaceChildren(
        ...PARTS.map((name, k) =>
          el(
            "p",
            {},
            el("i", { class: `ins-key ${name}` }),
            `${t(`part_${name}`)}: ${t("length")} `,
            number(`length_${name}`, lengths[k], figure(lengths[k])),
          ),
        ),
        ...pairs.map((name, k) =>
          el(
            "p",
            {},
            `${t(`cosine_${name}`)} `,
            number(`cosine_${name}`, cosines[k], fixed(cosines[k])),
          ),
        ),
      );
      const all = Array.from({ length: facts.layers }, (_, k) => lengthsOf(residual, k));
      curves.replaceChildren(
        chart({
          label: t("over_layers"),
          count: facts.layers,
          names: all.map((_, k) => String(k + 1)),
          x: t("layer"),
          y: t("length"),
          to: Math.max(...all.flat()),
          at: layer,
          series: PARTS.map((name, k) => ({ kind: name, values: all.map((one) => one[k]) })),
        }),
        el(
          "ul",
          { class: "ins-legend" },
          ...PARTS.map((name) => el("li", {}, el("i", { class: name }), t(`part_${name}`))),
        ),
      );
      const share = strongest.active;
      active.replaceChildren(
        el("span", {}, t("active", { count: count(strongest.count) })),
        bar(share),
        number("active", share, `${(100 * share).toFixed(1)} %`),
      );
      const n = facts.grid[0] * facts.grid[1],
        { maps, activations, lengths: written } = strongest.arrays;
      units.replaceChildren(
        ...strongest.units.map((unit, k) =>
          el(
            "figure",
            { "data-unit": unit },
            smallMap(walk, maps.subarray(k * n, (k + 1) * n), { size: 130 }),
            el("figcaption", {}, el("strong", {}, t("unit", { unit }))),
            el(
              "small",
              {},
              `${t("activation")} `,
              number("activation", activations[k], figure(activations[k])),
            ),
            el("small", {}, `${t("writes")} `, number("written", written[k], figure(written[k]))),
          ),
        ),
      );
    }
    return { node, draw };
  },
};

/** @param {PartAnswer} answer
 * @param {number} layer */
const lengthsOf = ({ arrays: { lengths } }, layer) =>
  Array.from(lengths.subarray(3 * layer, 3 * layer + 3));

/** The stream as an arrow, then attention's part, then the MLP's, each at its true angle to what was
 * there before it.
 * @param {Walk} walk
 * @param {number[]} lengths
 * @param {number[]} cosines */
function vectorPicture({ t }, [x, a, m], [toStream, toBoth]) {
  const turn = (/** @type {number} */ cosine) => Math.acos(Math.max(-1, Math.min(1, cosine)));
  const first = /** @type {[number, number]} */ ([x, 0]);
  const angle = turn(toStream),
    second = [x + a * Math.cos(angle), a * Math.sin(angle)],
    heading = Math.atan2(second[1], second[0]) + turn(toBoth),
    third = [second[0] + m * Math.cos(heading), second[1] + m * Math.sin(heading)];
  const points = [[0, 0], first, second, third];
  const [left, right] = [Math.min(...points.map(([u]) => u)), Math.max(...points.map(([u]) => u))],
    [low, high] = [Math.min(...points.map(([, v]) => v)), Math.max(...points.map(([, v]) => v))];
  const W = 440,
    scale = Math.min((W - 40) / (right - left || 1), 200 / (high - low || 1)),
    H = Math.max(70, (high - low) * scale + 40);
  const at = (/** @type {number[]} */ [u, v]) => [
    20 + (u - left) * scale,
    H - 20 - (v - low) * scale,
  ];
  const arrow = (
    /** @type {number[]} */ from,
    /** @type {number[]} */ to,
    /** @type {string} */ kind,
  ) => {
    const [[x1, y1], [x2, y2]] = [at(from), at(to)],
      size = Math.min(9, Math.hypot(x2 - x1, y2 - y1) / 2),
      way = Math.atan2(y2 - y1, x2 - x1);
    const wing = (/** @type {number} */ by) =>
      `L${(x2 - size * Math.cos(way + by)).toFixed(1)} ${(y2 - size * Math.sin(way + by)).toFixed(1)}`;
    return [
      svg("path", {
        class: `arrow ${kind}`,
        d: `M${x1.toFixed(1)} ${y1.toFixed(1)}L${x2.toFixed(1)} ${y2.toFixed(1)}`,
      }),
      svg("path", {
        class: `point ${kind}`,
        d: `M${x2.toFixed(1)} ${y2.toFixed(1)}${wing(0.45)}${wing(-0.45)}Z`,
      }),
    ];
  };
  return svg(
    "svg",
    {
      class: "ins-vectors",
      viewBox: `0 0 ${W} ${H.toFixed(0)}`,
      role: "img",
      "aria-label": t("vectors"),
    },
    ...arrow([0, 0], third, "sum"),
    ...arrow([0, 0], first, "stream"),
    ...arrow(first, second, "attention"),
    ...arrow(second, third, "mlp"),
  );
}
