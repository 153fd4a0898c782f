// @ts-check
// What went wrong, in one place: a notice over the page, which moves nothing. It stays until it is over
// (the next picture, a server that answers again) or until it is closed.

import { mirrorToasts } from "../gradio.js";
import { find } from "./dom.js";

/** Say something; "" takes it away.
 * @param {string} text */
export function say(text) {
  document.dispatchEvent(new CustomEvent("vit-say", { detail: text }));
}

/**
 * @param {HTMLElement} element
 * @param {GradioComponent} gradio */
export function mount(element, { props, watch }) {
  const box = find(element, ".notice"),
    words = find(element, ".notice p"),
    close = find(element, ".notice button");
  let lost = false; // the server cannot be reached: this stays until it can

  /** @param {string} text */
  const show = (text) => {
    words.textContent = text;
    box.hidden = !text;
  };
  document.addEventListener("vit-say", (event) => {
    if (!lost) show(/** @type {CustomEvent<string>} */ (event).detail);
  });
  document.addEventListener("vit-look", (event) => {
    const { state, busy } = /** @type {CustomEvent} */ (event).detail;
    if (lost) return;
    if (state === "failed" && box.hidden) show(props.text.failed); // nobody has said why
    if (!busy) return;
    props.value = ""; // so that the same words are news again
    show("");
  });
  mirrorToasts((heard, gone) => {
    if (gone) document.dispatchEvent(new CustomEvent("vit-lost")); // whoever waits for an answer
    if (gone || lost) show(gone ? props.text.lost : "");
    else if (/\w \w.*[.!]$/.test(heard)) show(props.text.heard[heard] ?? heard); // not "Error" alone
    lost = gone;
  });
  close.addEventListener("click", () => show(""));
  watch("value", () => show(props.value));
  const speak = () => close.setAttribute("aria-label", props.text.close);
  watch("text", speak);
  speak();
}
