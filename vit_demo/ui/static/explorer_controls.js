// The explorer's elements: built once a language, then kept in step with the state.
// `explorer.ui` holds those that are needed again, by name.

const ARROWS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

function el(tag, options = {}, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(options)) {
    const absent = value === null || value === undefined || value === false;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (!absent) node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children);
  return node;
}

// ---- Kinds of controls

/** A row of radio buttons that looks like one switch. `options`: [value, text], ... */
function choice({ ui, id, t, set }, key, options, hints = {}, change = (value) => set({ [key]: value })) {
  ui[key] = el("div", { class: "vx-choice", role: "radiogroup", "aria-label": t(key) });
  for (const [value, text] of options) {
    const input = el("input", { type: "radio", name: `${id}-${key}`, value: String(value),
      onchange: () => change(value) });
    ui[key].append(el("label", { title: hints[value] }, input, el("span", {}, text)));
  }
  return ui[key];
}

function range({ ui, id, t, set }, key, min, max, stepSize, hint) {
  const input = el("input", { type: "range", id: `${id}-${key}`, min, max, step: stepSize,
    oninput: () => set({ [key]: +input.value }) });
  const output = el("output", { for: input.id });
  Object.assign(ui, { [key]: input, [`${key}_out`]: output });
  return el("div", { class: "vx-field", title: hint },
    el("label", { for: input.id }, t(key)), input, output);
}

function select({ ui, id }, key, options, change) {
  ui[key] = el("select", { id: `${id}-${key}`, onchange: (event) => change(event.target.value) });
  for (const [value, text] of options) ui[key].append(el("option", { value }, text));
  return ui[key];
}

function button({ ui, t }, key, onclick, options = {}) {
  return (ui[key] = el("button", { type: "button", onclick, ...options }, t(key)));
}

function field({ t }, key, control, hint) {
  const tag = control.tagName === "DIV" ? "span" : "label"; // a row of radio buttons names itself
  return el("div", { class: "vx-field", title: hint },
    el(tag, { for: control.id || null }, t(key)), control);
}

function legend({ ui }, key) {
  return (ui[key] = el("div", { class: "vx-legend" },
    el("span"), el("i", { role: "presentation" }), el("span"), el("span", { class: "vx-muted" })));
}

// ---- The whole

function build(explorer) {
  const { root, texts, words } = explorer, ui = (explorer.ui = {});
  root.lang = Object.keys(texts).find((key) => texts[key] === words);
  ui.live = el("div", { class: "vx-live", "aria-live": "polite" });
  root.replaceChildren(
    el("div", { class: "vx-areas" }, pictureSection(explorer), wallSection(explorer)), ui.live);
  listenToPicture(explorer);
  listenToWall(explorer);
  fillHeads(explorer);
  sync(explorer);
  new ResizeObserver(() => draw(explorer, "picture", "wall")).observe(ui.stage);
  new ResizeObserver(() => draw(explorer, "wall")).observe(ui.wallBox);
  draw(explorer, "picture", "wall");
}

function pictureSection(explorer) {
  const { ui, id, t, set } = explorer;
  const kinds = [...PLAIN_MAPS, "class"]; // the last stands for all class maps
  const hints = Object.fromEntries(kinds.map((key) => [key, t(`${key}_hint`)]));
  const kind = choice(explorer, "map", kinds.map((key) => [key, t(key)]), hints,
    (map) => set({ map: map === "class" ? CLASS_MAPS[0] : map }));
  const method = select(explorer, "method", CLASS_MAPS.map((key) => [key, t(key)]), (map) => set({ map }));
  const chooseHead = (value) => set({ head: /^\d+$/.test(value) ? +value : value });
  ui.play = el("button", { type: "button", class: "vx-play", onclick: () => togglePlay(explorer) });
  ui.say = el("p", { class: "vx-say", id: `${id}-say` });
  return el("section", { class: "vx-explorer", "aria-label": t("explorer") },
    el("header", {}, el("h2", {}, t("explorer")), tools(explorer)),
    el("div", { class: "vx-row" }, kind,
      el("span", { class: "vx-head" }, el("label", { for: `${id}-head` }, t("head")),
        select(explorer, "head", [], chooseHead)),
      el("span", { class: "vx-head" }, el("label", { for: `${id}-method` }, t("method")), method)),
    stage(explorer),
    el("div", { class: "vx-row vx-layer" }, ui.play, range(explorer, "layer", 0, 0, 1)),
    queryRow(explorer),
    ui.say, legend(explorer, "legend"), moreSettings(explorer));
}

