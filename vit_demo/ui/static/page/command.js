// @ts-check
// What is on the screen, as a command that writes the same map into files: the flags of `vit-demo explain`.

import { isClass, isOne, SCHEMA } from "../explorer/state.js";

/** A word for a shell.
 * @param {string} text */
const quote = (text) => (/^[\w./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

/** The flags of a setting, unless it is the default.
 * @param {string} flag
 * @param {unknown} value
 * @param {unknown} usual */
const unless = (flag, value, usual) => (value === usual ? [] : [`--${flag}`, String(value)]);

/** @param {State} state
 * @param {number} layers */
function mapFlags(state, layers) {
  const { map, layer, head, query, direction, below, part, residual, discard, label, minus } =
    state;
  const { defaults } = SCHEMA;
  if (map === "random") return ["--map", map];
  if (isClass(state))
    return ["--label", String(label), "--method", map, ...unless("minus", minus, null)];
  const flags = ["--map", map, ...unless("layer", layer, layers - 1)];
  if (isOne(head)) flags.push("--head", String(head));
  else flags.push(...unless("fusion", head, "mean"));
  if (query) flags.push("--query", query.join(","));
  if (map === "attention") return [...flags, ...unless("direction", direction, "from")];
  if (map === "head_rollout")
    flags.push(...unless("below", below, "mean"), ...unless("part", part, "whole"));
  flags.push(...unless("residual", residual, defaults.residual));
  return [...flags, ...unless("discard", discard, defaults.discard)];
}

/**
 * @param {{ image: string; model: string; fit: string }} shown
 * @param {State} state
 * @param {number} layers */
export function commandOf({ image, model, fit }, state, layers) {
  const { defaults } = SCHEMA;
  return [
    "vit-demo explain",
    quote(image),
    "--model",
    quote(model),
    ...unless("fit", fit, "crop"),
    ...mapFlags(state, layers),
    ...unless("picture", state.picture, defaults.picture),
    ...unless("opacity", state.opacity, defaults.opacity),
    ...unless("colours", state.colours, defaults.colours),
    ...(state.smooth ? ["--smooth"] : []),
    "--out maps",
  ].join(" ");
}
