// @ts-check
// The explorer's elements: built once a language, then kept in step with the state.
// `explorer.ui` holds those that are needed again, by name.

import { button, choice, el, field, range, select } from "./elements.js";
import { legend } from "./legend.js";
import { listenToPicture } from "./picture.js";
import { isClass, SCHEMA } from "./state.js";
import { fillHeads, sync } from "./sync.js";
import { copyPython, savePng } from "./takeaway.js";
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
  const { ui, id, t, set } = explorer;
  const kinds = [...SCHEMA.plain_maps, "class"]; // the last stands for all class maps
  const hints = Object.fromEntries(kinds.map((key) => [key, t(`${key}_hint`)]));
  const kind = choice(
    explorer,
    "map",
    kinds.map((key) => [key, t(key)]),
    hints,
    (map) => set({ map: map === "class" ? SCHEMA.class_maps[0] : map }),
  );
  const method = select(
    explorer,
    "method",
    SCHEMA.class_maps.map((key) => [key, t(key)]),
    (map) => set({ map }),
  );
  /** @param {any} value */
  const chooseHead = (value) => set({ head: /^\d+$/.test(value) ? +value : value });
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
    el(
      "div",
      { class: "vx-row" },
      kind,
      el(
        "span",
        { class: "vx-head" },
        el("label", { for: `${id}-head` }, t("head")),
        select(explorer, "head", [], chooseHead),
      ),
      el("span", { class: "vx-head" }, el("label", { for: `${id}-method` }, t("method")), method),
    ),
    stage(explorer),
    el("div", { class: "vx-row vx-layer" }, ui.play, range(explorer, "layer", 0, 0, 1)),
    queryRow(explorer),
    ui.say,
    legend(explorer, "legend"),
    moreSettings(explorer),
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
    button(explorer, "png", () => savePng(explorer), { title: t("png_hint") }),
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

/** @param {Explorer} explorer */
function queryRow(explorer) {
  const { ui, t, set } = explorer;
  ui.query = el("strong", { class: "vx-query-name" });
  ui.verb = el("span", { class: "vx-muted" });
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
  return el(
    "div",
    { class: "vx-row vx-query" },
    el("span", {}, ui.verb, " ", ui.query),
    ui.back,
    el("span", { class: "vx-grow" }),
    choice(
      explorer,
      "direction",
      [
        ["from", t("from")],
        ["to", t("to")],
      ],
      { to: t("to_hint") },
    ),
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
    const { map, layer, head, sort, label, minus } = explorer.state;
    explorer.stopPlaying();
    set({ ...SCHEMA.defaults, map, layer, head, sort, label, minus });
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
    ["shared", t("scale_shared")],
    ["own", t("scale_own")],
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
      range(explorer, "residual", 0, 1, 0.05, t("residual_hint")),
      range(explorer, "discard", 0, 0.95, 0.05, t("discard_hint")),
      field(explorer, "below", below, t("below_hint")),
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
  ui.wall = el("canvas", {
    class: "vx-tiles",
    tabindex: 0,
    role: "application",
    "aria-label": t("wall_label"),
    "aria-describedby": `${id}-name`,
  });
  ui.wallBox = el("div", { class: "vx-wallbox" }, ui.wall);
  ui.name = el("p", { class: "vx-name", id: `${id}-name` });
  return el(
    "section",
    { class: "vx-wall", "aria-label": t("wall") },
    el("header", {}, el("h2", {}, t("wall")), sort),
    ui.wallBox,
    ui.name,
    legend(explorer, "wallLegend"),
  );
}
