// @ts-check
// The tabs: ways to look at the same picture. `data-tab` of the document says which one is shown; the
// style sheet hides the panels of the others, which stay mounted.

import { afterRender } from "../gradio.js";
import { closest, find } from "./dom.js";

/** Their names, in their order.
 * @returns {string[]} */
const names = () => Array.from(document.querySelectorAll("#tabs [role=tab]"), nameOf);

/** @param {HTMLElement} tab */
const nameOf = (tab) => tab.dataset.name;

/** The name of the tab that is shown. */
export const currentTab = () => document.documentElement.dataset.tab;

/** The tab that an address names: `#inside/5` before `?tab=inside`, else the first.
 * @param {Location | URL} address */
export function tabOf({ hash, search }) {
  const wanted = [hash.slice(1).split("/")[0], new URLSearchParams(search).get("tab")];
  return wanted.find((name) => names().includes(name)) ?? names()[0];
}

/** Show a tab, from its top, and tell everybody: the event `vit-tab`.
 * @param {string} name */
export function openTab(name) {
  if (!names().includes(name) || name === currentTab()) return;
  document.documentElement.dataset.tab = name;
  const right = document.getElementById("right");
  if (right?.getBoundingClientRect().top < 0) right.scrollIntoView();
  document.dispatchEvent(new CustomEvent("vit-tab", { detail: { name } }));
}

/** The row of buttons. Arrow keys walk along it, as in any list of tabs.
 * @param {HTMLElement} element
 * @param {GradioComponent} gradio */
export function mount(element, { watch }) {
  /** @param {string} name */
  const button = (name) => find(element, `#tab-${name}`);
  const show = () => {
    for (const name of names()) {
      const shown = name === currentTab();
      button(name).setAttribute("aria-selected", String(shown));
      button(name).tabIndex = shown ? 0 : -1;
      const panel = document.getElementById(`panel-${name}`);
      panel?.setAttribute("role", "tabpanel");
      panel?.setAttribute("aria-labelledby", `tab-${name}`);
    }
  };
  element.addEventListener("click", (event) => {
    const name = closest(event, "[role=tab]")?.dataset.name;
    if (name) openTab(name);
  });
  element.addEventListener("keydown", (event) => {
    const all = names(),
      at = all.indexOf(currentTab());
    const next = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: -1 }[event.key];
    if (next === undefined || !closest(event, "[role=tab]")) return;
    event.preventDefault();
    openTab(all.at(next % all.length));
    button(currentTab()).focus();
  });
  document.addEventListener("vit-tab", show);
  afterRender(watch, show);
  addEventListener("hashchange", () => openTab(tabOf(location)));
  openTab(tabOf(location));
}