function tools(explorer) {
  const { ui, t } = explorer;
  const togglePeek = () => {
    explorer.peek = !explorer.peek;
    ui.peek.setAttribute("aria-pressed", explorer.peek);
    draw(explorer, "picture");
  };
  return el("div", { class: "vx-tools" },
    button(explorer, "peek", togglePeek, { "aria-pressed": String(explorer.peek) }),
    button(explorer, "png", () => savePng(explorer), { title: t("png_hint") }),
    button(explorer, "python", () => copyPython(explorer), { title: t("python_hint") }));
}

function stage({ ui, id, t }) {
  ui.canvas = el("canvas", { class: "vx-picture", tabindex: 0, role: "application",
    "aria-label": t("picture_label"), "aria-describedby": `${id}-say` });
  ui.tip = el("div", { class: "vx-tip", hidden: true, "aria-hidden": "true" });
  ui.note = el("p", { class: "vx-note" });
  return (ui.stage = el("div", { class: "vx-stage" }, ui.canvas, ui.tip, ui.note));
}

function queryRow(explorer) {
  const { ui, t, set } = explorer;
  ui.query = el("strong", { class: "vx-query-name" });
  ui.verb = el("span", { class: "vx-muted" });
  ui.backText = el("span");
  ui.back = el("button", { type: "button", class: "vx-back", 
    onclick: () => set(isClass(explorer.state) ? { map: explorer.lastPlain } : { query: null }) },
    "\u2715 ", ui.backText);
  return el("div", { class: "vx-row vx-query" }, el("span", {}, ui.verb, " ", ui.query), ui.back,
    el("span", { class: "vx-grow" }),
    choice(explorer, "direction", [["from", t("from")], ["to", t("to")]], { to: t("to_hint") }));
}

function moreSettings(explorer) {
  const { ui, id, t, set } = explorer;
  const follow = () => { explorer.follow = ui.follow.checked; draw(explorer, "picture"); };
  const reset = () => {
    const { map, layer, head, sort, label, minus } = explorer.state;
    stopPlaying(explorer);
    set({ ...DEFAULTS, map, layer, head, sort, label, minus });
  };
  const below = choice(explorer, "below", [["mean", t("below_mean")], ["same", t("below_same")]]);
  const smooth = choice(explorer, "smooth", [[false, t("smooth_no")], [true, t("smooth_yes")]]);
  const scale = choice(explorer, "scale", [["shared", t("scale_shared")], ["own", t("scale_own")]]);
  const colours = select(explorer, "colours", CHOICES.colours.map((name) => [name, name]),
    (name) => set({ colours: name }));
  ui.follow = el("input", { type: "checkbox", id: `${id}-follow`, onchange: follow });
  ui.more = el("details", { class: "vx-more" }, el("summary", {}, t("more")),
    el("div", { class: "vx-fields" },
      range(explorer, "residual", 0, 1, 0.05, t("residual_hint")),
      range(explorer, "discard", 0, 0.95, 0.05, t("discard_hint")),
      field(explorer, "below", below, t("below_hint")),
      range(explorer, "opacity", 0, 1, 0.05),
      field(explorer, "smooth", smooth),
      field(explorer, "colours", colours),
      field(explorer, "scale", scale),
      field(explorer, "follow", ui.follow),
      el("div", { class: "vx-field vx-end" }, button(explorer, "reset", reset))));
  return ui.more;
}

function wallSection(explorer) {
  const { ui, id, t } = explorer;
  const sort = choice(explorer, "sort", [["layer", t("sort_layer")], ["focus", t("sort_focus")]],
    { focus: t("sort_hint") });
  ui.wall = el("canvas", { class: "vx-tiles", tabindex: 0, role: "application",
    "aria-label": t("wall_label"), "aria-describedby": `${id}-name` });
  ui.wallBox = el("div", { class: "vx-wallbox" }, ui.wall);
  ui.name = el("p", { class: "vx-name", id: `${id}-name` });
  return el("section", { class: "vx-wall", "aria-label": t("wall") },
    el("header", {}, el("h2", {}, t("wall")), sort),
    ui.wallBox, ui.name, legend(explorer, "wallLegend"));
}

// ---- In step with the state

/** The heads this map can show. */
function fillHeads({ data, maps, state, ui, t }) {
  if (!data) return;
  const rollout = state.map === "rollout", all = FUSIONS.map((how) => [how, t(`heads_${how}`)]);
  const each = rollout ? [] : Array.from({ length: maps.H }, (_, head) => [head, t("to_head", { head: head + 1 })]);
  ui.head.replaceChildren(...[...all, ...each].map(([value, text]) => el("option", {
    value, disabled: !maps.fusions && rollout && value !== "mean" }, String(text))));
}

