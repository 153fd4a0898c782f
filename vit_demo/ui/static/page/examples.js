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
  const show = () => {
    for (const button of element.querySelectorAll("button"))
      button.setAttribute("aria-pressed", String(button.dataset.example === props.value));
  };
  element.addEventListener("click", (event) => {
    const name = closest(event, "button")?.dataset.example;
    if (!name) return;
    forgetUpload();
    sendValue({ props, trigger }, name);
    show();
  });
  watch(["value", "items"], show);
  show();
}
