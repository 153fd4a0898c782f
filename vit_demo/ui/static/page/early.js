// @ts-check
// The first map before Gradio is there. Gradio takes its time to put the components on the page, and the
// explorer needs none of them. So it begins in a sketch of the page, where it will stand, and moves into its
// component when that comes (explorer/component.js): the same explorer, in the same place.

import { followsLink, mountEarly } from "../explorer/component.js";
import { isDark } from "../gradio.js";

const LATE = 20_000; // milliseconds: a slow line has brought Gradio by then

/** `sketches` are HTML, in every language.
 * @param {{ first: ExplorerValue; css: string; sketches: Record<string, string> }} given
 * @param {Setup} setup */
export async function mount({ first, css, sketches }, setup) {
  if (location.hash || followsLink() || document.getElementById("explorer")) return;
  const language = visitorsLanguage() in sketches ? visitorsLanguage() : "en",
    sketch = document.createElement("div"),
    root = /** @type {ExplorerRoot} */ (document.createElement("div"));
  sketch.id = "early";
  sketch.lang = language;
  for (const one of [document.body, sketch]) one.classList.toggle("dark", isDark()); // as Gradio will
  const shadow = sketch.attachShadow({ mode: "open" }); // where ids are its own
  shadow.innerHTML = `<style>${css}</style>${sketches[language]}`;
  root.className = "vitx";
  sketch.append(root); // in the slot
  document.body.prepend(sketch);
  setTimeout(() => (shadow.getElementById("late").hidden = false), LATE); // nobody sees it if Gradio came
  try {
    await mountEarly(root, setup, language, first);
  } finally {
    if (!root.explorer?.data) sketch.remove(); // nothing to see: Gradio will bring it, as always
  }
}

/** As `start` of events.py will decide. */
function visitorsLanguage() {
  const asked = new URLSearchParams(location.search).get("lang");
  const wanted = asked || localStorage.getItem("vit-demo-language") || navigator.language;
  return wanted.slice(0, 2).toLowerCase();
}
