// @ts-check
// The files to take away.

import { afterRender, answerOf } from "../gradio.js";
import { commandOf } from "./command.js";
import { closest, find } from "./dom.js";
import { explorerState, theExplorer } from "./explorer.js";

/**
 * @param {string} url
 * @param {string} name */
function download(url, name) {
  const anchor = Object.assign(document.createElement("a"), { href: url, download: name });
  document.body.append(anchor);
  anchor.click();
  anchor.remove();
}

/**
 * @param {HTMLElement} element
 * @param {GradioComponent} gradio */
export function mount(element, { server, watch }) {
  const show = () => {
    // a class map has no layers to walk through
    const still = (explorerState().label ?? null) !== null;
    /** @type {NodeListOf<HTMLButtonElement>} */
    const animations = element.querySelectorAll("[data-kind=gif], [data-kind=webp]");
    for (const button of animations) {
      const { shown, notes } = button.parentElement.dataset;
      button.disabled = still || !JSON.parse(shown).id;
      button.title = still ? JSON.parse(notes).still : "";
    }
    const shown = JSON.parse(find(element, ".files").dataset.shown),
      explorer = theExplorer();
    if (shown.id && explorer?.data)
      find(element, "code").textContent = commandOf(shown, explorer.state, explorer.data.layers);
  };
  document.addEventListener("vitx-state", show);
  afterRender(watch, show);
  element.addEventListener("click", async (event) => {
    const button = closest(event, "button[data-kind]");
    if (!button || button.disabled) return;
    const { shown, notes, language } = button.parentElement.dataset;
    const text = JSON.parse(notes),
      note = find(element, ".note");
    /** @param {string} words */
    const say = (words) => {
      note.textContent = words;
    };
    say(text.busy);
    button.setAttribute("aria-busy", "true");
    const request = { id: JSON.parse(shown).id, kind: button.dataset.kind };
    const all = { ...request, language, state: explorerState() };
    try {
      const { url, name } = await answerOf(server.save_file, all, text.lost);
      download(url, name);
      say(text.done.replace("{name}", name));
    } catch (error) {
      say(error.message);
    } finally {
      button.removeAttribute("aria-busy");
    }
  });
}
