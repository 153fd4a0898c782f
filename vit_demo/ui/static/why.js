// The section "Can I trust this map?". It stands beside the explorer: it shows the same picture, asks
// about the same label, and opens its maps there. Long questions go through Gradio's queue, one at a time.
// `why_chart`, `why_strip`, `why_random` and `why_knockout` come before this file.

let V = null; // the explorer's drawing, once it is there

const bytesOf = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));

function mountWhy(root, { props, watch, trigger, server, texts }) {
  if (!globalThis.ViTExplorer || !document.querySelector("#explorer .vitx")?.explorer) {
    return void requestAnimationFrame(() => mountWhy(root, { props, watch, trigger, server, texts }));
  }
  V = globalThis.ViTExplorer;
  const why = { root, props, trigger, server, texts, ui: {}, language: "en", id: null, classes: 0, label: null,
    ready: false, near: false, remove: "tokens", selected: "contribution", method: "contribution", job: null, runs: 0,
    explorer: document.querySelector("#explorer .vitx").explorer, ...nothingKnown() };
  why.t = (key, values = {}) => V.fill(texts[why.language][key], values);
  build(why);
  watch("value", () => update(why));
  watch("news", () => hear(why, props.news));
  watch("language", () => build(why));
  document.addEventListener("vitx-state", () => follow(why));
  mirrorQueue(why);
  new IntersectionObserver(([entry]) => {
    if (!entry.isIntersecting) return;
    why.near = true;
    fetchMaps(why);
  }, { rootMargin: "200px" }).observe(root);
  new ResizeObserver(() => { if (why.ready) drawPaint(why); }).observe(root);
}

function nothingKnown() {
  return { maps: new Map(), results: new Map(), cascades: new Map(), walls: new Map(), off: emptyOff(),
    without: null, trouble: "", cursor: null, brush: null };
}

// ---- In step with the page

/** Another picture, or none. */
function update(why) {
  const value = typeof why.props.value === "string" && why.props.value ? JSON.parse(why.props.value) : why.props.value;
  if ((value?.id ?? null) === why.id) return;
  if (why.job) cancelJob(why);
  Object.assign(why, nothingKnown(), { id: value?.id ?? null, classes: value?.classes ?? 0, label: null, ready: false });
  why.turn = (why.turn ?? 0) + 1;
  follow(why);
}

/** Ready when the explorer has the same picture; then the label is the explorer's, or the predicted. */
function follow(why) {
  const { explorer, id, classes } = why, here = document.querySelector("#explorer .vitx").dataset.id === id;
  const ready = Boolean(id && classes && here && explorer.data), fresh = ready && !why.ready;
  why.ready = ready;
  if (fresh) buildHeads(why);
  const empty = !id ? "empty" : !classes ? "headless" : "";
  why.root.dataset.state = empty || (ready ? "ready" : "waiting");
  why.ui.empty.textContent = empty ? why.t(empty) : "";
  why.ui.empty.hidden = !empty;
  why.ui.body.hidden = Boolean(empty);
  if (!ready) return;
  why.label = explorer.state.label ?? explorer.data.top[0][2];
  fetchMaps(why);
  const looks = `${why.label} ${explorer.state.colours} ${labelOf(why, why.label)}`;
  why.stale ||= fresh || looks !== why.looks; // otherwise only the map in the explorer is another one
  why.looks = looks;
  cancelAnimationFrame(why.frame);
  why.frame = requestAnimationFrame(() => (why.stale ? showAll(why) : showShown(why)));
  if (fresh) showChanges(why);
}

function showAll(why) {
  if (!why.ready) return;
  why.stale = false;
  showStrip(why);
  showRandom(why);
  showKnockout(why);
}

/** The maps of a label, when the section is near the screen; once. */
async function fetchMaps(why) {
  const { id, label, maps, server, language } = why;
  if (!why.ready || !why.near || maps.has(label)) return;
  maps.set(label, null); // on its way
  const answer = await server.method_maps({ id, label, language });
  if (id !== why.id) return;
  if (!answer?.data) {
    maps.delete(label);
    return say(why, "trust", answer?.error ?? why.t("failed"), "failed");
  }
  const all = new Float32Array(bytesOf(answer.data).buffer), size = all.length / answer.methods.length;
  maps.set(label, Object.fromEntries(answer.methods.map((name, k) => [name, all.subarray(k * size, (k + 1) * size)])));
  showStrip(why);
}

