// @ts-check
// How to repeat the training, and the functions that did it, as they stand in the source files.

import { el } from "../explorer/elements.js";

/** @param {Learn} learn */
export function buildCode({ history, t }) {
  return el(
    "section",
    { class: "learn-code", "aria-label": t("repeat_title") },
    el("h3", {}, t("repeat_title")),
    el("p", {}, t("repeat_about")),
    block(t("command_label"), history.command),
    el("p", {}, t("code_about")),
    ...history.code.map(({ part, functions }) =>
      el(
        "details",
        { "data-part": part },
        el("summary", {}, el("b", {}, t(`code_${part}`)), ` ${t(`code_${part}_about`)}`),
        ...functions.flatMap((one) => listing(one, t)),
      ),
    ),
  );
}

/** @param {string} label
 * @param {...(Node | string)} children */
const block = (label, ...children) =>
  el("pre", { tabindex: 0, role: "region", "aria-label": label }, el("code", {}, ...children));

/** A function with the numbers of its lines.
 * @param {LearnFunction} one
 * @param {Translate} t */
function listing({ name, file, first, code }, t) {
  const lines = code.replace(/\n$/, "").split("\n"),
    where = t("code_where", { file, first, last: first + lines.length - 1 });
  const numbered = lines.map((line, k) =>
    el("span", { class: "learn-line", "data-line": first + k }, `${line}\n`),
  );
  return [
    el("p", { class: "learn-muted" }, el("code", {}, name), ` · ${where}`),
    block(`${name}, ${where}`, ...numbered),
  ];
}
