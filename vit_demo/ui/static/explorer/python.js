// @ts-check
// What is shown, as Python code that makes the same picture.

import { isClass, isOne, isSigned } from "./state.js";
import { className } from "./words.js";

/** @param {string} text */
const literal = (text) => JSON.stringify(text);

/** @param {number} x */
const number = (x) => String(+x.toPrecision(6));

/** The call that makes the same map: `explanation.rollout(...)` and so on.
 * @param {State} state */
export function pythonCall({
  map,
  layer,
  head,
  query,
  direction,
  below,
  part,
  residual,
  discard,
  label,
  minus,
}) {
  if (map === "random") return "faithful.random_map(explanation)";
  if (map === "contribution" && minus !== null)
    return `explanation.contribution(${label}, minus=${minus})`;
  if (label !== null) {
    return [label, minus]
      .filter((one) => one !== null)
      .map((one) => `explanation.${map}(${one})`)
      .join(" - ");
  }
  const one = isOne(head),
    given = [String(layer)];
  if (map === "attention") given.push(`head=${one ? head : literal(head)}`);
  if (query) given.push(`query=(${query.join(", ")})`);
  if (map === "rollout" && head !== "mean" && !one) given.push(`fusion="${head}"`);
  if (map === "head_rollout" && below !== "mean") given.push(`below="${below}"`);
  if (part === "special") given.push('part="special"');
  if (map !== "attention") given.push(`residual=${number(residual)}`, `discard=${number(discard)}`);
  if (direction === "to") given.push('direction="to"');
  const call = { head_rollout: "head_rollouts", rollout: "rollout", attention: "attention" }[map];
  const across = { mean: ".mean(dim=0)", max: ".amax(dim=0)", min: ".amin(dim=0)" };
  const pick = map !== "head_rollout" ? "" : one ? `[${head}]` : across[head];
  return `explanation.${call}(${given.join(", ")})${pick}`;
}

/** @param {Explorer} explorer */
export function pythonOf(explorer) {
  const { state, shown, data, maps, image } = explorer;
  const about = isClass(state) ? className(explorer) : `layer ${state.layer + 1} of ${maps.L}`;
  return [
    "import vit_demo",
    `from vit_demo import ${state.map === "random" ? "faithful, " : ""}render`,
    "",
    `classifier = vit_demo.load(${literal(data.model)})`,
    `explanation = classifier.explain(${literal(image)}, fit=${literal(data.fit)})`,
    `heat = ${pythonCall(state)}  # ${about}`,
    "picture = render.overlay(",
    `    explanation.view.${state.picture === "seen" ? "picture" : "preview()"},`,
    "    heat,",
    `    opacity=${number(state.opacity)},`,
    `    colour_map=${literal(isSigned(state) ? "RdBu_r" : state.colours)},`,
    `    smooth=${state.smooth ? "True" : "False"},`,
    `    scale=(${number(shown.scale.low)}, ${number(shown.scale.high)}),`,
    ")",
    'picture.save("attention.png")',
    "",
  ].join("\n");
}
