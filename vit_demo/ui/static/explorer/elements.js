// @ts-check
// The kinds of elements that the page is built from.

import { question } from "../glossary.js";

export const ARROWS = /** @type {Record<string, Patch>} */ ({
  ArrowUp: [-1, 0],
  ArrowDown: [1, 0],
  ArrowLeft: [0, -1],
  ArrowRight: [0, 1],
});

/** An element with attributes, listeners (`onclick`) and children.
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Record<string, any>} [options]
 * @param {...(Node | string)} children
 * @returns {HTMLElementTagNameMap[Tag]} */
export function el(tag, options = {}, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(options)) {
    const absent = value === null || value === undefined || value === false;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (!absent) node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children);
  return node;
}

/** A row of radio buttons that looks like one switch. `options`: [value, text], ...
 * @param {Pick<Explorer, "ui" | "id" | "t" | "set">} explorer
 * @param {string} key
 * @param {[any, string][]} options
 * @param {Record<string, string>} [hints]
 * @param {(value: any) => void} [change] */
export function choice(
  { ui, id, t, set },
  key,
  options,
  hints = {},
  change = (value) => set({ [key]: value }),
) {
  ui[key] = el("div", { class: "vx-choice", role: "radiogroup", "aria-label": t(key) });
  for (const [value, text] of options) {
    const input = el("input", {
      type: "radio",
      name: `${id}-${key}`,
      value: String(value),
      onchange: () => change(value),
    });
    ui[key].append(el("label", { title: hints[value] }, input, el("span", {}, text)));
  }
  return ui[key];
}

/** The "?" that explains some words.
 * @param {Pick<Explorer, "root">} explorer
 * @param {...string} words */
export const help = ({ root }, ...words) => question(root.lang, words);

/** A slider under a finger changes when it is known that the finger goes sideways, or only taps; one that
 * goes up or down scrolls the page, and the slider stays as it was.
 * @param {HTMLInputElement} input
 * @param {() => void} change */
function slide(input, change) {
  /** @type {{ value: string, x: number, y: number } | null} */
  let held = null;
  const decide = () => {
    held = null;
    change();
  };
  const stay = () => {
    if (held) input.value = held.value;
    held = null;
  };
  input.addEventListener("input", () => held || change());
  input.addEventListener("pointerdown", ({ pointerType, clientX: x, clientY: y }) => {
    held = pointerType === "touch" ? { value: input.value, x, y } : null;
  });
  input.addEventListener("pointermove", ({ clientX, clientY }) => {
    if (!held) return;
    const across = Math.abs(clientX - held.x);
    if (across > 4 && across > Math.abs(clientY - held.y)) decide();
  });
  input.addEventListener("pointerup", () => held && decide());
  input.addEventListener("touchend", stay, { passive: true }); // the page has scrolled
  input.addEventListener("touchcancel", stay, { passive: true });
}

/**
 * @param {Pick<Explorer, "root" | "ui" | "id" | "t" | "set">} explorer
 * @param {string} key
 * @param {number} min
 * @param {number} max
 * @param {number} stepSize
 * @param {string} [word] for its "?" */
export function range(explorer, key, min, max, stepSize, word) {
  const { ui, id, t, set } = explorer;
  const input = el("input", {
    type: "range",
    id: `${id}-${key}`,
    min,
    max,
    step: stepSize,
  });
  slide(input, () => set({ [key]: +input.value }));
  const output = el("output", { for: input.id });
  Object.assign(ui, { [key]: input, [`${key}_out`]: output });
  return el(
    "div",
    { class: "vx-field" },
    el("span", {}, el("label", { for: input.id }, t(key)), ...(word ? [help(explorer, word)] : [])),
    input,
    output,
  );
}

/**
 * @param {Pick<Explorer, "ui" | "id">} explorer
 * @param {string} key
 * @param {[any, string][]} options
 * @param {(value: string) => void} change */
export function select({ ui, id }, key, options, change) {
  ui[key] = el("select", { id: `${id}-${key}`, onchange: (event) => change(event.target.value) });
  for (const [value, text] of options) ui[key].append(el("option", { value }, text));
  return ui[key];
}

/**
 * @param {Explorer} explorer
 * @param {string} key
 * @param {(event: Event) => void} onclick
 * @param {Record<string, any>} [options] */
export function button({ ui, t }, key, onclick, options = {}) {
  ui[key] = el("button", { type: "button", onclick, ...options }, t(key));
  return ui[key];
}

/**
 * @param {Explorer} explorer
 * @param {string} key
 * @param {HTMLElement} control
 * @param {string} [word] for its "?" */
export function field(explorer, key, control, word) {
  const tag = control.tagName === "DIV" ? "span" : "label", // a row of radio buttons names itself
    name = el(tag, { for: control.id || null }, explorer.t(key));
  return el(
    "div",
    { class: "vx-field" },
    el("span", {}, name, ...(word ? [help(explorer, word)] : [])),
    control,
  );
}

/** For those who hear the page.
 * @param {Explorer} explorer
 * @param {string} text */
export function announce({ ui }, text) {
  ui.live.textContent = text;
}

/** A note in place of the picture.
 * @param {Explorer} explorer
 * @param {string} text */
export function message({ ui }, text) {
  ui.note.textContent = text;
  ui.note.hidden = !text;
}
