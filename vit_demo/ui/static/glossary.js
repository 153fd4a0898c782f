// @ts-check
// A "?" beside a word that not everybody knows: one sentence, and a small drawing where it helps. Any tab
// may use `question`; the explorer brings the words.

import { DRAWINGS } from "./drawings.js";

/** Of each language: the question on the button, and [name, sentence] of every word.
 * @type {Glossary} */
const GLOSSARY = {};

/** Python hands the words over once; from then on every "?" on the page answers.
 * @param {Glossary} glossary */
export function useGlossary(glossary) {
  if (Object.keys(GLOSSARY).length) return;
  Object.assign(GLOSSARY, glossary);
  document.addEventListener("click", (event) => {
    const target = /** @type {Element} */ (event.target),
      button = /** @type {HTMLElement | null} */ (target.closest(".gloss"));
    if (!button) return;
    if (button.getAttribute("aria-expanded") === "true") close();
    else open(button);
  });
  document.addEventListener("pointerdown", (event) => {
    if (!(/** @type {Element} */ (event.target).closest(".gloss, .gloss-card"))) close();
  });
  document.addEventListener("focusin", (event) => {
    if (event.target !== opened()) close();
  });
  document.addEventListener(
    "keydown",
    (event) => {
      if (event.key !== "Escape" || !opened()) return;
      close();
      event.stopPropagation(); // one Escape, one step back
    },
    true,
  );
}

/** The button that explains some words.
 * @param {string} language
 * @param {string[]} words */
export function question(language, words) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "gloss";
  button.textContent = "?";
  button.setAttribute("aria-expanded", "false");
  return askFor(button, language, words);
}

/** Let a button explain other words.
 * @param {HTMLButtonElement} button
 * @param {string} language
 * @param {string[]} words */
export function askFor(button, language, words) {
  const { question: text, words: known } = GLOSSARY[language],
    names = words.map((word) => known[word][0]).join(", ");
  button.dataset.words = words.join(" ");
  button.setAttribute("aria-label", text.replace("{words}", names));
  return button;
}

const opened = () =>
  /** @type {HTMLElement | null} */ (document.querySelector(".gloss[aria-expanded=true]"));

/** One card for all: it lies above everything else, and is read aloud when it is filled. */
function card() {
  const found = document.getElementById("gloss-card");
  if (found) return found;
  const made = document.createElement("div");
  made.id = "gloss-card";
  made.className = "gloss-card";
  made.popover = "manual";
  made.setAttribute("role", "status");
  document.body.append(made);
  return made;
}

function close() {
  opened()?.setAttribute("aria-expanded", "false");
  const shown = document.getElementById("gloss-card");
  if (shown?.matches(":popover-open")) shown.hidePopover();
}

/** @param {HTMLElement} button */
function open(button) {
  close();
  const language = /** @type {HTMLElement} */ (button.closest("[lang]"))?.lang,
    { words } = GLOSSARY[language] ?? GLOSSARY.en,
    shown = card();
  button.setAttribute("aria-expanded", "true");
  shown.lang = language;
  shown.showPopover();
  shown.replaceChildren(...button.dataset.words.split(" ").map((word) => entry(word, words[word])));
  place(shown, button.getBoundingClientRect());
}

/**
 * @param {string} word
 * @param {[name: string, sentence: string]} meaning */
function entry(word, [name, sentence]) {
  const made = document.createElement("div"),
    text = document.createElement("p"),
    title = document.createElement("b");
  title.textContent = name;
  text.append(title, " ", sentence);
  if (DRAWINGS[word]) made.innerHTML = DRAWINGS[word]; // constants of this project
  made.append(text);
  return made;
}

/** Below the button, or above it where there is no room; always inside the window.
 * @param {HTMLElement} shown
 * @param {DOMRect} button */
function place(shown, button) {
  const { width, height } = shown.getBoundingClientRect(),
    room = document.documentElement.clientWidth,
    middle = button.left + button.width / 2;
  const left = Math.max(8, Math.min(room - width - 8, middle - width / 2)),
    below = button.bottom + 8,
    above = button.top - height - 8;
  const top = below + height > innerHeight && above > 0 ? above : below;
  shown.style.left = `${left + scrollX}px`;
  shown.style.top = `${top + scrollY}px`;
}
