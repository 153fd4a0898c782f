// @ts-check
// The strip of methods and the trust meter: every method's map of one label, and how each one did when
// what it marks was taken away.

import { el } from "../explorer/elements.js";
import { isSigned, SCHEMA } from "../explorer/state.js";
import { labelName, shortName } from "../explorer/words.js";
import { question } from "../glossary.js";
import { curves, mapCanvas, meter, signed } from "./charts.js";
import { jobBar, startJob } from "./jobs.js";

/** The explorer's settings that show this method's map.
 * @param {string} method
 * @param {number} label
 * @returns {Partial<State>} */
export function stateOf(method, label) {
  const { layer, head, query, direction, residual, discard } = SCHEMA.defaults;
  const untouched = { layer, head, query, direction, residual, discard };
  if (method === "raw") return { ...untouched, map: "attention" };
  if (method === "rollout") return { ...untouched, map: "rollout" };
  return { map: method, label, minus: null };
}

/** The method whose map the explorer shows just now, or "shown": some other map.
 * @param {State} state
 * @param {number} layers */
export function methodOf(state, layers) {
  if (state.label !== null) return state.minus === null ? state.map : "shown";
  const plain = state.layer === layers - 1 && state.head === "mean" && !state.query;
  if (plain && state.map === "attention" && state.direction === "from") return "raw";
  return plain &&
    state.map === "rollout" &&
    state.residual === SCHEMA.defaults.residual &&
    !state.discard
    ? "rollout"
    : "shown";
}

/** What decides about a map in the explorer; opacity and colours do not.
 * @param {State} state */
function mapKey(state) {
  const { map, layer, head, query, direction, below, part, residual, discard } = state;
  return JSON.stringify(
    state.label === null
      ? [map, layer, head, query, direction, below, part, residual, discard]
      : [map, state.label, state.minus],
  );
}

/** The glossary's words for the methods.
 * @param {Trust} trust */
const methodWords = ({ methods }) =>
  methods.map((method) => (method === "raw" ? "attention" : method));

/** @param {Trust} trust */
export function buildStrip(trust) {
  const { ui, t } = trust;
  ui.tiles = el("div", { class: "why-tiles" });
  ui.remove = el("div", { class: "why-choice", role: "radiogroup", "aria-label": t("remove") });
  for (const how of trust.removals) {
    const input = el("input", {
      type: "radio",
      name: "why-remove",
      value: how,
      onchange: () => {
        trust.remove = how;
        showStrip(trust);
      },
    });
    input.checked = how === trust.remove;
    ui.remove.append(
      el("label", { title: t(`remove_${how}_hint`) }, input, el("span", {}, t(`remove_${how}`))),
    );
  }
  ui.checkAll = el(
    "button",
    { type: "button", class: "why-button why-main", onclick: () => checkAll(trust) },
    t("check_all"),
  );
  ui.checkOne = el(
    "button",
    { type: "button", class: "why-button", onclick: () => checkShown(trust) },
    t("check_one"),
  );
  ui.thorough = el(
    "button",
    {
      type: "button",
      class: "why-button",
      title: t("check_thorough_hint"),
      onclick: () => checkAll(trust, true),
    },
    t("check_thorough"),
  );
  ui.best = el("p", { class: "why-best", role: "status" });
  ui.rule = el("p", { class: "why-muted" }, t("strip_rule"));
  ui.about = el("p");
  ui.verdict = el("div", { class: "why-verdict" });
  return el(
    "section",
    { class: "why-strip", "aria-label": t("strip_title") },
    el("h3", {}, t("strip_title"), " ", question(trust.language, methodWords(trust))),
    ui.about,
    ui.tiles,
    ui.rule,
    el(
      "div",
      { class: "why-row" },
      el(
        "span",
        { class: "why-field" },
        el("span", { class: "why-muted" }, t("remove")),
        ui.remove,
      ),
      el("span", { class: "why-row" }, ui.checkAll, ui.thorough, ui.checkOne),
    ),
    jobBar(trust, "trust"),
    ui.best,
    ui.verdict,
  );
}

/** @param {Trust} trust */
const resultKey = ({ label, remove }) => `${label} ${remove}`;

/** Quickly, or thoroughly: then patches are removed in two ways.
 * @param {Trust} trust
 * @param {boolean} [thorough] */
function checkAll(trust, thorough = false) {
  const { label, remove } = trust;
  startJob(trust, { kind: "trust", label, remove, thorough }, ({ ways, ...result }) => {
    for (const way of ways)
      trust.results.set(`${label} ${way.remove}`, { ...result, ...way, thorough });
    if (!resultOf(trust, trust.selected))
      trust.selected = result.best?.method ?? SCHEMA.class_maps[0];
    showStrip(trust);
  });
}

/** Only the map that is in the explorer now.
 * @param {Trust} trust */
function checkShown(trust) {
  const { label, remove } = trust,
    state = trust.explorer.state,
    key = `${resultKey(trust)} ${mapKey(state)}`;
  trust.selected = "shown";
  startJob(trust, { kind: "trust", label, remove, state }, ({ ways: [way], ...result }) => {
    trust.results.set(key, { ...result, ...way });
    showStrip(trust);
  });
}

/** What is known of a tile's map: its curves, its score, its verdict.
 * @param {Trust} trust
 * @param {string} method */
function resultOf(trust, method) {
  const all = trust.results.get(resultKey(trust)),
    state = trust.explorer.state;
  if (method === "shown") {
    const own = trust.results.get(`${resultKey(trust)} ${mapKey(state)}`);
    if (own) return { ...own, ...own.maps.shown };
    method = methodOf(state, trust.explorer.data.layers);
  }
  return all?.maps[method] ? { ...all, ...all.maps[method] } : null;
}

