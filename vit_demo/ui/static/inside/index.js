// @ts-check
// The tab Inside: ten steps from pixels to the answer, one at a time, with the visitor's own numbers.
// What is asked of the server: ask.js. What is chosen: host.js. The steps themselves: STEPS.

import { el } from "../explorer/elements.js";
import { fill } from "../explorer/words.js";
import { question } from "../glossary.js";
import { componentValue, onTheme } from "../gradio.js";
import { whenExplorerIsThere } from "../page/explorer.js";
import { currentTab } from "../page/tabs.js";
import { buildAnatomy } from "./anatomy.js";
import { answer, layers } from "./answer.js";
import { part, remembered } from "./ask.js";
import { heads, qkv, softmaxStep } from "./attention.js";
import { choiceBar } from "./choice.js";
import { prefixCount } from "./drawing.js";
import { codeFold, fold } from "./folds.js";
import { guessBox, showGuess } from "./guess.js";
import { pageHost } from "./host.js";
import { formulas } from "./maths.js";
import { patches, pixels } from "./pixels.js";
import { mlp } from "./stream.js";
import { embedding, norm } from "./tokens.js";

/** @type {WalkStep[]} */
const STEPS = [pixels, patches, embedding, norm, qkv, softmaxStep, heads, mlp, layers, answer];
const GROUPS = /** @type {[name: string, from: number, to: number][]} */ ([
  ["group_in", 1, 3],
  ["group_layer", 4, 8],
  ["group_out", 9, 10],
]);

/** The words behind the "?" of a step's title. */
const WORDS = /** @type {Record<string, string[]>} */ ({
  patches: ["patch", "embedding"],
  embedding: ["class_token"],
  norm: ["layer_norm"],
  qkv: ["qkv"],
  softmax: ["softmax"],
  heads: ["head"],
  mlp: ["residual_stream", "mlp"],
  layers: ["layer"],
  answer: ["logit", "softmax"],
});

/**
 * @param {HTMLElement} element
 * @param {GradioComponent} gradio
 * @param {WalkSetup} setup */
export function mount(element, { props, watch, server }, setup) {
  const root = /** @type {HTMLElement} */ (element.querySelector(".ins"));
  if (!document.getElementById("ins-style"))
    document.head.append(el("style", { id: "ins-style" }, setup.css));
  whenExplorerIsThere((explorer) => {
    const walk = createWalk(root, pageHost(explorer), server.inside_part, setup);
    const speak = () => setLanguage(walk, props.language);
    speak();
    watch("value", () => changePicture(walk, componentValue(props)));
    watch("language", speak);
    document.addEventListener("vit-tab", () => opened(walk));
    document.addEventListener("vit-link", (event) => {
      if (shown()) /** @type {CustomEvent} */ (event).detail.hash = placeOf(walk);
    });
    addEventListener("hashchange", () => followAddress(walk));
    document.addEventListener("keydown", (event) => onKey(walk, event));
    walk.host.onChange(() => followChoice(walk));
    onTheme(() => draw(walk));
    new ResizeObserver(() => draw(walk)).observe(root);
    followAddress(walk);
    changePicture(walk, componentValue(props));
    opened(walk); // the page may have begun with this tab
  });
}

/**
 * @param {HTMLElement} root
 * @param {WalkHost} host
 * @param {(request: object) => Promise<any>} ask
 * @param {WalkSetup} setup
 * @returns {Walk} */
function createWalk(root, host, ask, { texts, sources }) {
  /** @type {Walk} */
  const walk = {
    root,
    host,
    ask,
    texts,
    sources,
    language: "en",
    ui: {},
    id: null,
    facts: null,
    choice: null,
    step: 1,
    page: "walk",
    ofPicture: new Map(),
    ofModel: new Map(),
    guesses: new Map(),
    folds: new Set(),
    local: {},
    turn: 0,
    frame: 0,
    built: null,
    answers: null,
    t: (key, values = {}) => fill(walk.texts[walk.language][key] ?? key, values),
    choose: (changes) => host.choose(changes),
    say: (text) => {
      walk.ui.live.textContent = text;
    },
    refresh: () => refresh(walk),
    redraw: () => {
      cancelAnimationFrame(walk.frame);
      walk.frame = requestAnimationFrame(() => draw(walk));
    },
    go: (step) => go(walk, step),
  };
  return walk;
}

