// @ts-check
// The strip of example pictures.

import { sendValue } from "../gradio.js";
import { closest, find } from "./dom.js";
import { isBusy } from "./look.js";
import { forgetUpload } from "./picture.js";

/** As if it had been clicked.
 * @param {string} name */
export const chooseExample = (name) => find(document, `[data-example="${name}"]`)?.click();

const SETTLED = 400; // milliseconds: what came is drawn by then

/**
 * @param {HTMLElement} element
 * @param {GradioComponent} gradio */
export function mount(element, { props, trigger, watch }) {
  const show = (name = props.value) => {
    for (const button of element.querySelectorAll("button"))
      button.setAttribute("aria-pressed", String(button.dataset.example === name));
  };
  /** What was chosen may not have come: the server has stopped, or could not read it. */
  const showArrived = () => {
    if (isBusy()) return;
    show(JSON.parse(find(document, "#take .files").dataset.shown).example);
  };
  element.addEventListener("click", (event) => {
    const name = closest(event, "button")?.dataset.example;
    if (!name) return;
    forgetUpload();
    sendValue({ props, trigger }, name);
    show();
  });
  watch(["value", "items"], () => show());
  document.addEventListener("vit-look", (event) => {
    if (!(/** @type {CustomEvent} */ (event).detail.busy)) setTimeout(showArrived, SETTLED);
  });
  show();
}
