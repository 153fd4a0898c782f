// The answer as questions: each label opens its own map in the explorer ("why this one?"), another one
// can be subtracted from it, and any label of the model can be searched for.

const MOST_FOUND = 40, MOST_ALSO = 3; // options in the list, and labels kept below the answer

function answerList(element, server, watch) {
  const labels = {}; // of each model, once
  let also = [], of = ""; // searched labels, and the explanation they belong to
  const explorer = () => document.querySelector("#explorer .vitx")?.explorer;
  const id = () => document.querySelector("#explorer .vitx")?.dataset.id;
  const rows = () => [...element.querySelectorAll("li[data-index]")];
  const predicted = () => +element.querySelector("ol.answer li").dataset.index;
  const inTop = (label) => element.querySelector(`ol.answer li[data-index="${label}"]`);

  function choose(label) {
    const { state } = explorer(), open = state.label !== null;
    if (state.label === label) return explorer().leaveClass();
    explorer().set({ map: open ? state.map : "contribution", label, minus: state.minus === label ? null : state.minus });
    showPicture();
  }

  function subtract(minus) {
    const { state } = explorer();
    if (state.minus === minus) return explorer().set({ minus: null });
    const map = state.label === null || state.map === "random" ? "contribution" : state.map;
    explorer().set({ map, label: state.label ?? predicted(), minus });
    showPicture();
  }

  /** On a phone the map lies far below. */
  function showPicture() {
    const picture = document.querySelector("#explorer .vx-picture"), { top } = picture.getBoundingClientRect();
    if (top > 0.7 * innerHeight) picture.scrollIntoView({ block: "center", behavior: "smooth" });
  }

  // ---- In step with the explorer

  function show() {
    const now = explorer();
    if (!now?.data || !element.querySelector("ol.answer")) return;
    if (of !== id()) [of, also] = [id(), []];
    const { label, minus } = now.state;
    for (const one of [minus, label]) if (one !== null && !inTop(one)) remember(one);
    showAlso(now);
    for (const row of rows()) {
      const index = +row.dataset.index, [why, less] = row.querySelectorAll("button");
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
    const list = element.querySelector("ol.also"), model = element.querySelector("ol.answer li:last-child");
    const made = also.map((label) => {
      const row = model.cloneNode(true), known = now.classes.get(label);
      const [first, ...others] = (known?.name ?? labels[now.data.model]?.[label] ?? String(label)).split(",");
      const share = known ? (100 * known.probability).toFixed(1) : "";
      row.dataset.index = label;
      row.style.setProperty("--share", `${share || 0}%`);
      row.querySelector(".label").replaceChildren(first, Object.assign(document.createElement("small"),
        { textContent: others.join(",").trim() }));
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
    if (!button || !explorer()?.data) return;
    const label = +button.closest("li").dataset.index;
    if (button.classList.contains("less") || event.shiftKey) subtract(label);
    else choose(label);
  });
  document.addEventListener("vitx-state", show);
  watch("value", () => requestAnimationFrame(show));
  search(element, { labels, explorer, id, server, choose });
}

/** A field with a list: type a part of a name, walk with the arrows, Enter asks why. */
function search(element, { labels, explorer, id, server, choose }) {
  let found = [], active = -1;
  const field = () => element.querySelector(".search input"), list = () => element.querySelector(".search ul");

  async function fetchLabels() {
    const model = explorer()?.data?.model;
    if (!model || labels[model]) return;
    const answer = await server.all_labels({ id: id(), language: document.documentElement.lang });
    if (!answer?.labels) return close(answer?.error);
    labels[answer.model] = answer.labels;
    if (document.activeElement === field()) open();
  }

  function open() {
    const wanted = field().value.trim().toLowerCase(), all = labels[explorer()?.data?.model] ?? [];
    const hits = (start) => all.map((name, index) => [name, index]).filter(([name]) => {
      const names = name.toLowerCase().split(",").map((one) => one.trim());
      const begins = names.some((one) => one.startsWith(wanted));
      return start ? begins : !begins && names.some((one) => one.includes(wanted));
    });
    found = wanted ? [...hits(true), ...hits(false)].slice(0, MOST_FOUND) : [];
    list().replaceChildren(...found.map(([name, index], k) => {
      const option = Object.assign(document.createElement("li"), { id: `found-${k}`, textContent: name });
      option.setAttribute("role", "option");
      option.dataset.label = index;
      return option;
    }));
    activate(found.length ? 0 : -1);
    field().setAttribute("aria-expanded", found.length > 0);
    list().hidden = !found.length;
    say(wanted && all.length && !found.length ? field().dataset.none : "");
  }

  function activate(k) {
    active = k;
    [...list().children].forEach((option, at) => option.setAttribute("aria-selected", at === k));
    if (k < 0) field().removeAttribute("aria-activedescendant");
    else field().setAttribute("aria-activedescendant", `found-${k}`);
    list().children[k]?.scrollIntoView({ block: "nearest" });
  }

  const say = (text) => { element.querySelector(".search p").textContent = text ?? ""; };
  function close(text) {
    list().hidden = true;
    field().setAttribute("aria-expanded", false);
    say(text);
  }

  function take(k) {
    if (!found[k]) return;
    const [, index] = found[k];
    field().value = "";
    close();
    choose(index);
  }

  element.addEventListener("focusin", (event) => { if (event.target === field()) fetchLabels(); });
  element.addEventListener("focusout", (event) => { if (event.target === field()) close(); });
  element.addEventListener("input", (event) => {
    if (event.target !== field()) return;
    event.stopPropagation();
    fetchLabels();
    open();
  });
  element.addEventListener("keydown", (event) => {
    if (event.target !== field()) return;
    const move = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (move && found.length) activate((active + move + found.length) % found.length);
    else if (event.key === "Enter") take(active);
    else if (event.key === "Escape") close();
    else return;
    event.preventDefault();
  });
  element.addEventListener("pointerdown", (event) => { // before the field loses the focus
    const option = event.target.closest(".search [role=option]");
    if (!option) return;
    event.preventDefault();
    take([...list().children].indexOf(option));
  });
}
