// @ts-check
// What the model reads at the chosen moment: ten digits with their probabilities.

import { el } from "../explorer/elements.js";

/** @param {Learn} learn */
export function buildAnswer({ ui, t, history }) {
  ui.read = el("p", { class: "learn-read" });
  ui.bars = history.labels.map((label) => {
    const bar = el("span", { class: "learn-bar", "aria-hidden": "true" }),
      percent = el("span", { class: "learn-percent" });
    return { bar, percent, row: el("li", {}, el("b", {}, label), bar, percent) };
  });
  ui.settled = el("p", { class: "learn-muted" });
  return el(
    "section",
    { class: "learn-answer", "aria-label": t("answer_title") },
    el("h3", {}, t("answer_title")),
    ui.read,
    el("ol", {}, ...ui.bars.map(({ row }) => row)),
    ui.settled,
  );
}

/** @param {number[]} shares */
const largest = (shares) => shares.indexOf(Math.max(...shares));

/** @param {Learn} learn */
export function showAnswer({ ui, t, number, digit, history, at }) {
  const shares = digit?.probabilities[at],
    top = shares ? largest(shares) : -1;
  ui.bars.forEach(({ bar, percent, row }, index) => {
    const share = 100 * (shares?.[index] ?? 0);
    row.classList.toggle("top", index === top);
    bar.style.setProperty("--share", `${share.toFixed(1)}%`);
    percent.textContent = shares ? `${number(share, 1)}\u2009%` : "";
  });
  ui.read.replaceChildren(
    ...(shares
      ? [el("b", {}, history.labels[top]), ` ${number(100 * shares[top], 0)}\u2009%`]
      : [t("answer_empty")]),
  );
  ui.read.classList.toggle("empty", !shares);
  ui.settled.textContent = digit ? settled(digit, history, t, number) : "";
}

/** From which moment on the answer is the one it ends with.
 * @param {LearnDigit} digit
 * @param {LearnHistory} history
 * @param {Translate} t
 * @param {Learn["number"]} number */
function settled({ probabilities }, { moments, labels }, t, number) {
  const answers = probabilities.map(largest),
    last = answers.at(-1);
  let first = answers.length - 1;
  while (first > 0 && answers[first - 1] === last) first--;
  const values = { digit: labels[last], step: number(moments[first].step) };
  return t(first ? "settled" : "settled_first", values);
}
