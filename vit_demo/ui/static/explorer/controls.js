// @ts-check
// The explorer's elements: built once a language, then kept in step with the state.
// `explorer.ui` holds those that are needed again, by name.

import { button, choice, el, field, help, range, select } from "./elements.js";
import { findings } from "./findings.js";
import { legend } from "./legend.js";
import { listenToPicture } from "./picture.js";
import { isClass, SCHEMA } from "./state.js";
import { fillHeads, sync } from "./sync.js";
import { copyPython, pngName, savePng, sheetOf } from "./takeaway.js";
import { listenToWall } from "./wall.js";

/** @param {Explorer} explorer */
export function build(explorer) {
  const { root, texts, words } = explorer,
    ui = /** @type {Elements} */ ({});
  explorer.ui = ui;
  root.lang = Object.keys(texts).find((key) => texts[key] === words);
  ui.live = el("div", { class: "vx-live", "aria-live": "polite" });
  root.replaceChildren(
    el("div", { class: "vx-areas" }, pictureSection(explorer), wallSection(explorer)),
    ui.live,
  );
  listenToPicture(explorer);
  listenToWall(explorer);
  fillHeads(explorer);
  sync(explorer);
  new ResizeObserver(() => explorer.draw("picture", "wall")).observe(ui.stage);
  new ResizeObserver(() => explorer.draw("wall")).observe(ui.wallBox);
  explorer.draw("picture", "wall");
}

/** @param {Explorer} explorer */
function pictureSection(explorer) {
  const { ui, id, t } = explorer;
  ui.play = el("button", {
    type: "button",
    class: "vx-play",
    onclick: () => explorer.togglePlay(),
  });
  ui.say = el("p", { class: "vx-say", id: `${id}-say` });
  return el(
    "section",
    { class: "vx-explorer", "aria-label": t("explorer") },
    el("header", {}, el("h2", {}, t("explorer")), tools(explorer)),
    mapRow(explorer),
    whichRow(explorer),
    stage(explorer),
    el("div", { class: "vx-row vx-layer" }, ui.play, range(explorer, "layer", 0, 0, 1, "layer")),
    queryRow(explorer),
    ui.say,
    legend(explorer, "legend"),
    moreSettings(explorer),
    findings(explorer),
  );
}

/** Which kind of map.
 * @param {Explorer} explorer */
function mapRow(explorer) {
  const { t, set } = explorer,
    kinds = [...SCHEMA.plain_maps, "class"]; // the last stands for all class maps
  const hints = Object.fromEntries(kinds.map((key) => [key, t(`${key}_hint`)]));
  const kind = choice(
    explorer,
    "map",
    kinds.map((key) => [key, t(key)]),
    hints,
    (map) => set({ map: map === "class" ? SCHEMA.class_maps[0] : map }),
  );
  const words = ["head_rollout", "rollout", "attention", "class_map"];
  return el("div", { class: "vx-row" }, kind, help(explorer, ...words));
}

/** Which one of that kind: what there is to choose depends on the map.
 * @param {Explorer} explorer */
function whichRow(explorer) {
  const { ui, id, t, set } = explorer;
  /** @param {string} value */
  const chooseHead = (value) =>
    set({ head: /^\d+$/.test(value) ? +value : /** @type {Fusion} */ (value) });
  const method = select(
    explorer,
    "method",
    SCHEMA.class_maps.map((key) => [key, t(key)]),
    (map) => set({ map }),
  );
  const part = choice(
    explorer,
    "part",
    ["whole", "special"].map((key) => [key, t(`part_${key}`)]),
    { special: t("part_hint") },
  );
  const direction = choice(
    explorer,
    "direction",
    ["from", "to"].map((key) => [key, t(key)]),
    { to: t("to_hint") },
  );
  ui.partBox = el("span", { class: "vx-row" }, part, help(explorer, "special"));
  return el(
    "div",
    { class: "vx-row vx-which" },
    el(
      "span",
      { class: "vx-head" },
      el("label", { for: `${id}-head` }, t("head")),
      select(explorer, "head", [], chooseHead),
      help(explorer, "head"),
    ),
    el(
      "span",
      { class: "vx-head" },
      el("label", { for: `${id}-method` }, t("method")),
      method,
      help(explorer, "contribution", "relevance", "gradient_rollout", "grad_cam"),
    ),
    ui.partBox,
    direction,
  );
}

/** @param {Explorer} explorer */
function tools(explorer) {
  const { ui, t } = explorer;
  const togglePeek = () => {
    explorer.peek = !explorer.peek;
    ui.peek.setAttribute("aria-pressed", explorer.peek);
    explorer.draw("picture");
  };
  return el(
    "div",
    { class: "vx-tools" },
    button(explorer, "peek", togglePeek, { "aria-pressed": String(explorer.peek) }),
    button(explorer, "png", () => savePng(sheetOf(explorer), pngName(explorer)), {
      title: t("png_hint"),
    }),
    button(explorer, "python", () => copyPython(explorer), { title: t("python_hint") }),
  );
}

