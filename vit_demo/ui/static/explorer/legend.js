// @ts-check
// The colours of a map, with their meaning.

import { gradient } from "./draw.js";
import { el } from "./elements.js";
import { isClass } from "./state.js";
import { amount, percent } from "./words.js";

/**
 * @param {Explorer} explorer
 * @param {string} key */
export function legend({ ui }, key) {
  ui[key] = el(
    "div",
    { class: "vx-legend" },
    el("span"),
    el("i", { role: "presentation" }),
    el("span"),
    el("span", { class: "vx-muted" }),
  );
  return ui[key];
}

/**
 * @param {Explorer} explorer
 * @param {string} key
 * @param {Scale | null} scale */
export function showLegend(explorer, key, scale) {
  const { ui, state, tables, t } = explorer,
    [low, bar, high, note] = ui[key].children;
  const one = key === "legend" && isClass(state),
    say = one ? (x) => amount(explorer, x) : percent;
  const kind =
    state.minus !== null
      ? "difference"
      : state.map === "gradient_rollout"
        ? "share"
        : state.map === "random"
          ? "random"
          : "logit";
  bar.style.background = gradient(one ? tableOf(state, tables) : tables[state.colours]);
  low.textContent = scale ? say(scale.low) : "";
  high.textContent = scale ? `${scale.clipped ? "\u2265 " : ""}${say(scale.high)}` : "";
  note.textContent = t(one ? `legend_${kind}` : state.direction === "to" ? "legend_to" : "legend");
}

/**
 * @param {Pick<State, "minus" | "colours">} given
 * @param {any} tables */
export const tableOf = ({ minus, colours }, tables) =>
  tables[minus === null ? colours : "difference"];
