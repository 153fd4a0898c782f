// @ts-check
// The tab "Learn": a model at moments of its training. The slider chooses the moment; all numbers are
// here by then, so it asks nobody.

import { fromBase64 } from "../explorer/blob.js";
import { el } from "../explorer/elements.js";
import { fill } from "../explorer/words.js";
import { question } from "../glossary.js";
import { answerOf, onTheme } from "../gradio.js";
import { theExplorer, whenExplorerIsThere } from "../page/explorer.js";
import { drawingPad } from "../page/pad.js";
import { currentTab } from "../page/tabs.js";
import { buildCode } from "./code.js";
import { buildCurves, showCurves } from "./curves.js";
import { buildAnswer, showAnswer } from "./digit.js";
import { buildFigures, showConfusion, showHeads, showPositions } from "./figures.js";

const PAUSE = 800; // ms that play stays at a moment

/** @param {HTMLElement} element
 * @param {GradioComponent} gradio
 * @param {LearnSetup} setup */
export function mount(element, { props, watch, server }, setup) {
  /** @type {Learn} */
  const learn = {
    root: element.querySelector(".learn"),
    ...setup,
    server,
    ui: {},
    language: "en",
    tables: {},
    colours: "",
    map: setup.maps[0],
    history: null,
    positions: null,
    example: setup.examples.en[0][0],
    drawing: null,
    digit: null,
    turn: 0,
    at: 0,
    playing: null,
    t: (key, values = {}) => fill(learn.texts[learn.language][key], values),
    number: (x, digits = 0) =>
      x.toLocaleString(learn.language, {
        minimumFractionDigits: digits,
        maximumFractionDigits: digits,
      }),
    go: (at) => go(learn, at),
  };
  const speak = () => {
    learn.language = learn.texts[props.language] ? props.language : "en";
    build(learn);
  };
  watch("language", speak);
  speak();
  document.addEventListener("vit-tab", () => arrive(learn));
  document.addEventListener("vit-link", (event) =>
    addPlace(learn, /** @type {CustomEvent} */ (event)),
  );
  addEventListener("hashchange", () => followLink(learn));
  onTheme(() => showHeads(learn));
  followLink(learn);
  whenExplorerIsThere((explorer) => {
    const look = () => {
      Object.assign(learn, { tables: explorer.tables, colours: explorer.state.colours });
      showHeads(learn);
      showPositions(learn);
    };
    document.addEventListener("vitx-state", look);
    look();
    arrive(learn);
  });
}

/** The tab is shown: the first time, ask for everything; otherwise stop what nobody sees.
 * @param {Learn} learn */
async function arrive(learn) {
  const shown = currentTab() === "learn";
  if (!shown) pause(learn);
  else markPlace();
  if (!theExplorer()) return; // which brings the words behind each "?"
  if (!shown || learn.history || learn.root.dataset.state === "waiting") return;
  learn.root.dataset.state = "waiting";
  try {
    const { language, server, t } = learn,
      history = await answerOf(server.training_history, { language }, t("lost"));
    Object.assign(learn, { history, positions: numbers(history.positions) });
    learn.at = Math.min(learn.at, history.moments.length - 1);
    learn.root.dataset.state = "ready";
    build(learn);
    markPlace();
    askAboutDigit(learn);
  } catch (error) {
    learn.root.dataset.state = "failed";
    learn.ui.note.textContent = error.message;
  }
}

/** @param {string} packed
 * @returns {Vector} */
const numbers = (packed) => new Float32Array(fromBase64(packed).buffer);

/** The digit on the pad at all moments, in one request; of two drawings the later one counts.
 * @param {Learn} learn */
async function askAboutDigit(learn) {
  const turn = ++learn.turn,
    { example, drawing, language } = learn;
  learn.root.setAttribute("aria-busy", "true");
  try {
    const request = drawing ? { drawing, language } : { example, language };
    const answer = await answerOf(learn.server.digit_over_time, request, learn.t("lost"));
    if (turn !== learn.turn) return;
    learn.digit = {
      ...answer,
      maps: Object.fromEntries(learn.maps.map((name) => [name, numbers(answer.maps[name])])),
      pixels: fromBase64(answer.pixels),
    };
    learn.ui.note.textContent = "";
  } catch (error) {
    if (turn !== learn.turn) return;
    learn.digit = null;
    learn.ui.note.textContent = error.message;
  }
  learn.root.removeAttribute("aria-busy");
  learn.root.dataset.turn = String(turn);
  show(learn);
}

/** Another digit: an example, a drawing, or neither (an empty pad).
 * @param {Learn} learn
 * @param {{ example?: string | null; drawing?: string | null }} given */
function chooseDigit(learn, { example = null, drawing = null }) {
  Object.assign(learn, { example, drawing });
  for (const button of learn.ui.examples.children)
    button.setAttribute("aria-pressed", String(button.dataset.digit === example));
  markPlace();
  if (example || drawing) return askAboutDigit(learn);
  learn.turn++;
  learn.digit = null;
  learn.root.removeAttribute("aria-busy");
  show(learn);
}

// ---- Time

/** @param {Learn} learn
 * @param {number} at */
function go(learn, at) {
  learn.at = Math.max(0, Math.min(at, learn.history.moments.length - 1));
  show(learn);
}

/** @param {Learn} learn */
function togglePlay(learn) {
  if (learn.playing) return pause(learn);
  const last = learn.history.moments.length - 1;
  if (learn.at === last) go(learn, 0);
  learn.playing = setInterval(() => {
    go(learn, learn.at + 1);
    if (learn.at === last) pause(learn);
  }, PAUSE);
  showPlaying(learn);
}

