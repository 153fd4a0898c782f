// @ts-check
// The strip of example pictures.

import { sendValue } from "../gradio.js";
import { closest, find } from "./dom.js";
import { forgetUpload } from "./picture.js";

/** As if it had been clicked.
 * @param {string} name */
export const chooseExample = (name) => find(document, `[data-example="${name}"]`)?.click();

/**
 * @param {HTMLElement} element
 * @param {GradioComponent} gradio */
export function mount(element, { props, trigger, watch }) {
  let arrived = props.value; // the example on the page; null: another picture
  const show = (name = props.value) => {
    for (const button of element.querySelectorAll("button"))
      button.setAttribute("aria-pressed", String(button.dataset.example === name));
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
    const { state } = /** @type {CustomEvent} */ (event).detail;
    if (state === "failed") show(arrived); // what was chosen did not come
    if (state === "done")
      requestAnimationFrame(() => {
        arrived = props.value;
      });
  });
  show();
}
