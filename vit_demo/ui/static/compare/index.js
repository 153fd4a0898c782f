// @ts-check
// The tab Compare: another picture or another model beside what is on the page. The first one is what the
// tab Explore shows; its state is the state of both.

import { el, help } from "../explorer/elements.js";
import { isOne } from "../explorer/state.js";
import { amount, fill } from "../explorer/words.js";
import { componentValue, serverAnswers, submitLong, uploadFile } from "../gradio.js";
import { explorerId, whenExplorerIsThere } from "../page/explorer.js";
import { currentTab } from "../page/tabs.js";
import { showAnswer, showLabels } from "./answers.js";
import {
  buildControls,
  buildSecond,
  exampleImages,
  exampleOf,
  mapName,
  showSecond,
  syncControls,
} from "./controls.js";
import { openSecond } from "./second.js";
import { sheetOf } from "./sheet.js";
import { drawViews, patchOn, showLegends, stage, viewsOf } from "./views.js";

/** @param {HTMLElement} element
 * @param {GradioComponent} gradio
 * @param {CompareSetup} setup */
export function mount(element, gradio, setup) {
  whenExplorerIsThere((explorer) => mountCompare(element, gradio, setup, explorer));
}

/**
 * @param {HTMLElement} element
 * @param {GradioComponent} gradio
 * @param {CompareSetup} setup
 * @param {ExplorerHandle} explorer */
function mountCompare(element, { props, trigger, watch, server }, setup, explorer) {
  const root = /** @type {HTMLElement} */ (element.querySelector(".cmp"));
  /** @type {Compare} */
  const compare = {
    root,
    id: "cmp",
    props,
    trigger,
    server,
    explorer,
    ...setup,
    ui: {},
    language: "en",
    chosenModel: { value: "", shown: "", text: {}, language: "en" },
    // What is asked for.
    first: null, // the value of the component
    mode: "pictures",
    wish: {},
    run: 0,
    asked: "", // what the last request was about
    // What came.
    second: null,
    waiting: false,
    status: "",
    trouble: "",
    // What is shown.
    views: null,
    chosen: null,
    hover: null,
    frame: 0,
    set: (changes) => explorer.set(changes),
    t: (key, values = {}) => fill(setup.texts[compare.language][key], values),
    change: (changes) => change(compare, changes),
    send: (file) => send(compare, file),
    draw: () => schedule(compare, true),
    redraw: () => schedule(compare, false),
    say: (key) => say(compare, compare.t(key)),
    announce: () => announce(compare),
  };
  Object.assign(root, { compare: { views: () => compare.views, sheet: () => sheetOf(compare) } });
  readLink(compare);
  build(compare);
  watch("value", () => changePicture(compare));
  watch("news", () => receive(compare, props.news));
  watch("language", () => build(compare));
  document.addEventListener("vit-tab", () => {
    ask(compare);
    compare.draw();
  });
  document.addEventListener("vit-link", (event) => {
    const { wish, mode } = compare,
      { detail } = /** @type {CustomEvent} */ (event);
    if (currentTab() !== "compare") return;
    if (mode === "models" && wish.model) detail.with = wish.model;
    if (mode === "pictures" && wish.example) detail.beside = wish.example;
  });
  document.addEventListener("vitx-state", compare.draw);
  document.addEventListener("vit-lost", () => lose(compare, compare.run));
  new ResizeObserver(() => compare.redraw()).observe(root);
  changePicture(compare);
}

/** A link may name the second one.
 * @param {Compare} compare */
function readLink(compare) {
  const given = new URLSearchParams(location.search);
  const model = given.get("with");
  if (model) {
    Object.assign(compare, { mode: "models", wish: { model } });
    Object.assign(compare.chosenModel, { value: model, shown: model });
    compare.server.load_model({ model });
  } else if (given.get("beside")) compare.wish = { example: given.get("beside") };
}

// Asking for the second one

/** Another picture in step 1, or none.
 * @param {Compare} compare */
function changePicture(compare) {
  compare.first = componentValue(compare.props) ?? null;
  if (compare.second && compare.second.of !== compare.first?.id) compare.second = null;
  ask(compare);
  compare.draw();
}

/** The visitor wants something else beside the picture.
 * @param {Compare} compare
 * @param {{ mode?: string; model?: string; example?: string; file?: string }} changes */
function change(compare, { mode, ...wish }) {
  if (mode) compare.mode = mode;
  const { value } = compare.chosenModel; // of earlier
  if (mode === "models") compare.wish = value ? { model: value } : {};
  else if (!mode) compare.wish = wish;
  compare.trouble = "";
  ask(compare);
  compare.draw();
}

/** A picture of the visitor's own.
 * @param {Compare} compare
 * @param {File} file */