/** @param {Learn} learn */
function pause(learn) {
  if (!learn.playing) return;
  clearInterval(learn.playing);
  learn.playing = null;
  showPlaying(learn);
  markPlace();
}

/** @param {Learn} learn */
function showPlaying({ ui, playing, root, t }) {
  ui.play.textContent = t(playing ? "pause" : "play");
  root.dataset.playing = String(Boolean(playing));
}

// ---- The address: #learn/MOMENT/EXAMPLE

/** @param {Learn} learn */
function followLink(learn) {
  const [tab, moment, example] = location.hash.slice(1).split("/");
  if (tab !== "learn") return;
  if (+moment >= 1) learn.at = Math.floor(+moment) - 1;
  const known = learn.examples.en.some(([name]) => name === example);
  if (!learn.history) learn.example = known ? example : learn.example;
  else {
    go(learn, learn.at);
    if (known && example !== learn.example) showExample(learn, example);
  }
}

/** What is shown here, for the address. What a link asks for may not be there yet.
 * @param {Learn} learn
 * @param {CustomEvent} event */
function addPlace({ at, example, history: known }, { detail }) {
  if (known && currentTab() === "learn")
    detail.hash = `learn/${at + 1}${example ? `/${example}` : ""}`;
}

/** page/link.js writes it. */
const markPlace = () => document.dispatchEvent(new CustomEvent("vit-place"));

// ---- What is on the screen

/** @param {Learn} learn */
function build(learn) {
  const { root, ui, history, t } = learn;
  ui.note = el("p", { class: "learn-note", role: "status" }, history ? "" : t("waiting"));
  if (!history) {
    root.replaceChildren(ui.note);
    return;
  }
  const count = history.moments.length;
  root.replaceChildren(
    el("p", { class: "learn-lead" }, t("lead", { count })),
    el("div", { class: "learn-top" }, buildPad(learn), buildAnswer(learn), buildCurves(learn)),
    buildTime(learn),
    ui.note,
    buildFigures(learn),
    buildCode(learn),
  );
  show(learn);
}

/** @param {Learn} learn */
function buildPad(learn) {
  const { ui, t, language } = learn;
  const canvas = el("canvas", {
    class: "learn-pad",
    width: 280,
    height: 280,
    role: "img",
    "aria-label": t("pad_label"),
  });
  ui.pad = drawingPad(canvas, (drawing) => chooseDigit(learn, { drawing }));
  ui.examples = el("div", { class: "strip", role: "group", "aria-label": t("examples") });
  for (const [name, label, src] of learn.examples[language]) {
    const button = el(
      "button",
      {
        type: "button",
        title: label,
        "data-digit": name,
        "aria-pressed": String(name === learn.example),
        onclick: () => showExample(learn, name),
      },
      el("img", { src, alt: label, width: 48, height: 48 }),
    );
    ui.examples.append(button);
  }
  const erase = () => {
    ui.pad.erase();
    chooseDigit(learn, {});
  };
  restorePad(learn);
  return el(
    "section",
    { class: "learn-digit", "aria-label": t("pad_title") },
    el(
      "div",
      { class: "learn-row" },
      el("h3", {}, t("pad_title")),
      el("button", { type: "button", class: "learn-erase", onclick: erase }, t("erase")),
    ),
    canvas,
    ui.examples,
  );
}

/** @param {Learn} learn
 * @param {string} name */
function showExample(learn, name) {
  chooseDigit(learn, { example: name });
  restorePad(learn);
}

/** What was on the pad, on the pad.
 * @param {Learn} learn */
async function restorePad({ ui, examples, example, drawing }) {
  const src = drawing ?? examples.en.find(([name]) => name === example)?.[2];
  if (!src) return;
  const picture = Object.assign(new Image(), { src });
  await picture.decode();
  ui.pad.show(picture);
}

/** @param {Learn} learn */
function buildTime(learn) {
  const { ui, t, history } = learn;
  ui.play = el(
    "button",
    { type: "button", class: "learn-play", onclick: () => togglePlay(learn) },
    t(learn.playing ? "pause" : "play"),
  );
  ui.slider = el("input", {
    type: "range",
    min: 0,
    max: history.moments.length - 1,
    step: 1,
    "aria-label": t("slider"),
    oninput: () => {
      pause(learn);
      go(learn, +ui.slider.value);
    },
    onchange: markPlace,
  });
  ui.moment = el("strong", {});
  ui.seen = el("span", {});
  const explained = question(learn.language, ["epoch"]);
  return el(
    "div",
    { class: "learn-time" },
    ui.play,
    ui.slider,
    el("p", { class: "learn-moment" }, ui.moment, ui.seen, explained),
  );
}

/** Everything at the moment that is chosen.
 * @param {Learn} learn */
function show(learn) {
  const { root, ui, t, number, history, at } = learn;
  if (!history) return;
  const { step, epoch, accuracy } = history.moments[at];
  ui.slider.value = String(at);
  ui.moment.textContent = step
    ? t("moment", { step: number(step), steps: number(history.steps) })
    : t("before");
  ui.seen.textContent = t("seen", {
    pictures: number(step * history.batch_size),
    epoch: number(epoch, 1),
    accuracy: number(100 * accuracy, 1),
  });
  ui.slider.setAttribute("aria-valuetext", `${ui.moment.textContent}, ${ui.seen.textContent}`);
  showAnswer(learn);
  showCurves(learn);
  showHeads(learn);
  showPositions(learn);
  showConfusion(learn);
  root.dataset.at = String(at);
}
