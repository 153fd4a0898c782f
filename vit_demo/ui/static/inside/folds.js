// @ts-check
// Idea, Maths, Code: what opens below a step. What is open stays open in the next step.

import { el } from "../explorer/elements.js";

/**
 * @param {Walk} walk
 * @param {string} name
 * @param {...(Node | string)} children */
export function fold(walk, name, ...children) {
  const node = el(
    "details",
    {
      class: `ins-fold ins-fold-${name}`,
      open: walk.folds.has(name),
      ontoggle: () => (node.open ? walk.folds.add(name) : walk.folds.delete(name)),
    },
    el("summary", {}, walk.t(`fold_${name}`)),
    ...children,
  );
  return node;
}

/** The real source, with its line numbers; the lines that matter most stand out.
 * @param {Walk} walk
 * @param {Source[]} sources */
export function codeFold(walk, sources) {
  return fold(
    walk,
    "code",
    ...sources.map(({ file, first, lines, marked }) =>
      el(
        "figure",
        { class: "ins-code", "data-file": file, "data-first": first },
        el("figcaption", {}, walk.t("source", { file, first, last: first + lines.length - 1 })),
        el(
          "pre",
          { tabindex: 0, "aria-label": file },
          ...lines.map((line, k) => codeLine(line, first + k, marked.includes(k))),
        ),
      ),
    ),
  );
}

/**
 * @param {string} line
 * @param {number} number
 * @param {boolean} marked */
function codeLine(line, number, marked) {
  const at = line.search(/(^|\s)#\s/),
    [code, comment] = at < 0 ? [line, ""] : [line.slice(0, at), line.slice(at)];
  return el(
    "span",
    { class: marked ? "marked" : "" },
    el("i", { "aria-hidden": "true" }, String(number)),
    el("code", {}, code, el("em", {}, comment), "\n"),
  );
}
