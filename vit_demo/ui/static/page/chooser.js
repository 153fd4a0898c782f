// @ts-check
// The chooser of models: a field that finds them by any part of their titles and timm names. One match
// is taken with Enter, several are offered to click; a click elsewhere changes nothing.

import { sendValue } from "../gradio.js";
import { closest, find } from "./dom.js";

/** @typedef {{ name: string; title: string; where: string; here: boolean }} Model */

/** @typedef {{ value: string; shown: string; text: Texts; language: string }} Chosen */

/** As `spaced` of models.py: "DeiT-tiny" is "DeiT tiny" in a title, and deit_tiny in a name.
 * @param {string} name */
const spaced = (name) => name.replace(/[-_]/g, " ");

/** The model of the page: a component.
 * @param {HTMLElement} element
 * @param {GradioComponent} gradio */
export function mount(element, { props, trigger, watch, server }) {
  const given = /** @type {Chosen} */ (/** @type {unknown} */ (props));
  const { speak, take } = mountChooser(element, given, server, (name) =>
    sendValue({ props, trigger }, name),
  );
  document.addEventListener("vit-model", (event) => {
    // somebody else on the page offers a model
    const { name, title = name } = /** @type {CustomEvent} */ (event).detail;
    take(name, title);
  });
  watch(["value", "shown", "text", "language"], speak);
}

/** In an element with the parts of `CHOOSER_TEMPLATE`. `props` say which model is chosen, and all words.
 * @param {HTMLElement} element
 * @param {Chosen} props
 * @param {GradioComponent["server"]} server
 * @param {(name: string, title: string) => void} choose */
export function mountChooser(element, props, server, choose) {
  const field = find(element, "input"),
    list = find(element, ".list"),
    options = find(element, "ul"),
    note = find(element, "p");
  /** @type {Model[]} */
  let models = [], // in the list ...
    offered = []; // ... and when nothing was typed
  let active = -1,
    turn = 0;

  const typed = () => (field.value === props.shown ? "" : field.value);

  /** What is called so: first those of the list, then whatever the server knows. Null if something
   * else was typed meanwhile, or if the server does not answer.
   * @param {string} text */
  async function search(text) {
    const mine = ++turn,
      parts = text
        .toLowerCase()
        .split(/[\s\u00b7]+/)
        .map(spaced);
    show(
      offered.filter(({ name, title }) =>
        parts.every((part) => spaced(`${name} ${title}`.toLowerCase()).includes(part)),
      ),
    );
    if (text) say(props.text.search);
    const answer = await server.find_models({ text, language: props.language });
    if (mine !== turn) return null;
    if (!answer) {
      say(props.text.lost);
      return null;
    }
    const found = /** @type {Model[]} */ (answer.models ?? []);
    if (!text) offered = found;
    show(found);
    if (answer.error) say(answer.error);
    else if (!found.length) say(props.text.none);
    else if (answer.more) say(props.text.more.replace("{count}", String(answer.more)));
    return found;
  }

  /** @param {Model[]} found */
  function show(found) {
    models = found;
    options.replaceChildren(...found.map(option));
    activate(-1);
    open(true);
    say("");
  }

  /** @param {Model} model @param {number} k */
  function option({ name, title, where, here }, k) {
    const row = document.createElement("li");
    Object.assign(row, { id: `${options.id}-${k}`, role: "option", title: name });
    row.classList.toggle("here", here);
    row.setAttribute("aria-current", String(name === props.value));
    row.append(part("span", title), part("small", name === title ? "" : name), part("em", where));
    return row;
  }

  /** @param {string} tag @param {string} text */
  const part = (tag, text) => Object.assign(document.createElement(tag), { textContent: text });

  /** @param {string} text */
  const say = (text) => {
    note.textContent = text;
  };

  /** @param {boolean} yes */
  function open(yes) {
    list.hidden = !yes;
    field.setAttribute("aria-expanded", String(yes));
  }

  /** @param {number} k */
  function activate(k) {
    active = k;
    for (const [at, row] of [...options.children].entries())
      row.setAttribute("aria-selected", String(at === k));
    if (k < 0) field.removeAttribute("aria-activedescendant");
    else field.setAttribute("aria-activedescendant", `${options.id}-${k}`);
    options.children[k]?.scrollIntoView({ block: "nearest" });
  }

  /** Back to the model in use. */
  function leave() {
    turn++;
    field.value = props.shown;
    open(false);
  }

  /** @param {string} name @param {string} title */
  function take(name, title) {
    leave();
    field.value = title;
    field.blur();
    choose(name, title);
  }

  /** Enter: the one that is marked, the only one, or the one that is called just so. */
  async function enter() {
    if (active >= 0) return take(models[active].name, models[active].title);
    const text = typed().trim();
    if (!text) return leave();
    const found = await search(text);
    if (!found) return;
    const called = text.toLowerCase();
    const exact = found.filter(({ name, title }) =>
      [name.toLowerCase(), title.toLowerCase()].includes(called),
    );
    const [one, another] = exact.length ? exact : found;
    if (one && !another) take(one.name, one.title);
    else if (one) say(props.text.many.replace("{count}", String(found.length)));
    else take(text, text); // the server says what is wrong with it
  }

  element.addEventListener("focusin", (event) => {
    if (event.target !== field || !list.hidden) return;
    field.select();
    search("");
  });
  element.addEventListener("focusout", (event) => {
    if (!element.contains(/** @type {Node | null} */ (event.relatedTarget))) leave();
  });
  field.addEventListener("input", (/** @type {Event} */ event) => {
    event.stopPropagation();
    search(typed());
  });
  field.addEventListener("change", (/** @type {Event} */ event) => event.stopPropagation());
  field.addEventListener("click", () => {
    if (list.hidden) search(typed());
  });
  element.addEventListener("keydown", (event) => {
    if (event.target !== field) return;
    const move = { ArrowDown: 1, ArrowUp: -1 }[event.key],
      count = models.length;
    if (move && count)
      activate(active < 0 && move < 0 ? count - 1 : (active + move + count) % count);
    else if (event.key === "Enter") enter();
    else if (event.key === "Escape") leave();
    else return;
    event.preventDefault();
  });
  list.addEventListener("pointerdown", (/** @type {Event} */ event) => event.preventDefault()); // the field keeps the focus
  list.addEventListener("click", (/** @type {Event} */ event) => {
    const row = closest(event, "li"),
      model = models[[...options.children].indexOf(row)];
    if (model) take(model.name, model.title);
  });

  const speak = () => {
    field.setAttribute("aria-label", props.text.label);
    options.setAttribute("aria-label", props.text.label);
    if (document.activeElement !== field) field.value = props.shown;
  };
  speak();
  return { speak, take };
}
