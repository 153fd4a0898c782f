// @ts-check
// On a phone: picture and answer in a bar at the top, as soon as the picture itself has left the screen.

import { whenMounted } from "../gradio.js";
import { find } from "./dom.js";

/**
 * @param {HTMLElement} element
 * @param {GradioComponent} gradio */
export function mount(element, { props, watch }) {
  const bar = find(element, "button");
  const show = () => {
    const { url = "", label = "", percent = "" } = props.value ?? {};
    find(bar, "img").src = url;
    find(bar, ".label").textContent = label;
    find(bar, ".percent").textContent = percent;
    bar.hidden = !props.value || bar.dataset.near === "true";
  };
  bar.addEventListener("click", () => scrollTo({ top: 0, behavior: "smooth" }));
  whenMounted("picture", (picture) => {
    new IntersectionObserver((entries) => {
      bar.dataset.near = String(entries.at(-1).isIntersecting); // a slow page hears of several at once
      show();
    }).observe(picture);
  });
  watch("value", show);
  show();
}