const shown = () => currentTab() === "inside";

/** Another picture, or none; what was known of the old one is forgotten.
 * @param {Walk} walk
 * @param {{ id: string; facts: Facts } | null} value */
function changePicture(walk, value) {
  const id = value?.id ?? null;
  if (id === walk.id) return;
  if (
    value?.facts?.model !== walk.facts?.model ||
    String(value?.facts?.grid) !== String(walk.facts?.grid)
  )
    walk.ofModel = new Map();
  Object.assign(walk, { id, facts: value?.facts ?? null, ofPicture: new Map(), local: {} });
  walk.turn++;
  walk.built = null;
  show(walk);
}

/** Patch, layer, head or label were chosen, here or in another tab; or the explorer has its picture now.
 * @param {Walk} walk */
function followChoice(walk) {
  const before = JSON.stringify(walk.choice);
  if (!ready(walk)) return;
  walk.choice = walk.host.choice;
  if (!walk.built) return show(walk);
  if (JSON.stringify(walk.choice) !== before) show(walk);
  else walk.redraw(); // its colours may be others
}

/** @param {Walk} walk */
const ready = (walk) => Boolean(walk.id && walk.host.id === walk.id);

/** The tab was opened.
 * @param {Walk} walk */
function opened(walk) {
  if (!shown()) return;
  markPlace();
  show(walk);
}

/** Where one is in the walk: page/link.js writes it into the address.
 * @param {Walk} walk */
const placeOf = (walk) => `inside/${walk.page === "walk" ? walk.step : walk.page}`;

const markPlace = () => document.dispatchEvent(new CustomEvent("vit-place"));

/** `#inside/5` is the fifth step, `#inside/anatomy` the model alone.
 * @param {Walk} walk */
