// @ts-check
// The drawings of the section: small maps over the picture, curves, the meter of a score.

import { drawMap, fitCanvas, scaleAround, scaleOf } from "../explorer/draw.js";
import { el } from "../explorer/elements.js";
import { svg } from "../svg.js";

/** The picture in grey with a map over it, on a canvas of its own.
 * @param {Trust} trust
 * @param {Vector} values
 * @param {number} size
 * @param {boolean} [difference] */
export function mapCanvas(trust, values, size, difference = false) {
  const { explorer } = trust,
    { data, ground, tables, state } = explorer,
    [w, h] = data.picture.size;
  const canvas = el("canvas", { class: "why-map", role: "presentation" });
  const scale = difference ? scaleAround([values]) : scaleOf([values]);
  const width = Math.round(size * Math.min(1, w / h)),
    height = Math.round(size * Math.min(1, h / w));
  fitCanvas(canvas, width, height);
  canvas.style.aspectRatio = `${w} / ${h}`;
  const context = canvas.getContext("2d");
  context.imageSmoothingEnabled = !ground.crisp;
  context.drawImage(ground.grey, 0, 0, canvas.width, canvas.height);
  drawMap(context, canvas.width, canvas.height, values, data.grid, {
    table: tables[difference ? "difference" : state.colours],
    scale,
    opacity: 0.6,
    smooth: false,
  });
  return canvas;
}

/**
 * @param {number} x
 * @param {number} [digits] */
export const signed = (x, digits = 2) => {
  const text = Math.abs(x).toFixed(digits);
  return `${+text === 0 ? "" : x > 0 ? "+" : "\u2212"}${text}`;
};

/** Where a score lies between -0.5 and 0.5, and how far chance reaches.
 * @param {number} score
 * @param {number} band */
export function meter(score, band) {
  /** @param {number} x */
  const at = (x) => `${50 + 100 * Math.max(-0.5, Math.min(0.5, x))}%`;
  return el(
    "span",
    {
      class: "why-meter",
      "aria-hidden": "true",
      style: `--from:${at(Math.min(0, score))};--to:${at(Math.max(0, score))};--low:${at(-band)};--high:${at(band)}`,
    },
    el("i"),
    el("b"),
  );
}

/** Deletion and insertion against the band of random orders; all at the same shares of patches left.
 * @param {TrustResult & MethodResult} given
 * @param {string} label
 * @param {{ x: string; y: string }} words */
export function curves({ kept, random, deletion, insertion }, label, words) {
  const W = 520,
    H = 270,
    left = 62,
    right = 14,
    top = 12,
    bottom = 44;
  const most = niceTop(Math.max(...deletion, ...insertion, ...random.flat()));
  /** @param {number} share */
  const x = (share) => left + (1 - share) * (W - left - right); // all patches at the left, none at the right
  /** @param {number} p */
  const y = (p) => H - bottom - (p / most) * (H - top - bottom);
  /** @param {number[]} values */
  const line = (values) =>
    values.map((p, k) => `${k ? "L" : "M"}${x(kept[k]).toFixed(1)} ${y(p).toFixed(1)}`).join("");
  /**
   * @param {number} k
   * @param {(...values: number[]) => number} pick */
  const at = (k, pick) => pick(...random.map((order) => order[k]));
  const low = kept.map((_, k) => at(k, Math.min)),
    high = kept.map((_, k) => at(k, Math.max));
  const mean = kept.map((_, k) => random.reduce((sum, order) => sum + order[k], 0) / random.length);
  const back = [...low.keys()]
    .reverse()
    .map((k) => `L${x(kept[k]).toFixed(1)} ${y(low[k]).toFixed(1)}`)
    .join("");
  const between = [...deletion.keys()]
    .reverse()
    .map((k) => `L${x(kept[k]).toFixed(1)} ${y(deletion[k]).toFixed(1)}`)
    .join("");
  /**
   * @param {Record<string, any>} options
   * @param {string} words */
  const text = (options, words) => svg("text", options, words);
  const ticks = [0, 0.25, 0.5, 0.75, 1].flatMap((share) => {
    const p = share * most;
    return [
      svg("path", { class: "grid", d: `M${left} ${y(p)}H${W - right}` }),
      text({ x: left - 7, y: y(p) + 4, "text-anchor": "end" }, `${+(100 * p).toPrecision(3)} %`),
      text(
        { x: x(share), y: H - bottom + 16, "text-anchor": "middle" },
        `${Math.round(100 * share)} %`,
      ),
    ];
  });
  return svg(
    "svg",
    { class: "why-curves", viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": label },
    ...ticks,
    text({ class: "axis", x: (left + W - right) / 2, y: H - 8, "text-anchor": "middle" }, words.x),
    text(
      {
        class: "axis",
        x: 0,
        y: 0,
        transform: `translate(13 ${(top + H - bottom) / 2}) rotate(-90)`,
        "text-anchor": "middle",
      },
      words.y,
    ),
    svg("path", { class: "band", d: `${line(high)}${back}Z` }),
    svg("path", { class: "between", d: `${line(insertion)}${between}Z` }),
    svg("path", { class: "mean", d: line(mean) }),
    svg("path", { class: "insertion", d: line(insertion) }),
    svg("path", { class: "deletion", d: line(deletion) }),
  );
}

/** A round number at or above the largest probability.
 * @param {number} most */
function niceTop(most) {
  for (const top of [0.001, 0.002, 0.004, 0.01, 0.02, 0.04, 0.1, 0.2, 0.4, 0.6, 0.8, 1])
    if (most <= top) return top;
  return 1;
}
