// @ts-check
// The address of what is on the page: in the address bar, so that reload and Back bring it back, and as a
// link for others.

import { closest, find } from "./dom.js";
import { explorerId, explorerState, theExplorer } from "./explorer.js";
import { currentTab, openTab, tabOf } from "./tabs.js";

const PAUSE = 300; // ms; browsers count how often the address changes
const NONE = "none"; // the example of an empty page, as `nothing` of layout.py says it

/** @typedef {{ id?: string; model?: string; example?: string | null; fit?: string; upload?: string | null }} ShownPicture */

/** The property `shown` says which picture is on the page; `submit` asks the server for what the address
 * names.
 * @param {HTMLElement} element
 * @param {GradioComponent} gradio */
export function mount(element, { props, trigger, watch }) {
  /** @returns {ShownPicture} */
  const shown = () => props.shown;
  const empty = () => shown().example === NONE;
  const settings = () => (empty() ? {} : explorerState()); // of no picture there are none
  let timer = 0,
    restoring = true, // the page becomes what its address says: no new step for Back
    asked = false; // the server was asked for that, and has not answered

  /** Everything but an upload, which stays with the visitor. */
  function pageAddress() {
    const { model, example, fit } = shown(),
      address = new URL(location.href);
    /** @type {{ tab: string; lang: string; hash?: string }} */
    const detail = { tab: currentTab(), lang: document.documentElement.lang };
    document.dispatchEvent(new CustomEvent("vit-link", { detail })); // a tab may add its own
    const { hash, ...page } = detail,
      ofTab = address.hash.slice(1).split("/")[0] === page.tab; // it may not have loaded yet
    address.search = "";
    address.hash = hash ?? (ofTab ? address.hash : "");
    for (const [key, value] of Object.entries({ model, example, fit, ...settings(), ...page }))
      if (value !== null && value !== undefined) address.searchParams.set(key, String(value));
    return address.href;
  }

  // ---- The address bar

  /** Another picture, model, fit or tab is a step that Back undoes, and so is no picture; a setting is
   * none. */
  function remember() {
    const there = empty() || (explorerId() === shown().id && theExplorer()?.data);
    if (asked || !there) return; // on its way
    const { model, example = null, fit, upload = null } = shown();
    const step = JSON.stringify([model, example, fit, upload, currentTab()]);
    const before = history.state?.step,
      state = { step, upload, settings: settings() };
    const same = restoring || !before || before === step;
    history[same ? "replaceState" : "pushState"](state, "", pageAddress());
    restoring = false;
  }

  const rememberSoon = () => {
    clearTimeout(timer);
    timer = setTimeout(remember, PAUSE);
  };

  /** Back and forward. What the browser knows, it does by itself. */
  function restore() {
    const { step, settings: then } = history.state ?? {};
    if (!step) return; // a place on the page
    const [model, example, fit, upload] = JSON.parse(step),
      now = shown();
    clearTimeout(timer);
    restoring = true;
    openTab(tabOf(location));
    const same =
      model === now.model &&
      example === (now.example ?? null) &&
      fit === now.fit &&
      upload === (now.upload ?? null);
    asked = !same;
    if (!same) trigger("submit");
    else if (!empty()) theExplorer()?.set(then);
  }

  document.addEventListener("vitx-state", rememberSoon);
  document.addEventListener("vit-tab", rememberSoon);
  document.addEventListener("vit-second", rememberSoon);
  document.addEventListener("vit-place", rememberSoon);
  document.addEventListener("vit-language", remember);
  watch("shown", () => {
    asked = false;
    rememberSoon();
  });
  addEventListener("popstate", restore);

  // ---- The link

  element.addEventListener("click", async (event) => {
    const button = closest(event, "button");
    if (!button) return;
    const notes = JSON.parse(button.dataset.notes),
      note = find(element, ".note"),
      address = pageAddress();
    let said = shown().upload ? notes.link_upload : notes.link_done;
    try {
      await navigator.clipboard.writeText(address);
    } catch {
      remember(); // no permission, or not https
      said = notes.link_failed;
    }
    button.dataset.address = address;
    note.textContent = said;
    setTimeout(() => {
      note.textContent = "";
    }, 4000);
  });
}
