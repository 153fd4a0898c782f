// @ts-check
// What stands beside the picture, and one set of controls for both: they read and set the state of the
// tab Explore.

import { choice, el, help, range, select } from "../explorer/elements.js";
import { fusionsOf, isClass, isOne, SCHEMA } from "../explorer/state.js";
import { savePng } from "../explorer/takeaway.js";
import { shortName } from "../explorer/words.js";
import { mountChooser } from "../page/chooser.js";
import { matching } from "./pairs.js";
import { sheetOf } from "./sheet.js";

/** Another picture or another model?
 * @param {Compare} compare */
export function buildSecond(compare) {
  const { ui, t, server } = compare;
  const mode = choice(
    compare,
    "mode",
    [
      ["pictures", t("mode_pictures")],
      ["models", t("mode_models")],
    ],
    {},
    (value) => compare.change({ mode: value }),
  );
  ui.examples = el("div", { class: "cmp-examples", role: "group", "aria-label": t("examples") });
  const file = el("input", {
    type: "file",
    accept: "image/*",
    class: "cmp-file",
    tabindex: -1,
    "aria-hidden": "true",
    onchange: () => {
      if (file.files[0]) compare.send(file.files[0]);
      file.value = "";
    },
  });
  ui.own = el("button", { type: "button", onclick: () => file.click() }, t("own"));
  ui.pictures = el("div", { class: "cmp-pictures" }, ui.examples, ui.own, file);
  const field = el("input", {
    type: "text",
    role: "combobox",
    "aria-expanded": "false",
    "aria-controls": "second-models",
    "aria-autocomplete": "list",
    autocomplete: "off",
    spellcheck: "false",
  });
  const list = el("ul", { id: "second-models", role: "listbox" });
  ui.model = el(
    "div",
    { class: "chooser cmp-model" },
    field,
    el("div", { class: "list", hidden: true }, list, el("p", { role: "status" })),
  );
  ui.chooser = mountChooser(ui.model, compare.chosenModel, server, (name, title) => {
    Object.assign(compare.chosenModel, { value: name, shown: title });
    compare.change({ model: name });
  });
  ui.status = el("p", { class: "cmp-status", role: "status" });
  return el(
    "div",
    { class: "cmp-second" },
    el("span", { class: "cmp-muted" }, t("mode")),
    mode,
    ui.pictures,
    ui.model,
    ui.status,
  );
}

/** The examples of step 1, in the visitor's language. */
export const exampleImages = () =>
  /** @type {HTMLImageElement[]} */ ([...document.querySelectorAll("#strip img")]);

/** @param {HTMLImageElement} image */
export const exampleOf = (image) => image.parentElement.dataset.example;

/**
 * @param {Compare} compare
 * @param {HTMLImageElement} image */
function exampleButton(compare, image) {
  const { src, alt } = image,
    name = exampleOf(image);
  return el(
    "button",
    {
      type: "button",
      "data-second": name,
      title: alt,
      onclick: () => compare.change({ example: name }),
    },
    el("img", { src, alt, width: 40, height: 40 }),
  );
}

/** What is chosen.
 * @param {Compare} compare */
export function showSecond(compare) {
  const { ui, mode, wish, t } = compare;
  for (const input of ui.mode.querySelectorAll("input")) input.checked = input.value === mode;
  ui.pictures.hidden = mode !== "pictures";
  ui.model.hidden = mode !== "models";
  const examples = exampleImages(),
    names = examples.map(({ alt }) => alt).join();
  if (ui.examples.dataset.names !== names)
    ui.examples.replaceChildren(...examples.map((image) => exampleButton(compare, image)));
  ui.examples.dataset.names = names;
  for (const button of ui.examples.children)
    button.setAttribute("aria-pressed", String(wish.example === button.dataset.second));
  ui.own.setAttribute("aria-pressed", String(Boolean(wish.file)));
  ui.own.textContent = wish.file ? t("own_other") : t("own");
}

/** Map, layer, head: for both.
 * @param {Compare} compare */
