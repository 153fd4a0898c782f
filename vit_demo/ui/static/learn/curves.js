// @ts-check
// Accuracy and loss over the training: one point a moment, at equal distances.

import { el } from "../explorer/elements.js";
import { question } from "../glossary.js";
import { svg } from "../svg.js";

const W = 340,
  H = 128,
  LEFT = 40,
  RIGHT = 10,
  TOP = 8,
  BOTTOM = 20;

/** @typedef {{ name: string; values: (number | null)[] }} Line */

/** @param {Learn} learn */
export function buildCurves(learn) {
  const { ui, t, number, history, language } = learn,
    { moments } = history;
  const last = moments.at(-1),
    loss = moments.map(({ test_loss, train_loss }) => Math.max(test_loss, train_loss ?? 0));
  ui.charts = [];
  const accuracy = chart(learn, {
    label: t("accuracy_label", { accuracy: number(100 * last.accuracy, 1) }),
    lines: [{ name: "test", values: moments.map((moment) => 100 * moment.accuracy) }],
    most: 100,
    ticks: [0, 50, 100],
    unit: "\u2009%",
  });
  const most = Math.ceil(Math.max(...loss));
  const losses = chart(learn, {
    label: t("loss_label", { loss: number(last.test_loss, 2) }),
    lines: [
      { name: "train", values: moments.map((moment) => moment.train_loss) },
      { name: "test", values: moments.map((moment) => moment.test_loss) },
    ],
    most,
    ticks: Array.from({ length: most + 1 }, (_, k) => k),
    unit: "",
  });
  /** @param {string} key */
  const key = (key) => el("li", {}, el("i", { class: key }), t(`curve_${key}`));
  return el(
    "section",
    { class: "learn-curves", "aria-label": t("curves_title") },
    el("h3", {}, t("accuracy"), " ", question(language, ["accuracy"])),
    accuracy,
    el("h3", {}, t("loss"), " ", question(language, ["loss", "label_smoothing"])),
    losses,
    el("ul", { class: "learn-legend" }, key("test"), key("train")),
    el("p", { class: "learn-muted" }, t("curves_axis")),
  );
}

/** A chart; a click on it goes to the nearest moment.
 * @param {Learn} learn
 * @param {{ label: string; lines: Line[]; most: number; ticks: number[]; unit: string }} given */
function chart({ ui, history: { moments }, number, go }, { label, lines, most, ticks, unit }) {
  const last = moments.length - 1;
  /** @param {number} k */
  const x = (k) => LEFT + (k / last) * (W - LEFT - RIGHT);
  /** @param {number} value */
  const y = (value) => H - BOTTOM - (value / most) * (H - TOP - BOTTOM);
  /** @param {(number | null)[]} values */
  const path = (values) =>
    values
      .map((value, k) => (value === null ? "" : `L${x(k).toFixed(1)} ${y(value).toFixed(1)}`))
      .join("")
      .replace("L", "M");
  const every = Math.ceil(last / 5),
    named = moments.flatMap(({ step }, k) => ((last - k) % every ? [] : [{ step, k }]));
  const marker = svg("path", { class: "now" });
  const dots = lines.map(({ name }) => svg("circle", { class: name, r: 4 }));
  const drawn = svg(
    "svg",
    { viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": label },
    ...ticks.flatMap((tick) => [
      svg("path", { class: "grid", d: `M${LEFT} ${y(tick)}H${W - RIGHT}` }),
      svg("text", { x: LEFT - 6, y: y(tick) + 4, "text-anchor": "end" }, `${tick}${unit}`),
    ]),
    ...named.map(({ step, k }) =>
      svg(
        "text",
        { x: x(k), y: H - 5, "text-anchor": k === last ? "end" : "middle" },
        number(step),
      ),
    ),
    marker,
    ...lines.map(({ name, values }) => svg("path", { class: `line ${name}`, d: path(values) })),
    ...dots,
  );
  drawn.addEventListener("click", (event) => {
    const box = drawn.getBoundingClientRect(),
      { clientX } = /** @type {MouseEvent} */ (event),
      there = ((clientX - box.left) / box.width) * W;
    go(Math.round(((there - LEFT) / (W - LEFT - RIGHT)) * last));
  });
  ui.charts.push((/** @type {number} */ at) => {
    marker.setAttribute("d", `M${x(at)} ${TOP}V${H - BOTTOM}`);
    lines.forEach(({ values }, k) => {
      const value = values[at];
      dots[k].setAttribute("visibility", value === null ? "hidden" : "visible");
      dots[k].setAttribute("cx", String(x(at)));
      dots[k].setAttribute("cy", String(y(value ?? 0)));
    });
  });
  return drawn;
}

/** @param {Learn} learn */
export function showCurves({ ui, at }) {
  for (const mark of ui.charts) mark(at);
}