/** Which method did best by this test, on this picture.
 * @param {Trust} trust */
function showBest(trust) {
  const { ui, t } = trust,
    known = trust.results.get(resultKey(trust)),
    best = known?.best;
  /**
   * @param {string} method
   * @param {number} score */
  const named = (method, score) => `${t(`method_${method}`)} (${signed(score)})`;
  ui.best.dataset.method = best?.method ?? "";
  const words = [];
  if (best?.method) {
    const second = best.second && named(best.second, best.second_score);
    words.push(
      t(second ? "best_before" : "best", { best: named(best.method, best.score), second }),
    );
  } else if (best) words.push(t("best_none"));
  if (known?.thorough) words.push(t("best_thorough"));
  if (best) words.push(t("best_nowhere"));
  ui.best.textContent = words.join(" ");
}

/** @param {Trust} trust */
export function showStrip(trust) {
  const { ui, t, explorer, label } = trust;
  if (!trust.ready) return;
  const maps = trust.maps.get(label),
    name = labelName(trust.explorer, label);
  ui.about.textContent = t("strip_about", { label: name });
  trust.root.dataset.label = String(label);
  const tiles = ["shown", ...trust.methods].map((method) =>
    methodTile(trust, method, maps?.[method]),
  );
  keepFocus(ui.tiles, tiles, (node) => node.dataset.method);
  for (const input of ui.remove.querySelectorAll("input"))
    input.checked = input.value === trust.remove;
  ui.checkAll.disabled = ui.thorough.disabled = Boolean(trust.job);
  showBest(trust);
  ui.checkOne.disabled = Boolean(trust.job) || !explorer.values;
  showVerdict(trust);
}

/** The explorer shows another map; all else is as it was.
 * @param {Trust} trust */
export function showShown(trust) {
  if (!trust.ready) return;
  const old = trust.ui.tiles.querySelector("[data-method=shown]"),
    next = methodTile(trust, "shown");
  if (!old) return showStrip(trust);
  const focused = old === document.activeElement;
  old.replaceWith(next);
  if (focused) next.focus();
  trust.ui.checkOne.disabled = Boolean(trust.job) || !trust.explorer.values;
  showVerdict(trust);
}

/**
 * @param {Trust} trust
 * @param {string} method
 * @param {Vector} [values] */
function methodTile(trust, method, values) {
  const { t, explorer, label } = trust,
    shown = method === "shown";
  const known = resultOf(trust, method),
    state = explorer.state;
  const map = shown ? explorer.values : values;
  const picture = map
    ? mapCanvas(trust, map, 200, isSigned(shown ? state : { map: method }))
    : el("span", { class: "why-blank" });
  const verdict = known
    ? `${signed(known.score)} · ${t(`verdict_${known.verdict.replace(" ", "_")}`)}`
    : "\u00a0";
  const choose = () => {
    trust.selected = method;
    if (!shown) explorer.set(stateOf(method, label));
    showStrip(trust);
  };
  return el(
    "button",
    {
      type: "button",
      class: "why-tile",
      "data-method": method,
      onclick: choose,
      "aria-pressed": String(trust.selected === method),
      title: t(`about_${method}`),
      disabled: !map,
      "data-score": known ? String(known.score) : null,
      "data-verdict": known?.verdict ?? null,
    },
    picture,
    el("strong", {}, t(`method_${method}`)),
    known ? meter(known.score, known.band) : el("span", { class: "why-meter off" }),
    el("small", { class: known ? "why-score" : "" }, verdict),
  );
}

/** The curves of the chosen tile, and what they say.
 * @param {Trust} trust */
function showVerdict(trust) {
  const { ui, t, selected, remove } = trust,
    known = resultOf(trust, selected);
  ui.verdict.dataset.method = selected;
  if (!known) {
    ui.verdict.replaceChildren(el("p", { class: "why-placeholder" }, t("verdict_empty")));
    return;
  }
  const name = shortName(known.name),
    sentence = t(`sentence_${known.verdict.replace(" ", "_")}`, { label: name });
  const words = { x: t("axis_x"), y: t("axis_y", { label: name }) };
  const legend = ["insertion", "deletion", "band"].map((key) =>
    el("li", {}, el("i", { class: key }), t(`curve_${key}`, { orders: known.random.length })),
  );
  ui.verdict.replaceChildren(
    curves(known, `${t(`method_${selected}`)}: ${sentence}`, words),
    el(
      "div",
      { class: "why-says" },
      el("h4", {}, t(`method_${selected}`)),
      el("p", { class: `why-sentence ${known.verdict.replace(" ", "-")}` }, sentence),
      el(
        "p",
        {},
        t("score_is", { score: signed(known.score), band: known.band.toFixed(2) }),
        " ",
        question(trust.language, ["score", "band"]),
      ),
      el("ul", { class: "why-legend" }, ...legend),
      el("p", { class: "why-muted" }, t(`remove_${remove}_hint`)),
    ),
  );
}

/** New children; whoever had the focus keeps it.
 * @param {HTMLElement} parent
 * @param {HTMLElement[]} children
 * @param {(node: any) => string} nameOf */
function keepFocus(parent, children, nameOf) {
  const held = parent.contains(document.activeElement) && nameOf(document.activeElement);
  parent.replaceChildren(...children);
  if (held) children.find((node) => nameOf(node) === held)?.focus();
}
