// @ts-check
// The section "Can I trust this map?". It stands beside the explorer: it shows the same picture, asks
// about the same label, and opens its maps there.

import { fromBase64 } from "../explorer/blob.js";
import { el } from "../explorer/elements.js";
import { SCHEMA } from "../explorer/state.js";
import { fill, labelName } from "../explorer/words.js";
import { answerOf, componentValue, mirrorProgress } from "../gradio.js";
import { explorerId, whenExplorerIsThere } from "../page/explorer.js";
import { cancelJob, loseJob, receiveNews, showJob, showOutcome, showQueue } from "./jobs.js";
import { buildHeads, buildKnockout, showChanges, showKnockout } from "./knockout.js";
import { emptyOff } from "./off.js";
import { drawPaint } from "./paint.js";
import { buildRandom, showRandom } from "./random.js";
import { buildStrip, showShown, showStrip } from "./strip.js";

/** @param {HTMLElement} element
 * @param {GradioComponent} gradio
 * @param {TrustSetup} setup */
export function mount(element, gradio, setup) {
  whenExplorerIsThere((explorer) => mountTrust(element, gradio, setup, explorer));
}

/**
 * @param {HTMLElement} element
 * @param {GradioComponent} gradio
 * @param {TrustSetup} setup
 * @param {ExplorerHandle} explorer */
function mountTrust(element, { props, watch, trigger, server }, setup, explorer) {
  const { texts, methods, removals, fills } = setup;
  const root = /** @type {HTMLElement} */ (element.querySelector(".why"));
  /** @type {Trust} */
  const trust = {
    root,
    props,
    trigger,
    server,
    texts,
    methods,
    removals,
    fills,
    explorer,
    ui: {},
    language: "en",
    id: null,
    classes: 0,
    label: null,
    ready: false,
    near: false,
    remove: removals[0],
    selected: SCHEMA.class_maps[0],
    method: SCHEMA.class_maps[0],
    job: null,
    runs: 0,
    turn: 0,
    ...nothingKnown(),
    showAll: () => showAll(trust),
    t: (key, values = {}) => fill(texts[trust.language][key], values),
  };
  buildTrust(trust);
  watch("value", () => changePicture(trust));
  watch("news", () => receiveNews(trust, props.news));
  watch("language", () => buildTrust(trust));
  document.addEventListener("vitx-state", () => syncWithExplorer(trust));
  document.addEventListener("vit-lost", () => loseJob(trust));
  mirrorProgress("working", ({ place, failed }) => showQueue(trust, place, failed));
  new IntersectionObserver(
    (entries) => {
      if (!entries.at(-1).isIntersecting) return;
      trust.near = true;
      fetchMaps(trust);
    },
    { rootMargin: "200px" },
  ).observe(root);
  new ResizeObserver(() => {
    if (trust.ready) drawPaint(trust);
  }).observe(root);
}

function nothingKnown() {
  return {
    maps: new Map(),
    results: new Map(),
    cascades: new Map(),
    walls: new Map(),
    off: emptyOff(),
    without: null,
    trouble: "",
    cursor: null,
    brush: null,
  };
}

/** Another picture, or none.
 * @param {Trust} trust */
function changePicture(trust) {
  const value = componentValue(trust.props);
  if ((value?.id ?? null) === trust.id) return;
  if (trust.job) cancelJob(trust);
  Object.assign(trust, nothingKnown(), {
    id: value?.id ?? null,
    classes: value?.classes ?? 0,
    label: null,
    ready: false,
  });
  trust.turn++;
  syncWithExplorer(trust);
}

/** Ready when the explorer has the same picture; then the label is the explorer's, or the predicted.
 * @param {Trust} trust */
function syncWithExplorer(trust) {
  const { explorer, id, classes } = trust,
    here = explorerId() === id;
  const ready = Boolean(id && classes && here && explorer.data),
    fresh = ready && !trust.ready;
  trust.ready = ready;
  if (fresh) buildHeads(trust);
  const empty = !id ? "empty" : !classes ? "headless" : "";
  trust.root.dataset.state = empty || (ready ? "ready" : "waiting");
  trust.ui.empty.textContent = empty ? trust.t(empty) : "";
  trust.ui.empty.hidden = !empty;
  trust.ui.body.hidden = Boolean(empty);
  if (!ready) return;
  trust.label = explorer.state.label ?? explorer.data.top[0][2];
  fetchMaps(trust);
  const { colours, picture } = explorer.state,
    looks = `${trust.label} ${colours} ${picture} ${labelName(trust.explorer, trust.label)}`;
  trust.stale ||= fresh || looks !== trust.looks; // otherwise only the map in the explorer is another one
  trust.looks = looks;
  cancelAnimationFrame(trust.frame);
  trust.frame = requestAnimationFrame(() => (trust.stale ? showAll(trust) : showShown(trust)));
  if (fresh) showChanges(trust);
}

/** @param {Trust} trust */
function showAll(trust) {
  if (!trust.ready) return;
  trust.stale = false;
  showStrip(trust);
  showRandom(trust);
  showKnockout(trust);
}

/** The six maps of a label, when the section is near the screen; once.
 * @param {Trust} trust */
async function fetchMaps(trust) {
  const { id, label, maps, server, language, t } = trust;
  if (!trust.ready || !trust.near || maps.has(label)) return;
  maps.set(label, null); // on its way
  let answer;
  try {
    answer = await answerOf(server.method_maps, { id, label, language }, t("lost"));
  } catch (error) {
    if (id !== trust.id) return;
    maps.delete(label);
    return showOutcome(trust, "trust", error.message, "failed");
  }
  if (id !== trust.id) return;
  const all = new Float32Array(fromBase64(answer.data).buffer),
    size = all.length / answer.methods.length;
  maps.set(
    label,
    Object.fromEntries(
      answer.methods.map((name, k) => [name, all.subarray(k * size, (k + 1) * size)]),
    ),
  );
  showStrip(trust);
}

/** @param {Trust} trust */
function buildTrust(trust) {
  trust.language = trust.texts[trust.props.language] ? trust.props.language : "en";
  const { ui, root, t } = trust;
  ui.jobs = {};
  ui.empty = el("p", { class: "why-empty" }, t("empty"));
  ui.body = el(
    "div",
    { class: "why-body" },
    el("p", { class: "why-lead" }, t("lead")),
    buildStrip(trust),
    buildRandom(trust),
    buildKnockout(trust),
  );
  root.replaceChildren(ui.empty, ui.body);
  trust.ready = false;
  if (trust.job) showJob(trust);
  syncWithExplorer(trust);
}
