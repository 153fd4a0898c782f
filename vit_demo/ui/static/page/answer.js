import { SCHEMA } from "../explorer/state.js";
import { afterRender } from "../gradio.js";
import { explorerId, theExplorer } from "./explorer.js";
import { mountSearch } from "./search.js";

const MOST_ALSO = 3; // labels kept below the answer

export function mount(element, { server, watch }) {
  const labels = {}; // of each model, once
  let also = [],
    of = ""; // searched labels, and the explanation they belong to
  const rows = () => [...element.querySelectorAll("li[data-index]")];
  const predicted = () => +element.querySelector("ol.answer li").dataset.index;
  const inTop = (label) => element.querySelector(`ol.answer li[data-index="${label}"]`);

  function choose(label) {
    const { state } = theExplorer(),
      open = state.label !== null;
    if (state.label === label) return theExplorer().leaveClass();
    theExplorer().set({
      map: open ? state.map : SCHEMA.class_maps[0],
      label,
      minus: state.minus === label ? null : state.minus,
    });
    showPicture();
  }

  function subtract(minus) {
    const { state } = theExplorer();
    if (state.minus === minus) return theExplorer().set({ minus: null });
    const map = state.label === null || state.map === "random" ? SCHEMA.class_maps[0] : state.map;
    theExplorer().set({ map, label: state.label ?? predicted(), minus });
    showPicture();
  }

  /** On a phone the map lies far below. */
  function showPicture() {
    const picture = document.querySelector("#explorer .vx-picture"),
      { top } = picture.getBoundingClientRect();
    if (top > 0.7 * innerHeight) picture.scrollIntoView({ block: "center", behavior: "smooth" });
  }

  // ---- In step with the explorer

  function show() {
    const now = theExplorer();
    if (!now?.data || !element.querySelector("ol.answer")) return;
    if (of !== explorerId()) [of, also] = [explorerId(), []];
    const { label, minus } = now.state;
    for (const one of [minus, label]) if (one !== null && !inTop(one)) remember(one);
    showAlso(now);
    for (const row of rows()) {
      const index = +row.dataset.index,
        [why, less] = row.querySelectorAll("button");
      why.setAttribute("aria-pressed", index === label);
      less.setAttribute("aria-pressed", index === minus);
      less.disabled = index === (label ?? predicted());
      row.classList.toggle("versus", minus !== null);
    }
  }

  function remember(label) {
    if (!also.includes(label)) also = [...also, label].slice(-MOST_ALSO);
  }

  /** Labels from the search, in rows like the others. */
  function showAlso(now) {
    const list = element.querySelector("ol.also"),
      model = element.querySelector("ol.answer li:last-child");
    const made = also.map((label) => {
      const row = model.cloneNode(true),
        known = now.classes.get(label);
      const [first, ...others] = (
        known?.name ??
        labels[now.data.model]?.[label] ??
        String(label)
      ).split(",");
      const share = known ? (100 * known.probability).toFixed(1) : "";
      row.dataset.index = label;
      row.style.setProperty("--share", `${share || 0}%`);
      row
        .querySelector(".label")
        .replaceChildren(
          first,
          Object.assign(document.createElement("small"), { textContent: others.join(",").trim() }),
        );
      row.querySelector(".percent").textContent = share && `${share}\u2009%`;
      const less = row.querySelector(".less");
      less.setAttribute("aria-label", less.getAttribute("aria-label").replace(/^[^:]*/, first));
      return row;
    });
    const focused = list.contains(document.activeElement) && document.activeElement;
    const place = focused && [focused.closest("li").dataset.index, focused.className];
    list.replaceChildren(...made);
    list.hidden = !made.length;
    if (place) list.querySelector(`li[data-index="${place[0]}"] .${place[1]}`)?.focus();
  }

  element.addEventListener("click", (event) => {
    const button = event.target.closest("li[data-index] button");
    if (!button || !theExplorer()?.data) return;
    const label = +button.closest("li").dataset.index;
    if (button.classList.contains("less") || event.shiftKey) subtract(label);
    else choose(label);
  });
  document.addEventListener("vitx-state", show);
  afterRender(watch, show);
  mountSearch(element, { labels, server, choose });
}
