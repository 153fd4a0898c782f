// @ts-check
// The link to what is on the page.

import { closest, find } from "./dom.js";
import { explorerState } from "./explorer.js";
import { currentTab } from "./tabs.js";

/** The address of what is on the page, without an upload: that stays with the visitor. */
function pageLink() {
  const files = find(document, "#take .files");
  const shown = JSON.parse(files?.dataset.shown ?? "{}"),
    address = new URL(location.href);
  const page = { tab: currentTab(), lang: files?.dataset.language };
  const settings = { ...shown, id: null, ...explorerState(), ...page };
  address.search = "";
  for (const [key, value] of Object.entries(settings))
    if (value !== null && value !== undefined) address.searchParams.set(key, String(value));
  return { address: address.href, upload: Boolean(shown.id && !shown.example) };
}

/** @param {HTMLElement} element */
export function mount(element) {
  element.addEventListener("click", async (event) => {
    const button = closest(event, "button");
    if (!button) return;
    const notes = JSON.parse(button.dataset.notes),
      note = find(element, ".note");
    const { address, upload } = pageLink();
    try {
      await navigator.clipboard.writeText(address);
    } catch {
      // no permission, or not https: the address bar can be copied by hand
      history.replaceState(null, "", address);
    }
    button.dataset.address = address;
    note.textContent = upload ? notes.link_upload : notes.link_done;
    setTimeout(() => {
      note.textContent = "";
    }, 4000);
  });
}
