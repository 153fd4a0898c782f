// @ts-check
// What is chosen, and how it is changed: the token, the layer, the head, the label. The same in every step.

import { el } from "../explorer/elements.js";
import { shortName } from "../explorer/words.js";
import { chosenPatch, chosenToken, placeOf, tokenName } from "./drawing.js";

/** @param {Walk} walk */
export function choiceBar(walk) {
  const { t } = walk;
  const what = el("span", { class: "ins-muted" }),
    token = el("output", { class: "ins-chosen", "data-choice": "token" });
  const reset = el(
    "button",
    { type: "button", class: "ins-small", onclick: () => walk.choose({ query: null }) },
    t("to_class_token"),
  );
  const layer = stepper(walk, "layer", () => walk.facts.layers),
    head = stepper(walk, "head", () => walk.facts.heads);
  const label = el("select", {
    class: "ins-label",
    "aria-label": t("label"),
    onchange: () => walk.choose({ label: +label.value }),
  });
  const fields = {
    patch: el("div", { class: "ins-field" }, what, token, reset),
    layer: layer.node,
    head: head.node,
    label: el("div", { class: "ins-field" }, el("span", { class: "ins-muted" }, t("label")), label),
  };
  const node = el("div", { class: "ins-choose" }, ...Object.values(fields));
  return {
    node,
    show() {
      const { uses, onlyPatches } = walk.built ?? {};
      for (const [name, field] of Object.entries(fields)) field.hidden = !uses?.includes(name);
      const { facts, choice, host } = walk;
      const [row, col] = placeOf(facts, chosenPatch(walk));
      what.textContent = t(onlyPatches ? "chosen_patch" : "chosen");
      token.textContent = onlyPatches
        ? t("patch_at", { row: row + 1, col: col + 1 })
        : tokenName(walk, chosenToken(walk));
      reset.hidden = !choice.query || facts.pool !== "token" || onlyPatches;
      layer.show(choice.layer);
      head.show(choice.head);
      const { top } = host.pictures.data,
        chosen = choice.label ?? top[0]?.[2];
      const known = top.map(([name, , index]) => [index, name]);
      if (chosen !== undefined && !known.some(([index]) => index === chosen))
        known.push([chosen, walk.local.labelNames?.[chosen] ?? String(chosen)]);
      label.replaceChildren(
        ...known.map(([index, name]) =>
          el("option", { value: index, selected: index === chosen }, shortName(String(name))),
        ),
      );
    },
  };
}

/** One less, the number, one more.
 * @param {Walk} walk
 * @param {"layer" | "head"} key
 * @param {() => number} count */
function stepper(walk, key, count) {
  const { t } = walk;
  let at = 0;
  const set = (/** @type {number} */ to) => walk.choose({ [key]: to });
  const select = el("select", { "aria-label": t(key), onchange: () => set(+select.value) });
  for (let k = 0; k < count(); k++)
    select.append(el("option", { value: k }, t("of", { k: k + 1, count: count() })));
  const less = el(
      "button",
      { type: "button", "aria-label": t(`${key}_less`), onclick: () => set(at - 1) },
      "\u2039",
    ),
    more = el(
      "button",
      { type: "button", "aria-label": t(`${key}_more`), onclick: () => set(at + 1) },
      "\u203a",
    );
  const node = el(
    "div",
    { class: "ins-field ins-stepper", "data-choice": key },
    el("span", { class: "ins-muted" }, t(key)),
    less,
    select,
    more,
  );
  return {
    node,
    show(/** @type {number} */ now) {
      at = now;
      select.value = String(now);
      less.disabled = now <= 0;
      more.disabled = now >= count() - 1;
    },
  };
}
