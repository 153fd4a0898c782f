import { sendValue } from "../gradio.js";

export function mount(element, { props, trigger, watch }) {
  const show = () => {
    document.documentElement.lang = props.value;
    for (const button of element.querySelectorAll("button"))
      button.setAttribute("aria-pressed", button.dataset.language === props.value);
  };
  element.addEventListener("click", (event) => {
    const chosen = event.target.closest("button")?.dataset.language;
    if (!chosen || chosen === props.value) return;
    try {
      localStorage.setItem("vit-demo-language", chosen);
    } catch {
      /* private mode */
    }
    sendValue({ props, trigger }, chosen);
    show();
  });
  watch("value", show);
  show();
}
