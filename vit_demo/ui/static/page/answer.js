// @ts-check
// The answer as questions: each label opens its own map in the explorer ("why this one?"), another one
// can be subtracted from it, and any label of the model can be searched for.

import { SCHEMA } from "../explorer/state.js";
import { fullName } from "../explorer/words.js";
import { afterRender } from "../gradio.js";
import { closest, find } from "./dom.js";
import { explorerId, theExplorer } from "./explorer.js";
import { mountSearch } from "./search.js";

const MOST_ALSO = 3, // labels kept below the answer
  MOST_LETTERS = 36; // of the other names of a label

/** As `other_names` of html.py.
 * @param {string[]} others */
function otherNames(others) {
  const all = others.join(",").trim();
  if (all.length <= MOST_LETTERS) return all;
  return `${all.slice(0, MOST_LETTERS - 1).replace(/\s\S*$/, "")} …`;
}

/**
 * @param {HTMLElement} element
 * @param {GradioComponent} gradio */
export function mount(element, { server, watch }) {
  /** @type {Record<string, string[]>} */
  const labels = {}; // of each model, once
  /** @type {number[]} */
  let also = []; // labels that were searched for ...
  let of = ""; // ... and the explanation they belong to
  /** @returns {NodeListOf<HTMLElement>} */
  const rows = () => element.querySelectorAll("li[data-index]");
  const predicted = () => +find(element, "ol.answer li").dataset.index;
  /** @param {number} label */
  const inTop = (label) => find(element, `ol.answer li[data-index="${label}"]`);

  /** @param {number} label */
  function choose(label) {
    const { state } = theExplorer(),
      open = state.label !== null;
    if (state.label === label) return theExplorer().leaveClass();
    theExplorer().set({
      map: open ? state.map : SCHEMA.class_maps[0],
      label,
      minus: state.minus === label ? null : state.minus,
    });
    theExplorer().reveal(); // on a phone it lies far below
  }

  /** @param {number} minus */
  function subtract(minus) {
    const { state } = theExplorer();
    if (state.minus === minus) return theExplorer().set({ minus: null });
    const map = state.label === null || state.map === "random" ? SCHEMA.class_maps[0] : state.map;
    theExplorer().set({ map, label: state.label ?? predicted(), minus });
    theExplorer().reveal();
  }

  // ---- In step with the explorer

  function show() {
    const now = theExplorer();
    if (!now?.data || !find(element, "ol.answer")) return;
    if (of !== explorerId()) [of, also] = [explorerId(), []];
    const { label, minus } = now.state;
    for (const one of [minus, label]) if (one !== null && !inTop(one)) remember(one);
    showAlso(now);
    for (const row of rows()) {
      const index = +row.dataset.index,
        [why, less] = row.querySelectorAll("button");
      why.setAttribute("aria-pressed", String(index === label));
      less.setAttribute("aria-pressed", String(index === minus));
      less.disabled = index === (label ?? predicted());
      row.classList.toggle("versus", minus !== null);
    }
  }

  /** @param {number} label */
  function remember(label) {
    if (!also.includes(label)) also = [...also, label].slice(-MOST_ALSO);
  }

  /** Labels from the search, in rows like the others.
   * @param {ExplorerHandle} now */
  function showAlso(now) {
    const list = find(element, "ol.also"),
      model = find(element, "ol.answer li:last-child");
    const made = also.map((label) => {
      const row = model.cloneNode(true),
        known = now.classes.get(label);
      const name = known?.name ?? labels[now.data.model]?.[label] ?? String(label);
      const [first, ...others] = fullName(name).split(",");
      const share = known ? (100 * known.probability).toFixed(1) : "";
      row.dataset.index = label;
      row.style.setProperty("--share", `${share || 0}%`);
      const also = Object.assign(document.createElement("small"), {
        textContent: others.length ? `, ${otherNames(others)}` : "",
      });
      find(row, ".label").replaceChildren(first, also);
      const why = find(row, ".ask");
      why.title = why.title.replace(/^[^:]*/, () => name);
      find(row, ".percent").textContent = share && `${share}\u2009%`;
      const less = find(row, ".less");
      less.setAttribute("aria-label", less.getAttribute("aria-label").replace(/^[^:]*/, first));
      return row;
    });
    const focused = list.contains(document.activeElement) && document.activeElement;
    const place = focused && [focused.closest("li").dataset.index, focused.className];
    list.replaceChildren(...made);
    list.hidden = !made.length;
    if (place) find(list, `li[data-index="${place[0]}"] .${place[1]}`)?.focus();
  }

  element.addEventListener("click", (event) => {
    const button = closest(event, "li[data-index] button");
    if (!button || !theExplorer()?.data) return;
    const label = +button.closest("li").dataset.index;
    if (button.classList.contains("less") || event.shiftKey) subtract(label);
    else choose(label);
  });
  document.addEventListener("vitx-state", show);
  afterRender(watch, show);
  mountSearch(element, { labels, server, choose });
}
