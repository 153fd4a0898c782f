// @ts-check
// Curves over the layers, and points: what several steps and the anatomy draw.

import { svg } from "../svg.js";
import { figure } from "./numbers.js";

const W = 460,
  LEFT = 52,
  RIGHT = 12,
  TOP = 12,
  BOTTOM = 40;

/** Values over layers. `series`: lines (`values`, null is a gap) or bands (`low`, `high`); `points` are
 * single ones. With `log` the axis is logarithmic, with `down` it runs from the top (ranks).
 * @param {{ label: string; count: number; names: string[]; x: string; y: string; height?: number;
 *   log?: boolean; down?: boolean; from?: number; to: number; at?: number;
 *   series: { kind: string; values?: number[]; low?: number[]; high?: number[] }[];
 *   points?: { kind: string; at: number; value: number; text: string }[];
 *   level?: { value: number; text: string }; ticks?: number[] }} given */
export function chart(given) {
  const { label, count, names, log = false, down = false, from = log ? 1 : 0, series } = given;
  const H = given.height ?? 230,
    to = Math.max(given.to, from + 1e-9),
    inside = H - TOP - BOTTOM;
  const share = (/** @type {number} */ v) =>
    log ? Math.log(v / from) / Math.log(to / from) : (v - from) / (to - from);
  const x = (/** @type {number} */ k) => LEFT + ((k + 0.5) / count) * (W - LEFT - RIGHT);
  const y = (/** @type {number} */ v) =>
    down ? TOP + share(v) * inside : TOP + (1 - share(v)) * inside;
  const line = (/** @type {number[]} */ values) =>
    values.map((v, k) => `${k ? "L" : "M"}${x(k).toFixed(1)} ${y(v).toFixed(1)}`).join("");
  const ticks = given.ticks ?? (log ? powers(from, to) : evenly(from, to));
  const parts = ticks.flatMap((v) => [
    svg("path", { class: "grid", d: `M${LEFT} ${y(v)}H${W - RIGHT}` }),
    svg("text", { x: LEFT - 7, y: y(v) + 4, "text-anchor": "end" }, tick(v)),
  ]);
  const every = Math.ceil(count / 13);
  names.forEach((name, k) => {
    if (k % every === 0 || k === count - 1)
      parts.push(svg("text", { x: x(k), y: H - BOTTOM + 16, "text-anchor": "middle" }, name));
  });
  if (given.at !== undefined)
    parts.push(svg("path", { class: "here", d: `M${x(given.at)} ${TOP}V${H - BOTTOM}` }));
  for (const { kind, values, low, high } of series) {
    if (values) parts.push(svg("path", { class: `line ${kind}`, d: line(values) }));
    else {
      const back = [...low.keys()]
        .reverse()
        .map((k) => `L${x(k).toFixed(1)} ${y(low[k]).toFixed(1)}`);
      parts.push(svg("path", { class: `area ${kind}`, d: `${line(high)}${back.join("")}Z` }));
    }
  }
  if (given.level) {
    const at = y(given.level.value);
    parts.push(svg("path", { class: "level", d: `M${LEFT} ${at}H${W - RIGHT}` }));
    parts.push(
      svg(
        "text",
        { class: "level", x: W - RIGHT, y: at - 5, "text-anchor": "end" },
        given.level.text,
      ),
    );
  }
  for (const { kind, at, value, text } of given.points ?? [])
    parts.push(
      svg(
        "circle",
        { class: `dot ${kind}`, cx: x(at), cy: y(value), r: 4 },
        svg("title", {}, text),
      ),
    );
  const middle = (TOP + H - BOTTOM) / 2;
  return svg(
    "svg",
    { class: "ins-chart", viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": label },
    ...parts,
    svg(
      "text",
      { class: "axis", x: (LEFT + W - RIGHT) / 2, y: H - 6, "text-anchor": "middle" },
      given.x,
    ),
    svg(
      "text",
      { class: "axis", transform: `translate(12 ${middle}) rotate(-90)`, "text-anchor": "middle" },
      given.y,
    ),
  );
}

/** Without zeros at the end.
 * @param {number} v */
const tick = (v) => (Math.abs(v) < 1e-3 && v ? figure(v) : String(+v.toPrecision(3)));

/** Four or five round numbers.
 * @param {number} from
 * @param {number} to */
function evenly(from, to) {
  const raw = (to - from) / 4,
    power = 10 ** Math.floor(Math.log10(raw)),
    step = [1, 2, 2.5, 5, 10].find((k) => k * power >= raw) * power;
  const found = [];
  for (let v = Math.ceil(from / step) * step; v <= to + step * 1e-6; v += step)
    found.push(Math.abs(v) < step * 1e-6 ? 0 : v);
  return found;
}

/** @param {number} from
 * @param {number} to */
function powers(from, to) {
  const found = [],
    steps = to / from < 200 ? [1, 2, 5] : [1];
  for (let power = 10 ** Math.floor(Math.log10(from)); power <= to; power *= 10)
    found.push(...steps.map((k) => k * power).filter((v) => v >= from && v <= to));
  return found;
}
