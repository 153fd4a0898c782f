// @ts-check
// The search for a label: type a part of its name, walk with the arrows, Enter asks why.

import { fullName } from "../explorer/words.js";
import { closest, find } from "./dom.js";
import { explorerId, theExplorer } from "./explorer.js";

const MOST_FOUND = 40; // options in the list

/** A field with a list: type a part of a name, walk with the arrows, Enter asks why.
 * @param {HTMLElement} element
 * @param {{ labels: Record<string, string[]>; server: GradioComponent["server"]; choose: (label: number) => void }} given */
export function mountSearch(element, { labels, server, choose }) {
  let found = [],
    active = -1;
  const field = () => find(element, ".search input"),
    list = () => find(element, ".search ul");

  async function fetchLabels() {
    const model = theExplorer()?.data?.model;
    if (!model || labels[model]) return;
    const answer = await server.all_labels({
      id: explorerId(),
      language: document.documentElement.lang,
    });
    if (!answer?.labels) return close(answer ? answer.error : field().dataset.lost);
    labels[answer.model] = answer.labels;
    if (document.activeElement === field()) open();
  }

  function open() {
    const wanted = field().value.trim().toLowerCase(),
      all = labels[theExplorer()?.data?.model] ?? [];
    /** @param {boolean} start */
    const hits = (start) =>
      all
        .map((name, index) => /** @type {[string, number]} */ ([fullName(name), index]))
        .filter(([name]) => {
          const names = name
            .toLowerCase()
            .split(",")
            .map((one) => one.trim());
          const begins = names.some((one) => one.startsWith(wanted));
          return start ? begins : !begins && names.some((one) => one.includes(wanted));
        });
    found = wanted ? [...hits(true), ...hits(false)].slice(0, MOST_FOUND) : [];
    list().replaceChildren(
      ...found.map(([name, index], k) => {
        const option = Object.assign(document.createElement("li"), {
          id: `found-${k}`,
          textContent: name,
        });
        option.setAttribute("role", "option");
        option.dataset.label = index;
        return option;
      }),
    );
    activate(found.length ? 0 : -1);
    field().setAttribute("aria-expanded", String(found.length > 0));
    list().hidden = !found.length;
    say(wanted && all.length && !found.length ? field().dataset.none : "");
  }

  /** @param {number} k */
  function activate(k) {
    active = k;
    for (const [at, option] of [...list().children].entries())
      option.setAttribute("aria-selected", String(at === k));
    if (k < 0) field().removeAttribute("aria-activedescendant");
    else field().setAttribute("aria-activedescendant", `found-${k}`);
    list().children[k]?.scrollIntoView({ block: "nearest" });
  }

  /** @param {string | undefined} text */
  const say = (text) => {
    find(element, ".search p").textContent = text ?? "";
  };
  /** @param {string} [text] */
  function close(text) {
    list().hidden = true;
    field().setAttribute("aria-expanded", "false");
    say(text);
  }

  /** @param {number} k */
  function take(k) {
    if (!found[k]) return;
    const [, index] = found[k];
    field().value = "";
    close();
    choose(index);
  }

  element.addEventListener("focusin", (event) => {
    if (event.target === field()) fetchLabels();
  });
  element.addEventListener("focusout", (event) => {
    if (event.target === field()) close();
  });
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
  element.addEventListener("pointerdown", (event) => {
    // before the field loses the focus
    const option = closest(event, ".search [role=option]");
    if (!option) return;
    event.preventDefault();
    take([...list().children].indexOf(option));
  });
}
