// @ts-check
// The colours of a map, with their meaning.

import { askFor } from "../glossary.js";
import { gradient } from "./draw.js";
import { el, help } from "./elements.js";
import { isClass, isSigned } from "./state.js";
import { amount } from "./words.js";

/**
 * @param {Explorer} explorer
 * @param {string} key */
export function legend(explorer, key) {
  explorer.ui[key] = el(
    "div",
    { class: "vx-legend" },
    el("span"),
    el("i", { role: "presentation" }),
    el("span"),
    el("span", { class: "vx-muted" }, el("span"), " ", help(explorer, "share")),
  );
  return explorer.ui[key];
}

/** The word behind a unit's "?". */
const UNIT_WORDS = {
  share: "share",
  to: "to",
  special: "points",
  difference_share: "points",
  difference: "difference",
  contribution: "log_p",
  logit: "logit",
  random: "random",
};

/** What the colours of a map measure.
 * @param {State} settings */
function unitOf(settings) {
  const { map, part, direction, minus } = settings;
  if (minus !== null) return map === "gradient_rollout" ? "difference_share" : "difference";
  if (!isClass(settings)) return part === "special" ? part : direction === "to" ? "to" : "share";
  if (map === "gradient_rollout") return "share";
  return map === "contribution" || map === "random" ? map : "logit";
}

/**
 * @param {Explorer} explorer
 * @param {string} key
 * @param {Scale | null | undefined} scale
 * @param {State} settings
 * @param {string} [where] */
export function showLegend(explorer, key, scale, settings, where = "") {
  const { root, ui, tables, t } = explorer,
    [low, bar, high, note] = ui[key].children,
    unit = unitOf(settings),
    /** @param {number} x */
    say = (x) => amount(explorer, settings, x),
    cut = scale?.clipped;
  bar.style.background = gradient(tableOf(settings, tables));
  low.textContent = scale ? (cut && isSigned(settings) ? "\u2264 " : "") + say(scale.low) : "";
  high.textContent = scale ? (cut ? "\u2265 " : "") + say(scale.high) : "";
  note.firstChild.textContent = where + t(`legend_${unit}`);
  askFor(note.lastChild, root.lang, [UNIT_WORDS[unit]]);
}

/**
 * @param {State} settings
 * @param {Record<string, ColourTable>} tables */
export const tableOf = (settings, tables) =>
  tables[isSigned(settings) ? "difference" : settings.colours];
