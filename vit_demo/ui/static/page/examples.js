import { sendValue } from "../gradio.js";

export function mount(element, { props, trigger, watch }) {
  const show = () => {
    for (const button of element.querySelectorAll("button"))
      button.setAttribute("aria-pressed", button.dataset.example === props.value);
  };
  element.addEventListener("click", (event) => {
    const name = event.target.closest("button")?.dataset.example;
    if (!name) return;
    sendValue({ props, trigger }, name);
    show();
  });
  watch(["value", "items"], show);
  show();
}
