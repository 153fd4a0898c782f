// @ts-check
// One question a step, to guess before the answer is shown.

import { el } from "../explorer/elements.js";

/**
 * @param {Walk} walk
 * @param {WalkStep} step */
export function guessBox(walk, step) {
  const { t } = walk;
  const guessed = (/** @type {string} */ letter) => {
    walk.guesses.set(step.name, letter);
    walk.refresh();
  };
  const options = ["a", "b", "c"]
    .filter((letter) => walk.texts.en[`guess_${step.name}_${letter}`])
    .map((letter) =>
      el(
        "button",
        {
          type: "button",
          "data-guess": letter,
          onclick: () => guessed(letter),
        },
        t(`guess_${step.name}_${letter}`),
      ),
    );
  const skip = el(
    "button",
    { type: "button", class: "ins-skip", "data-guess": "skip", onclick: () => guessed("skip") },
    t("just_show"),
  );
  return el(
    "div",
    { class: "ins-guess", role: "group", "aria-label": t("guess") },
    el("p", { class: "ins-question" }, el("b", {}, t("guess")), " ", t(`guess_${step.name}`)),
    el("div", { class: "ins-options" }, ...options, skip),
    el("p", { class: "ins-answer", role: "status" }),
  );
}

/** After a guess: which one is right, and why, in this picture's numbers.
 * @param {Walk} walk
 * @param {WalkStep} step
 * @param {PartAnswer[]} answers */
export function showGuess(walk, step, answers) {
  const { t, ui } = walk,
    chosen = walk.guesses.get(step.name),
    says = ui.guess.querySelector(".ins-answer");
  ui.guess.dataset.guessed = chosen ?? "";
  if (!chosen) return;
  const { right, values, text = `guess_${step.name}_answer` } = step.guess(walk, answers);
  for (const option of ui.guess.querySelectorAll("[data-guess]")) {
    const letter = option.dataset.guess;
    option.classList.toggle("right", letter === right);
    option.classList.toggle("wrong", letter === chosen && letter !== right);
    option.setAttribute("aria-pressed", String(letter === chosen));
  }
  const verdict = chosen === "skip" ? "" : `${t(chosen === right ? "right" : "wrong")} `,
    words = verdict + t(text, values);
  ui.guess.querySelector(".ins-skip").hidden = true;
  if (says.textContent !== words) says.textContent = words;
}

/** What gives the answer away stays hidden until somebody has guessed.
 * @param {Walk} walk
 * @param {string} name of the step
 * @param {...HTMLElement} nodes */
export function secret(walk, name, ...nodes) {
  const hint = el("p", { class: "ins-secret" }, walk.t("secret"));
  const show = () => {
    const open = walk.guesses.has(name);
    hint.hidden = open;
    for (const node of nodes) node.hidden = !open;
  };
  show();
  return { nodes: [hint, ...nodes], show };
}
