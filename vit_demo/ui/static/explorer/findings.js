// @ts-check
// Findings: links to views in which something can be seen. They belong to one model and its examples.

import { el } from "./elements.js";
import { SCHEMA, wallView } from "./state.js";

const LOOKS = ["picture", "opacity", "smooth", "colours", "scale", "sort", "wall"]; // stay as they are

/** @param {Explorer} explorer */
export function findings(explorer) {
  explorer.ui.findings = el(
    "nav",
    { class: "vx-findings", "aria-label": explorer.t("findings"), hidden: true },
    el("h3", {}, explorer.t("findings")),
    el("ul"),
  );
  return explorer.ui.findings;
}

/** The settings of a finding, from anywhere: what it does not name is as at the start. The wall shows the
 * same kind of map, if it can.
 * @param {FindingLink} finding
 * @returns {Partial<State>} */
export function findingState({ settings }) {
  const plain = Object.entries(SCHEMA.defaults).filter(([key]) => !LOOKS.includes(key));
  const wall = wallView(settings);
  return { ...Object.fromEntries(plain), ...settings, ...(wall && { wall }) };
}

/** Layers and heads are counted from one.
 * @param {FindingLink} finding
 * @param {Translate} t */
const findingWords = ({ name, settings: { layer, head } }, t) =>
  t(`finding_${name}`, { layer: layer + 1, head: Number(head) + 1 });

/** Links to the findings of this model, as it sees the examples.
 * @param {Explorer} explorer */
export function syncFindings(explorer) {
  const { data, example, findingsOf, openExample, state, ui, t } = explorer,
    all = (data && openExample && data.fit === "crop" && findingsOf[data.model]) || [];
  ui.findings.hidden = !all.length;
  const links = all.map((finding) => {
    const { settings } = finding,
      shown = finding.example === example && isShown(finding, state);
    const place = {
      model: data.model,
      example: finding.example,
      ...settings,
      lang: explorer.root.lang,
    };
    const onclick = (/** @type {MouseEvent} */ event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return; // a tab of its own
      event.preventDefault();
      explorer.stopPlaying();
      openExample(finding.example, findingState(finding));
    };
    const href = `?${new URLSearchParams(/** @type {any} */ (place))}`;
    return el(
      "li",
      {},
      el("a", { href, onclick, "aria-current": shown && "true" }, findingWords(finding, t)),
    );
  });
  const list = ui.findings.lastElementChild,
    focused = [...list.children].findIndex((item) => item.contains(document.activeElement));
  list.replaceChildren(...links);
  if (focused >= 0) list.querySelectorAll("a")[focused]?.focus({ preventScroll: true });
}

/**
 * @param {FindingLink} finding
 * @param {State} state */
const isShown = ({ settings }, state) =>
  Object.entries(settings).every(
    ([key, value]) => JSON.stringify(state[key]) === JSON.stringify(value),
  );