async function send(compare, file) {
  compare.trouble = "";
  try {
    change(compare, { file: await uploadFile(file) });
  } catch {
    say(compare, compare.t((await serverAnswers()) ? "upload_failed" : "lost"));
  }
}

/** What to ask the server for now; null if nothing is chosen.
 * @param {Compare} compare
 * @returns {Compare["wish"] | null} */
function wanted({ mode, wish, first }) {
  if (mode === "models") return wish.model ? { model: wish.model } : null;
  if (wish.file) return { file: wish.file };
  const { examples, example } = first,
    next = examples[(examples.indexOf(example) + 1) % examples.length];
  // An example beside itself would say nothing: then it is the next one.
  const fits = wish.example !== example && examples.includes(wish.example);
  return { example: fits ? wish.example : next };
}

/** Ask for the second one, if the tab is open, and it is not here or on its way.
 * @param {Compare} compare */
function ask(compare) {
  const { first, trigger, language } = compare;
  if (!first || currentTab() !== "compare") return;
  const request = wanted(compare),
    key = JSON.stringify([first.id, request]);
  if (key === compare.asked) return;
  compare.asked = key;
  compare.run += 1;
  compare.second = null;
  compare.chosen = null;
  compare.waiting = Boolean(request);
  compare.status = "";
  if (!request) return compare.draw();
  if (request.example) compare.wish = request;
  document.dispatchEvent(new CustomEvent("vit-second")); // for the address
  const { run } = compare;
  submitLong(trigger, { ...request, id: first.id, run, language }, () => lose(compare, run));
  compare.draw();
}

/** What the server says: how far a model is, the second one, or why not.
 * @param {Compare} compare
 * @param {any} news */
async function receive(compare, news) {
  if (!news || news.run !== compare.run) return;
  if (news.says) compare.status = news.says[compare.language];
  if (news.error) fail(compare, news.error);
  if (news.result) {
    const of = compare.first?.id;
    try {
      const second = await openSecond(news.result);
      if (news.run !== compare.run) return;
      Object.assign(compare, { second: { ...second, of }, waiting: false, status: "" });
    } catch {
      const key = (await serverAnswers()) ? "failed" : "lost";
      if (news.run === compare.run) fail(compare, compare.t(key));
    }
  }
  compare.draw();
}

/** @param {Compare} compare @param {string} sentence */
function fail(compare, sentence) {
  compare.waiting = false;
  compare.status = "";
  compare.trouble = sentence;
  compare.asked = ""; // choosing the same again tries again
}

/** The server is gone: what was asked for does not come.
 * @param {Compare} compare @param {number} run */
function lose(compare, run) {
  if (!compare.waiting || run !== compare.run) return;
  fail(compare, compare.t("lost"));
  compare.draw();
}

// Showing

/** @param {Compare} compare */
function build(compare) {
  const { root, props, texts } = compare;
  compare.language = texts[props.language] ? props.language : "en";
  const { t } = compare;
  root.lang = compare.language;
  const { language } = compare;
  Object.assign(compare.chosenModel, { language, text: compare.chooser[language] });
  const ui = /** @type {Elements} */ ({ views: [], titles: [], whats: [], answers: [] });
  compare.ui = ui;
  ui.live = el("div", { class: "vx-live", "aria-live": "polite" });
  const second = buildSecond(compare);
  ui.controls = buildControls(compare);
  const cards = [0, 1, 2].map((side) => {
    const view = stage(compare, side);
    ui.titles[side] = el("h3");
    ui.whats[side] = el("p", { class: "cmp-what" });
    const parts = [el("header", {}, ui.titles[side], ui.whats[side]), view.box, view.legend];
    if (side < 2) {
      ui.answers[side] = el("ol", { class: "cmp-answer", "aria-label": t("answer") });
      parts.push(ui.answers[side]);
    } else {
      ui.correlation = el("span", { class: "cmp-correlation" });
      ui.about = el("p", { class: "cmp-muted" });
      parts.push(
        el("div", {}, el("p", {}, ui.correlation, " ", help(compare, "correlation")), ui.about),
      );
    }
    return el("section", { class: "cmp-side", "data-side": side }, ...parts);
  });
  ui.notes = el("p", { class: "cmp-notes", role: "status" });
  ui.agree = el("p", { class: "cmp-agree" });
  ui.rows = el("tbody");
  ui.labels = el(
    "section",
    { class: "cmp-labels", hidden: true },
    el("h3", {}, t("labels")),
    ui.agree,
    el(
      "table",
      {},
      el(
        "thead",
        {},
        el(
          "tr",
          {},
          el("th", { scope: "col" }, t("label")),
          el("td"),
          el("th", { scope: "col", class: "more" }, t("first")),
          el("th", { scope: "col", class: "less" }, t("second")),
        ),
      ),
      ui.rows,
    ),
  );
  ui.empty = el("p", { class: "cmp-empty" }, t("empty"));
  ui.body = el(
    "div",
    { class: "cmp-body" },
    second,
    ui.controls,
    ui.notes,
    el("div", { class: "cmp-sides" }, ...cards),
    ui.labels,
  );
  root.replaceChildren(ui.empty, ui.body, ui.live);
  compare.draw();
}

