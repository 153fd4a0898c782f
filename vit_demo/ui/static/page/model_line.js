// @ts-check
// One line about the model: what it knows, with the list of all of it; beside a small model the offer of
// a larger one; how far a download is; and why a model cannot be had, until the visitor does something else.

import { afterRender } from "../gradio.js";
import { closest, find } from "./dom.js";

/**
 * @param {HTMLElement} element
 * @param {GradioComponent} gradio */
export function mount(element, { props, watch, server }) {
  const language = () => document.documentElement.lang;
  let turn = 0,
    newest = props.news,
    closed = 0, // the wish whose failure needs no words any more
    settled = false; // a picture is there, and nothing is under way

  /** @param {string} state */
  const isSettled = (state) => state === "done" || state === "failed";
  settled = isSettled(document.documentElement.dataset.look);

  /** @param {string} tag @param {string} [text] */
  const make = (tag, text = "") =>
    Object.assign(document.createElement(tag), { textContent: text });

  // ---- A model on its way, or one that cannot be had

  function showNews() {
    // What is said of an older wish may arrive after the answer to a newer one.
    if ((props.news?.wish ?? 0) >= (newest?.wish ?? 0)) newest = props.news;
    const news = newest?.says && newest.wish !== closed ? newest : null,
      place = find(element, ".news");
    if (!place) return;
    place.replaceChildren();
    place.classList.toggle("failed", Boolean(news?.failed));
    element.toggleAttribute("data-busy", Boolean(news && !news.failed));
    if (!news) return;
    place.append(make("p", news.says[language()] ?? news.says.en));
    if (news.failed)
      place.append(...instead(news, place.dataset), closeButton(place.dataset.close));
    if (news.share === undefined) return;
    const bar = make("progress");
    Object.assign(bar, { value: news.share, max: 1 });
    bar.setAttribute("aria-label", place.textContent);
    place.append(bar);
  }

  /** Models that can be had, as buttons.
   * @param {any} news @param {DOMStringMap} words */
  function instead(news, words) {
    const models = /** @type {{ name: string; title: string }[]} */ (
      news.instead?.[language()] ?? []
    );
    if (!models.length) return [];
    const place = make("div", words.instead);
    place.className = "instead";
    for (const { name, title } of models) {
      const button = Object.assign(make("button", title), { type: "button", title: name });
      button.addEventListener("click", () => offer(name, title));
      place.append(button);
    }
    return [place];
  }

  /** @param {string} words */
  function closeButton(words) {
    const button = Object.assign(make("button", "\u2715"), { type: "button", className: "close" });
    button.setAttribute("aria-label", words);
    button.addEventListener("click", closeNews);
    return button;
  }

  function closeNews() {
    closed = newest?.wish;
    showNews();
  }

  /** Once a picture is there, the next look comes of something that the visitor has done since.
   * @param {{ state: string; busy: boolean }} look */
  function looked({ state, busy }) {
    if (busy && settled && newest?.failed) closeNews();
    settled = isSettled(state);
  }
  document.addEventListener("vit-look", (event) =>
    looked(/** @type {CustomEvent} */ (event).detail),
  );

  /** @param {string} name @param {string} [title] */
  const offer = (name, title) =>
    document.dispatchEvent(new CustomEvent("vit-model", { detail: { name, title } }));

  // ---- The offer

  /** @type {{ name: string; text: string; reason: string } | null} */
  let offered = null; // what is known of it

  async function showOffer() {
    if (!find(element, ".line")?.hasAttribute("data-small")) return;
    const mine = ++turn; // an answer that is on its way may be of another language
    find(element, ".offer").hidden = false; // its room is there from the beginning
    const answer = await server.imagenet_offer({ language: language() });
    if (mine !== turn || !answer?.name) return;
    offered = answer;
    fillOffer();
  }

  function fillOffer() {
    const { name, text, reason } = offered,
      button = find(element, ".offer button");
    find(element, ".offer").hidden = false;
    button.textContent = text;
    button.dataset.name = name;
    button.disabled = Boolean(reason);
    find(element, ".offer .reason").textContent = reason;
  }

  // Gradio may draw the line later than it says: for the first time, or again after the answer came.
  new MutationObserver(() => {
    const small = find(element, ".line")?.hasAttribute("data-small"),
      button = find(element, ".offer button");
    if (!small || !button || button.dataset.name) return;
    if (offered) fillOffer();
    else if (!turn) showOffer();
  }).observe(element, { childList: true, subtree: true, attributes: true });

  // ---- Everything it knows

  /** @param {boolean} yes */
  async function openThings(yes) {
    const things = find(element, "#things"),
      { model } = find(element, ".line").dataset;
    find(element, ".all")?.setAttribute("aria-expanded", String(yes));
    things.hidden = !yes;
    if (!yes || things.dataset.model === model) return;
    const answer = await server.known_labels({ model, language: language() });
    if (!answer?.labels)
      return things.replaceChildren(make("p", answer ? answer.error : things.dataset.lost));
    things.dataset.model = model;
    const items = answer.labels.map(([first, others]) => {
      const item = make("li", first);
      if (others) item.append(" ", make("small", others));
      return item;
    });
    const list = make("ul");
    list.append(...items);
    things.replaceChildren(list);
    things.tabIndex = 0;
  }

  const isOpen = () => find(element, "#things")?.hidden === false;
  element.addEventListener("click", (event) => {
    if (closest(event, ".all")) openThings(!isOpen());
    const button = closest(event, ".offer button");
    if (button && !button.disabled) offer(button.dataset.name);
  });
  document.addEventListener("pointerdown", (event) => {
    if (isOpen() && !closest(event, "#things, #knows .all")) openThings(false);
  });
  element.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !isOpen()) return;
    openThings(false);
    find(element, ".all").focus();
  });

  const show = () => {
    showNews();
    showOffer();
  };
  afterRender(watch, show);
  watch("news", showNews);
  addEventListener("online", showOffer);
  addEventListener("focus", () => {
    if (find(element, ".offer button")?.disabled) showOffer(); // the network may be back
  });
  show();
}