/** Controls show the state; the state stands in the dataset, for links and tests. */
function sync(explorer) {
  const { root, data, state, playing, ui, t } = explorer;
  root.dataset.ready = String(Boolean(data));
  root.dataset.state = JSON.stringify(state);
  root.classList.toggle("vx-empty", !data);
  for (const node of root.querySelectorAll("input, select, button")) node.disabled = !data;
  for (const key of ["map", "direction", "below", "smooth", "scale", "sort"]) {
    const chosen = key === "map" && isClass(state) ? "class" : String(state[key]);
    for (const input of ui[key].querySelectorAll("input")) input.checked = input.value === chosen;
  }
  for (const key of ["residual", "discard", "opacity"]) {
    ui[key].value = state[key];
    ui[`${key}_out`].textContent = `${Math.round(100 * state[key])} %`;
  }
  ui.colours.value = state.colours;
  ui.follow.checked = explorer.follow;
  ui.play.textContent = playing ? "\u275a\u275a" : "\u25b6";
  ui.play.title = t(playing ? "pause" : "play");
  ui.play.setAttribute("aria-label", ui.play.title);
  const verb = isClass(state) ? "query_for" : state.direction === "to" ? "query_to" : "query_from";
  ui.verb.textContent = `${t(verb)}:`;
  ui.back.hidden = !state.query && !isClass(state);
  ui.method.parentElement.hidden = !isClass(state);
  ui.head.parentElement.hidden = ui.direction.hidden = isClass(state);
  if (data) syncWithModel(explorer);
  else ui.layer_out.textContent = ui.query.textContent = "";
  root.dispatchEvent(new CustomEvent("vitx-state", { bubbles: true }));
}

/** What depends on the model: how many layers, which settings it allows. */
function syncWithModel(explorer) {
  const { data, maps, state, ui, ask, t } = explorer;
  ui.layer.max = maps.L - 1;
  ui.layer.value = state.layer;
  ui.layer_out.textContent = isClass(state) ? t("layer_all")
    : t("layer_of", { layer: state.layer + 1, layers: maps.L });
  ui.layer.setAttribute("aria-valuetext", ui.layer_out.textContent);
  ui.head.value = state.head;
  ui.backText.textContent = ui.back.title = isClass(state) ? t("back_class")
    : t("back", { readout: readoutName(explorer) });
  ui.back.setAttribute("aria-label", ui.back.title);
  ui.back.classList.toggle("vx-wide", isClass(state)); // its words are shown on a phone, too
  ui.direction.querySelector("[value=to]").disabled = state.map !== "attention" || !(maps.full || ask);
  ui.residual.disabled = ui.discard.disabled = state.map === "attention" || isClass(state);
  ui.discard.disabled ||= !maps.full && data.readout[1] - data.readout[0] > 1;
  const fixed = state.map !== "head_rollout" || !maps.full;
  for (const input of ui.below.querySelectorAll("input")) input.disabled = fixed;
  ui.below.title = maps.full ? "" : t("lean_off");
  syncClass(explorer);
}

/** What a class map has nothing to do with is off, and says why. */
function syncClass({ data, state, ui, ask, classes, t }) {
  const off = isClass(state), why = off ? t("class_off") : "";
  ui.method.value = off ? state.map : CLASS_MAPS[0];
  ui.method.querySelector("[value=random]").disabled = state.minus !== null;
  for (const key of ["layer", "play"]) ui[key].disabled = off;
  for (const input of ui.scale.querySelectorAll("input")) input.disabled = off;
  ui.colours.disabled = isSigned(state);
  ui.layer.closest(".vx-row").title = ui.scale.title = why;
  const button = ui.map.querySelector("[value=class]"), none = !data.classes || !(ask || classes.size);
  button.disabled = none;
  button.parentElement.title = t(none ? (data.classes ? "class_absent" : "class_none") : "class_hint");
}

function showLegend(explorer, key, scale) {
  const { ui, state, tables, t } = explorer, [low, bar, high, note] = ui[key].children;
  const one = key === "legend" && isClass(state), say = one ? (x) => amount(explorer, x) : percent;
  const kind = state.minus !== null ? "difference" : state.map === "gradient_rollout" ? "share"
    : ["random", "contribution"].includes(state.map) ? state.map : "logit";
  bar.style.background = gradient(one ? tableOf(state, tables) : tables[state.colours]);
  low.textContent = scale ? say(scale.low) : "";
  high.textContent = scale ? `${scale.clipped ? "\u2265 " : ""}${say(scale.high)}` : "";
  note.textContent = t(one ? `legend_${kind}` : state.direction === "to" ? "legend_to" : "legend");
}

/** For those who hear the page. */
function announce({ ui }, text) {
  ui.live.textContent = text;
}

/** A note in place of the picture. */
function message({ ui }, text) {
  ui.note.textContent = text;
  ui.note.hidden = !text;
}
