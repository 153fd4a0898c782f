// @ts-check
// The controls follow the state.

import { askFor } from "../glossary.js";
import { el } from "./elements.js";
import { syncFindings } from "./findings.js";
import { fusionsOf, isClass, isOfWall, isSigned, SCHEMA } from "./state.js";
import { askerWords, readoutName } from "./words.js";

/** The heads this map can show.
 * @param {Explorer} explorer */
export function fillHeads({ data, maps, state, ui, t }) {
  if (!data) return;
  const rollout = state.map === "rollout";
  const all = fusionsOf(state),
    each = rollout ? [] : Array.from({ length: maps.H }, (_, head) => head);
  const key = JSON.stringify([ui.head.id, all, each.length]);
  if (ui.head.dataset.key === key) return;
  ui.head.dataset.key = key;
  ui.head.replaceChildren(
    ...all.map((how) =>
      el(
        "option",
        { value: how, disabled: !maps.fusions && rollout && how !== "mean" },
        t(`heads_${how}`),
      ),
    ),
    ...each.map((head) => el("option", { value: head }, t("to_head", { head: head + 1 }))),
  );
}

/** Controls show the state; the state stands in the dataset, for links and tests.
 * @param {Explorer} explorer */
export function sync(explorer) {
  const { root, data, state, playing, ui, t } = explorer;
  root.dataset.ready = String(Boolean(data));
  root.dataset.state = JSON.stringify(state);
  root.classList.toggle("vx-empty", !data);
  /** @type {NodeListOf<HTMLInputElement>} */
  const inputs = root.querySelectorAll("input, select, button");
  for (const input of inputs) input.disabled = !data && !input.classList.contains("gloss");
  for (const key of ["map", "part", "direction", "below", "smooth", "scale", "wall", "sort"]) {
    const chosen = key === "map" && isClass(state) ? "class" : String(state[key]);
    for (const input of ui[key].querySelectorAll("input")) input.checked = input.value === chosen;
  }
  for (const key of ["residual", "discard", "opacity"]) {
    ui[key].value = state[key];
    ui[`${key}_out`].textContent = `${Math.round(100 * state[key])} %`;
  }
  ui.colours.value = state.colours;
  ui.follow.checked = explorer.followPointer;
  ui.play.textContent = playing ? "\u275a\u275a" : "\u25b6";
  ui.play.title = t(playing ? "pause" : "play");
  ui.play.setAttribute("aria-label", ui.play.title);
  const verb = isClass(state) ? "query_for" : state.direction === "to" ? "query_to" : "query_from";
  ui.verb.textContent = `${t(verb)}:`;
  ui.back.hidden = !state.query && !isClass(state);
  ui.method.parentElement.hidden = !isClass(state);
  ui.head.parentElement.hidden = isClass(state);
  ui.partBox.hidden = state.map !== "head_rollout";
  ui.direction.hidden = state.map !== "attention";
  if (data) syncWithModel(explorer);
  else ui.layer_out.textContent = ui.query.textContent = "";
  syncFindings(explorer);
  root.dispatchEvent(new CustomEvent("vitx-state", { bubbles: true }));
}

/** What depends on the model: how many layers, which settings it allows.
 * @param {Explorer} explorer */
function syncWithModel(explorer) {
  const { root, data, maps, state, ui, fetchRowsBlob, t } = explorer,
    [w, h] = data.picture.size;
  ui.stage.style.setProperty("--vx-aspect", w / h);
  ui.seen.parentElement.hidden = !data.preview;
  ui.seen.checked = state.picture === "seen";
  ui.seenText.textContent = t("seen", { width: w, height: h });
  askFor(ui.queryHelp, root.lang, askerWords(explorer));
  ui.layer.max = maps.L - 1;
  ui.layer.value = state.layer;
  ui.layer_out.textContent = isClass(state)
    ? t("layer_all")
    : t("layer_of", { layer: state.layer + 1, layers: maps.L });
  ui.layer.setAttribute("aria-valuetext", ui.layer_out.textContent);
  ui.head.value = state.head;
  ui.backText.textContent = ui.back.title = isClass(state)
    ? t("back_class")
    : t("back", { readout: readoutName(explorer) });
  ui.back.setAttribute("aria-label", ui.back.title);
  ui.back.classList.toggle("vx-wide", isClass(state)); // its words are shown on a phone, too
  ui.direction.querySelector("[value=to]").disabled = !(maps.full || fetchRowsBlob);
  ui.residual.disabled = ui.discard.disabled = state.map === "attention" || isClass(state);
  ui.discard.disabled ||= !maps.full && data.readout_tokens[1] - data.readout_tokens[0] > 1;
  const fixed = state.map !== "head_rollout" || !maps.full;
  for (const input of ui.below.querySelectorAll("input")) input.disabled = fixed;
  ui.below.title = maps.full ? "" : t("lean_off");
  syncClass(explorer);
}

/** What a class map has nothing to do with is off, and says why.
 * @param {Explorer} explorer */
function syncClass({ data, state, ui, fetchRowsBlob, classes, t }) {
  const off = isClass(state),
    alone = !isOfWall(state);
  ui.method.value = off ? state.map : SCHEMA.class_maps[0];
  ui.method.querySelector("[value=random]").disabled = state.minus !== null;
  for (const key of ["layer", "play"]) ui[key].disabled = off;
  for (const input of ui.scale.querySelectorAll("input")) input.disabled = alone;
  ui.colours.disabled = isSigned(state);
  ui.layer.closest(".vx-row").title = off ? t("class_off") : "";
  ui.scale.title = alone ? t("scale_off") : "";
  const button = ui.map.querySelector("[value=class]"),
    none = !data.classes || !(fetchRowsBlob || classes.size);
  button.disabled = none;
  button.parentElement.title = t(
    none ? (data.classes ? "class_absent" : "class_none") : "class_hint",
  );
}