/** @param {Explorer} explorer */
function stage({ ui, id, t }) {
  ui.canvas = el("canvas", {
    class: "vx-picture",
    tabindex: 0,
    role: "application",
    "aria-label": t("picture_label"),
    "aria-describedby": `${id}-say`,
  });
  ui.tip = el("div", { class: "vx-tip", hidden: true, "aria-hidden": "true" });
  ui.note = el("p", { class: "vx-note" });
  ui.stage = el("div", { class: "vx-stage" }, ui.canvas, ui.tip, ui.note);
  return ui.stage;
}

/** Who asks, and what lies under the map.
 * @param {Explorer} explorer */
function queryRow(explorer) {
  const { ui, id, set } = explorer;
  ui.query = el("strong", { class: "vx-query-name" });
  ui.verb = el("span", { class: "vx-muted" });
  ui.queryHelp = help(explorer, "class_token");
  ui.backText = el("span");
  ui.back = el(
    "button",
    {
      type: "button",
      class: "vx-back",
      onclick: () => set(isClass(explorer.state) ? { map: explorer.lastPlain } : { query: null }),
    },
    "\u2715 ",
    ui.backText,
  );
  const changeSeen = () => set({ picture: ui.seen.checked ? "seen" : "own" });
  ui.seen = el("input", {
    type: "checkbox",
    role: "switch",
    id: `${id}-seen`,
    onchange: changeSeen,
  });
  ui.seenText = el("label", { for: ui.seen.id });
  return el(
    "div",
    { class: "vx-row vx-query" },
    el(
      "div",
      { class: "vx-asker" },
      el("span", {}, ui.verb, " ", ui.query, " ", ui.queryHelp),
      ui.back,
    ),
    el("span", { class: "vx-switch" }, ui.seenText, ui.seen),
  );
}

/** @param {Explorer} explorer */
function moreSettings(explorer) {
  const { ui, id, t, set } = explorer;
  const changeFollow = () => {
    explorer.followPointer = ui.follow.checked;
    explorer.draw("picture");
  };
  const reset = () => {
    const { map, layer, head, part, wall, sort, label, minus } = explorer.state;
    explorer.stopPlaying();
    set({ ...SCHEMA.defaults, map, layer, head, part, sort, label, minus, wall });
  };
  const below = choice(explorer, "below", [
    ["mean", t("below_mean")],
    ["same", t("below_same")],
  ]);
  const smooth = choice(explorer, "smooth", [
    [false, t("smooth_no")],
    [true, t("smooth_yes")],
  ]);
  const scale = choice(explorer, "scale", [
    ["own", t("scale_own")],
    ["shared", t("scale_shared")],
  ]);
  const colours = select(
    explorer,
    "colours",
    SCHEMA.choices.colours.map((name) => [name, name]),
    (name) => set({ colours: name }),
  );
  ui.follow = el("input", { type: "checkbox", id: `${id}-follow`, onchange: changeFollow });
  ui.more = el(
    "details",
    { class: "vx-more" },
    el("summary", {}, t("more")),
    el(
      "div",
      { class: "vx-fields" },
      range(explorer, "residual", 0, 1, 0.05, "residual"),
      range(explorer, "discard", 0, 0.95, 0.05, "discard"),
      field(explorer, "below", below, "below"),
      range(explorer, "opacity", 0, 1, 0.05),
      field(explorer, "smooth", smooth),
      field(explorer, "colours", colours),
      field(explorer, "scale", scale),
      field(explorer, "follow", ui.follow),
      el("div", { class: "vx-field vx-end" }, button(explorer, "reset", reset)),
    ),
  );
  return ui.more;
}

/** @param {Explorer} explorer */
function wallSection(explorer) {
  const { ui, id, t } = explorer;
  const sort = choice(
    explorer,
    "sort",
    [
      ["layer", t("sort_layer")],
      ["focus", t("sort_focus")],
    ],
    { focus: t("sort_hint") },
  );
  const view = choice(
    explorer,
    "wall",
    SCHEMA.choices.wall.map((key) => [key, t(`wall_${key}`)]),
    Object.fromEntries(SCHEMA.choices.wall.map((key) => [key, t(`wall_${key}_hint`)])),
  );
  ui.tiles = el("canvas", {
    class: "vx-tiles",
    tabindex: 0,
    role: "application",
    "aria-label": t("wall_label"),
    "aria-describedby": `${id}-name`,
  });
  ui.wallBox = el("div", { class: "vx-wallbox" }, ui.tiles);
  ui.name = el("span", { id: `${id}-name` });
  return el(
    "section",
    { class: "vx-wall", "aria-label": t("wall_title") },
    el("header", {}, el("h2", {}, t("wall_title"), " ", help(explorer, "head", "layer")), sort),
    el("div", { class: "vx-row" }, view, help(explorer, "special", "head_rollout", "attention")),
    ui.wallBox,
    el("p", { class: "vx-name" }, ui.name, " ", help(explorer, "distance", "entropy")),
    legend(explorer, "wallLegend"),
  );
}