/** Draw once a frame, and only what is looked at. `anew`: the maps may be others.
 * @param {Compare} compare
 * @param {boolean} anew */
function schedule(compare, anew) {
  compare.stale ||= anew;
  compare.frame ||= requestAnimationFrame(() => {
    compare.frame = 0;
    if (currentTab() !== "compare" || !compare.root.isConnected) return;
    if (compare.stale) show(compare);
    compare.stale = false;
    drawViews(compare);
  });
}

/** Everything but the drawing.
 * @param {Compare} compare */
function show(compare) {
  const { root, ui, first, second, t } = compare,
    here = first && explorerId() === first.id;
  ui.empty.hidden = Boolean(first);
  ui.body.hidden = !first;
  compare.views = here && second?.of === first.id ? viewsOf(compare) : null;
  const { views } = compare;
  root.dataset.state = !first
    ? "empty"
    : compare.trouble
      ? "failed"
      : compare.waiting
        ? "waiting"
        : views?.difference
          ? "ready"
          : second
            ? "loading"
            : "choose";
  root.dataset.second = second?.id ?? "";
  showSecond(compare);
  syncControls(compare);
  for (const side of [0, 1]) showAnswer(compare, side);
  showLabels(compare);
  showNames(compare);
  showLegends(compare);
  say(compare, compare.trouble || compare.status || (compare.waiting ? t("waiting") : ""));
}

/** @param {Compare} compare @param {string} text */
function say({ ui, root }, text) {
  ui.status.textContent = text;
  ui.status.classList.toggle("failed", root.dataset.state === "failed");
}

/** Titles, what each map is, notes, and the rank correlation.
 * @param {Compare} compare */
function showNames(compare) {
  const { ui, views, second, explorer, t, mode, first } = compare;
  const models = [explorer.data?.model ?? "", second?.data.model ?? ""];
  const twoModels = mode === "models";
  ui.titles[0].textContent = twoModels
    ? models[0]
    : pictureName(first?.example, t("first_picture"));
  ui.titles[1].textContent = twoModels
    ? models[1] || t("second")
    : pictureName(compare.wish.example, t("second_picture"));
  ui.titles[2].textContent = t("difference");
  for (const side of [0, 1]) ui.whats[side].textContent = views ? mapName(compare, side) : "\u00a0";
  ui.whats[2].textContent = views?.difference
    ? t("difference_grid", { rows: views.grid[0], cols: views.grid[1] })
    : "\u00a0";
  ui.views[1].note.textContent = second ? "" : t(compare.waiting ? "waiting" : "choose");
  ui.views[1].note.hidden = Boolean(second);
  ui.views[2].note.hidden = true;
  const number = views?.difference ? views.correlation.toFixed(2).replace("-", "\u2212") : "\u2026";
  ui.correlation.replaceChildren(t("correlation"), " ", el("strong", {}, number));
  ui.correlation.dataset.value = String(views?.correlation ?? "");
  ui.correlation.title = t("correlation_hint");
  const names = { first: ui.titles[0].textContent, second: ui.titles[1].textContent };
  const dim = views && !views.seen.every(Boolean) ? ` ${t("dim")}` : "";
  ui.about.textContent = views ? t("difference_about", names) + dim : "\u00a0";
  const notes = (views?.notes ?? []).map((note) => t(note, names));
  if (views && twoModels && isOne(explorer.state.head)) notes.push(t("heads_note"));
  ui.notes.textContent = notes.join(" ");
}

/** @param {string | undefined} example @param {string} other */
function pictureName(example, other) {
  return exampleImages().find((image) => exampleOf(image) === example)?.alt ?? other;
}

/** For those who hear the page: the patch, and both values.
 * @param {Compare} compare */
function announce(compare) {
  const { views, hover, ui, t } = compare;
  const said = [0, 1].map((side) => {
    const patch = patchOn(compare, side, hover),
      { values, state, place } = views.sides[side];
    if (!patch || !values) return "";
    const value = amount(compare, state, values[patch[0] * place.grid[1] + patch[1]]);
    return `${ui.titles[side].textContent}: ${t("tip_patch", { row: patch[0] + 1, col: patch[1] + 1 })}, ${value}`;
  });
  ui.live.textContent = said.filter(Boolean).join(". ");
}
