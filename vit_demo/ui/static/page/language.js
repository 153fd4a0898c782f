// @ts-check
// The switch between the languages.

import { sendValue, speakGradio } from "../gradio.js";
import { closest } from "./dom.js";

/**
 * @param {HTMLElement} element
 * @param {GradioComponent} gradio */
export function mount(element, { props, trigger, watch }) {
  const show = () => {
    document.documentElement.lang = props.value;
    speakGradio(props.value);
    for (const button of element.querySelectorAll("button"))
      button.setAttribute("aria-pressed", String(button.dataset.language === props.value));
  };
  element.addEventListener("click", (event) => {
    const chosen = closest(event, "button")?.dataset.language;
    if (!chosen || chosen === props.value) return;
    try {
      localStorage.setItem("vit-demo-language", chosen);
    } catch {
      /* private mode */
    }
    sendValue({ props, trigger }, chosen);
    show();
    document.dispatchEvent(new CustomEvent("vit-language")); // a reload keeps it
  });
  watch("value", show);
  show();
}