export function buildControls(compare) {
  const { ui, t, explorer } = compare;
  const kinds = [...SCHEMA.plain_maps, "class"];
  const map = choice(
    compare,
    "map",
    kinds.map((kind) => [kind, t(kind)]),
    {},
    (kind) => explorer.set({ map: kind === "class" ? SCHEMA.class_maps[0] : kind }),
  );
  const method = select(
    compare,
    "method",
    SCHEMA.class_maps.map((name) => [name, t(name)]),
    (name) => explorer.set({ map: name }),
  );
  const head = select(compare, "head", [], (value) =>
    explorer.set({ head: /^\d+$/.test(value) ? +value : /** @type {Fusion} */ (value) }),
  );
  ui.backText = el("span");
  ui.back = el(
    "button",
    {
      type: "button",
      onclick: () =>
        isClass(explorer.state) ? explorer.leaveClass() : explorer.set({ query: null }),
    },
    "\u2715 ",
    ui.backText,
  );
  ui.png = el(
    "button",
    {
      type: "button",
      title: t("png_hint"),
      onclick: () => savePng(sheetOf(compare), "compare.png"),
    },
    t("png"),
  );
  return el(
    "div",
    { class: "cmp-controls" },
    el("div", { class: "vx-row" }, map, help(compare, ...SCHEMA.plain_maps, "class_map")),
    el("span", { class: "vx-head" }, el("label", { for: ui.head.id }, t("head")), head),
    el(
      "span",
      { class: "vx-head" },
      el("label", { for: ui.method.id }, t("method")),
      method,
      help(compare, ...SCHEMA.class_maps),
    ),
    el("div", { class: "cmp-layer" }, range(compare, "layer", 0, 0, 1)),
    ui.back,
    ui.png,
  );
}

/** The controls follow the state.
 * @param {Compare} compare */
export function syncControls(compare) {
  const { ui, t, explorer, second } = compare,
    { state, maps, data } = explorer,
    off = isClass(state);
  /** @type {NodeListOf<HTMLInputElement>} */
  const all = ui.controls.querySelectorAll("input, select, button");
  for (const input of all) input.disabled = !data;
  if (!data) return;
  for (const input of ui.map.querySelectorAll("input")) {
    input.checked = input.value === (off ? "class" : state.map);
    if (input.value === "class") input.disabled = !data.classes;
  }
  const fused = fusionsOf(state).map((how) => [how, t(`heads_${how}`)]);
  const single =
    state.map === "rollout"
      ? []
      : Array.from({ length: maps.H }, (_, k) => [k, t("to_head", { head: k + 1 })]);
  ui.head.replaceChildren(
    ...[...fused, ...single].map(([value, text]) => el("option", { value }, String(text))),
  );
  ui.head.value = String(state.head);
  ui.head.parentElement.hidden = off;
  ui.method.parentElement.hidden = !off;
  ui.method.value = off ? state.map : SCHEMA.class_maps[0];
  ui.layer.max = String(maps.L - 1);
  ui.layer.value = String(state.layer);
  ui.layer.disabled = off;
  const here = { layer: state.layer + 1, layers: maps.L };
  ui.layer_out.textContent = off ? t("layer_all") : t("layer_of", here);
  if (second && !off && second.data.layers !== maps.L) {
    const other = matching(state.layer, maps.L, second.data.layers) + 1;
    ui.layer_out.textContent = t("layer_pair", { ...here, other, others: second.data.layers });
  }
  ui.back.hidden = !state.query && !off;
  ui.backText.textContent = off
    ? t("back_class")
    : state.query
      ? t("back_patch", { row: state.query[0] + 1, col: state.query[1] + 1 })
      : "";
  ui.png.disabled = !compare.views?.difference;
}

/** A map in a few words; `explorer` is the side's own.
 * @param {Compare} compare
 * @param {number} side */
export function mapName({ views, second, explorer, t }, side) {
  const { state } = views.sides[side],
    layers = side ? second.data.layers : explorer.data.layers;
  if (isClass(state)) {
    const classes = side ? second.classes : explorer.classes;
    const names = [state.label, state.minus]
      .filter((label) => label !== null)
      .map((label) => (classes.has(label) ? shortName(classes.get(label).name) : "\u2026"));
    return `${t(state.map)} · ${names.join(" \u2212 ")}`;
  }
  const parts = [t(state.map), t("layer_in", { layer: state.layer + 1, layers })];
  if (isOne(state.head)) parts.push(t("to_head", { head: Number(state.head) + 1 }));
  else if (state.map !== "rollout" || state.head !== "mean") parts.push(t(`heads_${state.head}`));
  if (state.part === "special") parts.push(t("part_special"));
  if (state.query) parts.push(t("patch", { row: state.query[0] + 1, col: state.query[1] + 1 }));
  return parts.join(" · ");
}
