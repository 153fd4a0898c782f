// The strip of methods and the trust meter: every method's map of one label, and how each one did when
// what it marks was taken away.

const METHODS = ["raw", "rollout", "gradient_rollout", "contribution", "relevance", "grad_cam", "random"];
const LAST = { layer: -1, head: "mean", query: null, direction: "from", residual: 0.5, discard: 0 };

/** The explorer's settings that show this method's map. */
function stateOf(method, label) {
  if (method === "raw") return { ...LAST, map: "attention" };
  if (method === "rollout") return { ...LAST, map: "rollout" };
  return { map: method, label, minus: null };
}

/** The method whose map the explorer shows just now, or "shown": some other map. */
function methodOf(state, layers) {
  if (state.label !== null) return state.minus === null ? state.map : "shown";
  const plain = state.layer === layers - 1 && state.head === "mean" && !state.query;
  if (plain && state.map === "attention" && state.direction === "from") return "raw";
  return plain && state.map === "rollout" && state.residual === 0.5 && !state.discard ? "rollout" : "shown";
}

/** What decides about a map in the explorer; opacity and colours do not. */
function mapKey({ map, layer, head, query, direction, below, residual, discard, label, minus }) {
  return JSON.stringify(label === null ? [map, layer, head, query, direction, below, residual, discard]
    : [map, label, minus]);
}

function buildStrip(why) {
  const { ui, t } = why, { el } = V;
  ui.tiles = el("div", { class: "why-tiles" });
  ui.remove = el("div", { class: "why-choice", role: "radiogroup", "aria-label": t("remove") });
  for (const how of ["tokens", "black", "blur"]) {
    const input = el("input", { type: "radio", name: "why-remove", value: how,
      onchange: () => { why.remove = how; showStrip(why); } });
    input.checked = how === why.remove;
    ui.remove.append(el("label", { title: t(`remove_${how}_hint`) }, input, el("span", {}, t(`remove_${how}`))));
  }
  ui.checkAll = el("button", { type: "button", class: "why-button why-main", onclick: () => checkAll(why) }, t("check_all"));
  ui.checkOne = el("button", { type: "button", class: "why-button", onclick: () => checkShown(why) }, t("check_one"));
  ui.rule = el("p", { class: "why-muted" }, t("strip_rule"));
  ui.about = el("p");
  ui.verdict = el("div", { class: "why-verdict" });
  return el("section", { class: "why-strip", "aria-label": t("strip_title") },
    el("h3", {}, t("strip_title")), ui.about, ui.tiles, ui.rule,
    el("div", { class: "why-row" }, el("span", { class: "why-field" }, el("span", { class: "why-muted" }, t("remove")),
      ui.remove), el("span", { class: "why-row" }, ui.checkAll, ui.checkOne)),
    jobBar(why, "trust"), ui.verdict);
}

// ---- Asking

const resultKey = ({ label, remove }) => `${label} ${remove}`;

function checkAll(why) {
  const { label, remove } = why;
  startJob(why, { kind: "trust", label, remove }, (result) => {
    why.results.set(`${result.label} ${result.remove}`, result);
    showStrip(why);
  });
}

/** Only the map that is in the explorer now. */
function checkShown(why) {
  const { label, remove } = why, state = why.explorer.state, key = `${resultKey(why)} ${mapKey(state)}`;
  why.selected = "shown";
  startJob(why, { kind: "trust", label, remove, state }, (result) => {
    why.results.set(key, result);
    showStrip(why);
  });
}

/** What is known of a tile's map: its curves, its score, its verdict. */
function resultOf(why, method) {
  const all = why.results.get(resultKey(why)), state = why.explorer.state;
  if (method === "shown") {
    const own = why.results.get(`${resultKey(why)} ${mapKey(state)}`);
    if (own) return { ...own, ...own.maps.shown };
    method = methodOf(state, why.explorer.data.layers);
  }
  return all?.maps[method] ? { ...all, ...all.maps[method] } : null;
}

// ---- Showing

function showStrip(why) {
  const { ui, t, explorer, label } = why;
  if (!why.ready) return;
  const maps = why.maps.get(label), name = labelOf(why, label);
  ui.about.textContent = t("strip_about", { label: name });
  why.root.dataset.label = label;
  const tiles = ["shown", ...METHODS].map((method) => tile(why, method, maps?.[method]));
  keepFocus(ui.tiles, tiles, (node) => node.dataset.method);
  for (const input of ui.remove.querySelectorAll("input")) input.checked = input.value === why.remove;
  ui.checkAll.disabled = Boolean(why.job);
  ui.checkOne.disabled = Boolean(why.job) || !explorer.values;
  showVerdict(why);
}

/** The explorer shows another map; all else is as it was. */
function showShown(why) {
  if (!why.ready) return;
  const old = why.ui.tiles.querySelector("[data-method=shown]"), next = tile(why, "shown");
  if (!old) return showStrip(why);
  const focused = old === document.activeElement;
  old.replaceWith(next);
  if (focused) next.focus();
  why.ui.checkOne.disabled = Boolean(why.job) || !why.explorer.values;
  showVerdict(why);
}

function tile(why, method, values) {
  const { t, explorer, label } = why, { el } = V, shown = method === "shown";
  const known = resultOf(why, method), state = explorer.state;
  const map = shown ? explorer.values : values;
  const picture = map ? mapCanvas(why, map, 200, V.isSigned(shown ? state : { map: method, minus: null })) : el("span", { class: "why-blank" });
  const verdict = known ? `${signed(known.score)} · ${t(`verdict_${known.verdict.replace(" ", "_")}`)}` : "\u00a0";
  const choose = () => {
    why.selected = method;
    if (!shown) explorer.set(stateOf(method, label));
    showStrip(why);
  };
  return el("button", { type: "button", class: "why-tile", "data-method": method, onclick: choose,
    "aria-pressed": String(why.selected === method), title: t(`about_${method}`), disabled: !map,
    "data-score": known ? String(known.score) : null, "data-verdict": known?.verdict ?? null },
  picture, el("strong", {}, t(`method_${method}`)), known ? meter(known.score, known.band) : el("span", { class: "why-meter off" }),
  el("small", { class: known ? "why-score" : "" }, verdict));
}

/** The curves of the chosen tile, and what they say. */
function showVerdict(why) {
  const { ui, t, selected, remove } = why, { el } = V, known = resultOf(why, selected);
  ui.verdict.dataset.method = selected;
  if (!known) {
    ui.verdict.replaceChildren(el("p", { class: "why-placeholder" }, t("verdict_empty")));
    return;
  }
  const name = V.shortName(known.name), sentence = t(`sentence_${known.verdict.replace(" ", "_")}`, { label: name });
  const words = { x: t("axis_x"), y: t("axis_y", { label: name }) };
  const legend = ["insertion", "deletion", "band"].map((key) =>
    el("li", {}, el("i", { class: key }), t(`curve_${key}`, { orders: known.random.length })));
  ui.verdict.replaceChildren(curves(known, `${t(`method_${selected}`)}: ${sentence}`, words),
    el("div", { class: "why-says" },
      el("h4", {}, t(`method_${selected}`)),
      el("p", { class: `why-sentence ${known.verdict.replace(" ", "-")}` }, sentence),
      el("p", {}, t("score_is", { score: signed(known.score), band: known.band.toFixed(2) })),
      el("ul", { class: "why-legend" }, ...legend),
      el("p", { class: "why-muted" }, t(`remove_${remove}_hint`))));
}
