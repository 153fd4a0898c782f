// @ts-check
// Both answers, and the labels on which they are furthest apart.

import { el } from "../explorer/elements.js";
import { SCHEMA } from "../explorer/state.js";

const MOST = 8; // labels in the list

/** @param {number} p */
const percent = (p) => `${(100 * p).toFixed(1)}\u2009%`;

/** The best labels of one side.
 * @param {Compare} compare
 * @param {number} side */
export function showAnswer({ first, second, language, ui, t }, side) {
  const known = [first, second][side],
    found = known?.answers ?? [];
  ui.answers[side].replaceChildren(
    ...(known && !found.length ? [el("li", { class: "cmp-muted" }, t("no_labels"))] : []),
    ...found.map(({ names, probability }) =>
      el(
        "li",
        { style: `--share:${(100 * probability).toFixed(1)}%` },
        el("span", { class: "cmp-label" }, names[language]),
        el("span", { class: "cmp-bar", "aria-hidden": "true" }),
        el("span", { class: "cmp-percent" }, percent(probability)),
      ),
    ),
  );
}

/** What they agree on, in a sentence, and the list of labels. A label that the first one knows asks why.
 * @param {Compare} compare */
export function showLabels(compare) {
  const { first, second, language, ui, t, explorer } = compare;
  ui.labels.hidden = !second?.labels.length;
  if (ui.labels.hidden) return;
  const [mine, other] = [first, second].map(({ answers: [best] }) => best.names[language]);
  const key = second.agree === null ? "strangers" : second.agree ? "agree" : "disagree";
  ui.agree.textContent = t(key, { first: mine, second: other });
  ui.agree.dataset.agree = String(second.agree);
  const asked = explorer.state.label;
  ui.rows.replaceChildren(
    ...second.labels.slice(0, MOST).map((label) => row(compare, label, asked)),
  );
}

/**
 * @param {Compare} compare
 * @param {PairLabel} label
 * @param {number | null} asked */
function row({ language, t, explorer }, { names, first, second, index }, asked) {
  const both = [first, second];
  const why = () =>
    asked === index
      ? explorer.leaveClass()
      : explorer.set({ map: SCHEMA.class_maps[0], label: index, minus: null });
  const name =
    index === null
      ? el("span", { class: "cmp-label" }, names[language])
      : el(
          "button",
          {
            type: "button",
            class: "cmp-label",
            title: t("why"),
            "aria-pressed": String(asked === index),
            onclick: why,
          },
          names[language],
        );
  const bars = both.map((p, side) =>
    el("i", {
      class: p === null ? "none" : side ? "less" : "more",
      style: `--share:${(100 * (p ?? 0)).toFixed(1)}%`,
    }),
  );
  return el(
    "tr",
    { "data-index": index },
    el("th", { scope: "row" }, name),
    el("td", { class: "cmp-bars", "aria-hidden": "true" }, ...bars),
    ...both.map((p) =>
      el(
        "td",
        { class: "cmp-percent", title: p === null ? t("not_a_label") : null },
        p === null ? el("abbr", { title: t("not_a_label") }, "\u2013") : percent(p),
      ),
    ),
  );
}
