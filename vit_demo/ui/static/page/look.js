// @ts-check
// How far the picture is: nothing there, sent, waiting in the queue, looked at, done, failed.
// `data-look` of the document says so, for style sheets; the event `vit-look` tells whoever listens.

import { mirrorProgress } from "../gradio.js";
import { find } from "./dom.js";

const BUSY = ["sending", "waiting", "running"];

let sends = false;

/** Is a picture under way? */
export const isBusy = () => BUSY.includes(document.documentElement.dataset.look);

/** A picture is on its way to the server, or is not any more.
 * @param {boolean} yes */
export function sending(yes) {
  sends = yes;
  document.dispatchEvent(new CustomEvent("vit-sending"));
}

/** The words stand beside the heading of the answer, where there is room for them.
 * @param {HTMLElement} element
 * @param {GradioComponent} gradio */
export function mount(element, { props, watch }) {
  const root = document.documentElement,
    words = find(element, ".status");
  let progress = { pending: false, place: "", failed: false };

  const state = () => {
    if (progress.pending) return progress.place ? "waiting" : "running";
    if (sends) return "sending";
    return progress.failed ? "failed" : props.value;
  };
  const show = () => {
    const now = state(),
      before = root.dataset.look,
      busy = BUSY.includes(now);
    const said = busy ? props.text[now].replace("{place}", progress.place) : "";
    if (words.textContent !== said) words.textContent = said;
    if (now === before) return;
    root.dataset.look = now;
    document.getElementById("stage")?.setAttribute("aria-busy", String(busy));
    document.dispatchEvent(new CustomEvent("vit-look", { detail: { state: now, busy } }));
  };
  mirrorProgress("status", (news) => {
    progress = news;
    show();
  });
  document.addEventListener("vit-sending", show);
  watch(["value", "text"], show);
  show();
}