function followAddress(walk) {
  const [, where] = location.hash.match(/^#inside\/(\w+)$/) ?? [];
  if (!where) return;
  if (where === "anatomy") walk.page = "anatomy";
  else if (+where >= 1 && +where <= STEPS.length)
    Object.assign(walk, { page: "walk", step: Math.floor(+where) });
  walk.built = null;
  show(walk);
}

/** To another step, or to the anatomy.
 * @param {Walk} walk
 * @param {number | "anatomy"} where */
function go(walk, where) {
  if (where === "anatomy") walk.page = "anatomy";
  else {
    if (where < 1 || where > STEPS.length) return;
    Object.assign(walk, { page: "walk", step: where });
  }
  walk.built = null;
  markPlace();
  show(walk);
  walk.ui.title?.focus({ preventScroll: true });
  if (walk.root.getBoundingClientRect().top < 0) walk.root.scrollIntoView({ block: "start" });
}

/** Left and right walk, unless somebody uses them for something else.
 * @param {Walk} walk
 * @param {KeyboardEvent} event */
function onKey(walk, event) {
  const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (!by || !shown() || walk.page !== "walk" || !walk.built) return;
  if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
  const at = /** @type {Element} */ (event.target);
  const elsewhere = at !== document.body && !walk.root.contains(at);
  if (elsewhere || at.closest("input, select, textarea, [role=application], [role=tab]")) return;
  event.preventDefault();
  go(walk, walk.step + by);
}

/** @param {Walk} walk
 * @param {string} language */
function setLanguage(walk, language) {
  walk.language = walk.texts[language] ? language : "en";
  walk.built = null;
  show(walk);
}

// ---- What is on the screen

/** @param {Walk} walk */
function show(walk) {
  if (!shown()) return;
  if (!ready(walk)) return showEmpty(walk);
  walk.choice = walk.host.choice;
  if (!walk.built) build(walk);
  walk.ui.bar.show();
  refresh(walk);
}

/** @param {Walk} walk */
function showEmpty(walk) {
  walk.built = null;
  walk.root.dataset.state = walk.id ? "waiting" : "empty";
  walk.root.replaceChildren(el("p", { class: "ins-empty" }, walk.t(walk.id ? "waiting" : "empty")));
}

/** @param {Walk} walk */
function build(walk) {
  const { root, ui, t, page } = walk;
  ui.live = el("p", { class: "ins-live", role: "status" });
  ui.bar = choiceBar(walk);
  const card = page === "anatomy" ? anatomyCard(walk) : stepCard(walk);
  const pages = el(
    "div",
    { class: "ins-pages", role: "group", "aria-label": t("pages") },
    ...[
      ["walk", () => go(walk, walk.step)],
      ["anatomy", () => go(walk, "anatomy")],
    ].map(([name, onclick]) =>
      el(
        "button",
        { type: "button", "data-page": name, "aria-pressed": String(name === page), onclick },
        t(`page_${name}`),
      ),
    ),
  );
  root.replaceChildren(
    el("div", { class: "ins-top" }, el("p", { class: "ins-lead" }, t(`lead_${page}`)), pages),
    ...(page === "walk" ? [rail(walk)] : []),
    card,
    ui.live,
  );
}

/** The whole way at a glance: ten steps in three groups, one of which is repeated in every layer.
 * @param {Walk} walk */
function rail(walk) {
  const { t, facts } = walk;
  const groups = GROUPS.map(([name, from, to]) =>
    el(
      "li",
      { class: `ins-group ${name}`, style: `--steps: ${to - from + 1}` },
      el("span", { class: "ins-group-name" }, t(name, { layers: facts.layers })),
      el(
        "ol",
        { start: from },
        ...STEPS.slice(from - 1, to).map((step, k) =>
          el(
            "li",
            {},
            el(
              "button",
              {
                type: "button",
                "data-step": from + k,
                "aria-current": from + k === walk.step ? "step" : null,
                onclick: () => go(walk, from + k),
              },
              el("b", {}, String(from + k)),
              el("span", {}, t(`name_${step.name}`)),
            ),
          ),
        ),
      ),
    ),
  );
  return el("nav", { class: "ins-rail", "aria-label": t("rail") }, el("ol", {}, ...groups));
}

/** One step: a sentence, the shapes, a live picture, a question, and three folds.
 * @param {Walk} walk */
function stepCard(walk) {
  const { ui, t, facts } = walk,
    step = STEPS[walk.step - 1],
    missing = step.needsLabels && !facts.classes,
    words = wordsOf(walk, step);
  ui.title = el(
    "h3",
    { class: "ins-title", tabindex: -1 },
    el("b", {}, String(walk.step)),
    t(`title_${step.name}`),
    words ? question(walk.language, words) : "",
  );
  ui.stage = el("div", { class: "ins-stage" });
  ui.trouble = el("p", { class: "ins-trouble", role: "alert", hidden: true });
  ui.guess = missing ? null : guessBox(walk, step);
  walk.built = missing
    ? {
        node: el("p", { class: "ins-empty" }, t("no_labels")),
        draw() {},
        needs: () => [],
        uses: [],
      }
    : { ...step, ...step.build(walk), needs: () => step.needs(walk) };
  ui.stage.append(walk.built.node);
  const [before, after] = step.shapes(facts, t);
  const values = names(walk);
  const folds = el(
    "div",
    { class: "ins-folds" },
    fold(walk, "idea", el("p", {}, t(`idea_${step.name}`, values))),
    fold(
      walk,
      "maths",
      ...formulas[step.name]().map((line) => el("div", { class: "ins-formula" }, line)),
      el("p", {}, t(`maths_${step.name}`, values)),
    ),
    codeFold(walk, walk.sources[walk.step]),
  );
  const button = (/** @type {number} */ by, /** @type {string} */ key) =>
    el(
      "button",
      {
        type: "button",
        class: `ins-go ${by > 0 ? "next" : "back"}`,
        disabled: walk.step + by < 1 || walk.step + by > STEPS.length,
        onclick: () => go(walk, walk.step + by),
      },
      t(key),
    );
  return el(
    "section",
    { class: `ins-card ins-step-${step.name}`, "aria-label": t(`title_${step.name}`) },
    ui.title,
    el("p", { class: "ins-sentence" }, t(sentenceOf(walk, step), values)),
    el(
      "p",
      { class: "ins-shapes" },
      el("span", { class: "ins-muted" }, t("shape")),
      el("code", { class: "before" }, before),
      el("span", { "aria-label": t("becomes") }, "\u2192"),
      el("code", { class: "after" }, after),
    ),
    missing ? "" : ui.bar.node,
    ui.trouble,
    ui.stage,
    ui.guess ?? "",
    folds,
    el(
      "div",
      { class: "ins-foot" },
      button(-1, "back"),
      el("span", { class: "ins-muted" }, t("keys")),
      button(1, "next"),
    ),
  );
}

/** Where there are no tokens before the patches, the third step says so.
 * @param {Walk} walk
 * @param {WalkStep} step */
const sentenceOf = ({ facts }, { name }) =>
  `say_${name}${name === "embedding" && !prefixCount(facts) ? "_none" : ""}`;

/** Nor is a class token explained where there is none.
 * @param {Walk} walk
 * @param {WalkStep} step */
const wordsOf = ({ facts }, { name }) =>
  name === "embedding" && !prefixCount(facts) ? ["average"] : WORDS[name];

/** @param {Walk} walk */
function anatomyCard(walk) {
  const { ui, t } = walk;
  ui.title = el("h3", { class: "ins-title", tabindex: -1 }, t("title_anatomy"));
  ui.trouble = el("p", { class: "ins-trouble", role: "alert", hidden: true });
  walk.built = buildAnatomy(walk);
  return el(
    "section",
    { class: "ins-card ins-anatomy", "aria-label": t("title_anatomy") },
    ui.title,
    ui.trouble,
    walk.built.node,
  );
}

/** The model's numbers, for the texts.
 * @param {Walk} walk */
function names({ facts }) {
  const { size, channels, patch, grid, tokens, width, layers, heads, units, classes } = facts;
  return {
    H: size[0],
    W: size[1],
    C: channels,
    p: patch[0],
    q: patch[1],
    rows: grid[0],
    cols: grid[1],
    n: grid[0] * grid[1],
    N: tokens,
    P: tokens - grid[0] * grid[1],
    D: width,
    d: width / heads,
    h: heads,
    L: layers,
    units,
    classes,
    pixels: channels * patch[0] * patch[1],
  };
}

/** Fetch what the step needs, then draw it. What is here already is drawn at once.
 * @param {Walk} walk */
async function refresh(walk) {
  const { root, ui, built } = walk,
    mine = ++walk.turn;
  const wishes = built.needs();
  const here = wishes.map((wish) => remembered(walk, wish));
  ui.trouble.hidden = true;
  if (here.every(Boolean)) return arrived(here);
  root.dataset.state = "busy";
  try {
    const found = await Promise.all(wishes.map((wish) => part(walk, wish)));
    if (mine === walk.turn) arrived(found);
  } catch (error) {
    if (mine !== walk.turn) return;
    root.dataset.state = "failed";
    ui.trouble.textContent = error.message;
    ui.trouble.hidden = false;
  }
  /** @param {PartAnswer[]} found */
  function arrived(found) {
    walk.answers = found;
    root.dataset.state = "ready";
    draw(walk);
    root.dataset.drawn = String(+(root.dataset.drawn ?? 0) + 1);
  }
}

/** @param {Walk} walk */
function draw(walk) {
  if (!shown() || !walk.built || !walk.answers || walk.root.dataset.state !== "ready") return;
  walk.built.draw(walk.answers);
  const step = STEPS[walk.step - 1];
  if (walk.page === "walk" && walk.ui.guess) showGuess(walk, step, walk.answers);
}