function labelOf({ explorer }, label) {
  const known = explorer.classes.get(label)?.name ?? explorer.data.top.find(([, , index]) => index === label)?.[0];
  return V.shortName(known ?? String(label));
}

function build(why) {
  why.language = why.texts[why.props.language] ? why.props.language : "en";
  const { ui, root, t } = why, { el } = V;
  ui.jobs = {};
  ui.empty = el("p", { class: "why-empty" }, t("empty"));
  ui.body = el("div", { class: "why-body" }, el("p", { class: "why-lead" }, t("lead")),
    buildStrip(why), buildRandom(why), buildKnockout(why));
  root.replaceChildren(ui.empty, ui.body);
  why.ready = false;
  if (why.job) showJob(why);
  follow(why);
}

/** New children; whoever had the focus keeps it. */
function keepFocus(parent, children, nameOf) {
  const held = parent.contains(document.activeElement) && nameOf(document.activeElement);
  parent.replaceChildren(...children);
  if (held) children.find((node) => nameOf(node) === held)?.focus();
}

// ---- Long questions: one at a time, with a bar and a way out

function jobBar(why, kind) {
  const { el } = V, { ui, t } = why;
  const bar = el("div", { class: "why-bar-box" }, el("i"));
  const words = el("span", { class: "why-job-words", role: "status" });
  const cancel = el("button", { type: "button", class: "why-button", hidden: true, onclick: () => cancelJob(why, true) }, t("cancel"));
  ui.jobs[kind] = el("div", { class: "why-job", "data-job": kind, "data-state": "idle" }, bar, words, cancel);
  return ui.jobs[kind];
}

function startJob(why, request, done) {
  if (why.job) return;
  const run = `${why.id} ${++why.runs}`;
  why.job = { run, kind: request.kind, done, at: 0, of: 0, queue: "" };
  showAll(why);
  showJob(why);
  why.trigger("submit", { ...request, run, id: why.id, language: why.language });
}

/** What the server says about the work: how far it is, what came out, what went wrong. */
function hear(why, news) {
  const { job } = why;
  if (!job || !news || news.run !== job.run) return;
  if (news.total) Object.assign(job, { at: news.done, of: news.total });
  if (news.result) {
    finishJob(why, "done", "");
    job.done(news.result);
  } else if ("error" in news) finishJob(why, "failed", news.error || why.t("failed"));
  else showJob(why);
}

function cancelJob(why, wanted = false) {
  if (!why.job) return;
  why.trigger("stop");
  finishJob(why, "cancelled", wanted ? why.t("cancelled") : "");
}

function finishJob(why, state, words) {
  const { kind } = why.job;
  why.job = null;
  say(why, kind, words, state);
  if (why.ready) showAll(why);
}

function say({ ui }, kind, words, state) {
  const node = ui.jobs[kind], [, text, cancel] = node.children;
  node.dataset.state = state;
  text.textContent = words;
  cancel.hidden = true;
}

function showJob(why) {
  const { job, ui, t } = why, node = ui.jobs[job.kind], [bar, words, cancel] = node.children;
  const share = job.of ? job.at / job.of : 0;
  node.dataset.state = job.of ? "running" : "waiting";
  node.dataset.done = `${job.at}/${job.of}`;
  bar.firstChild.style.width = `${100 * share}%`;
  words.textContent = job.of ? t("running", { percent: Math.round(100 * share) }) : `${t("waiting")} ${job.queue}`;
  cancel.hidden = false;
}

/** Gradio knows the place in the queue: its words stand beside the bar. */
function mirrorQueue(why) {
  const status = document.querySelector("#working");
  if (!status) return requestAnimationFrame(() => mirrorQueue(why));
  new MutationObserver(() => {
    if (why.job && status.querySelector(".error")) return finishJob(why, "failed", why.t("failed"));
    if (!why.job || why.job.of) return;
    const words = status.querySelector(".meta-text, .meta-text-center")?.textContent ?? "";
    why.job.queue = (words.match(/queue: *\d+\/\d+/) ?? [""])[0].replace("queue:", "");
    showJob(why);
  }).observe(status, { childList: true, characterData: true, subtree: true });
}
