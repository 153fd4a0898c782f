// @ts-check
// The attention explorer: its state, what changes it, and how it is put on a page.

import { decode, fromBase64 } from "./blob.js";
import { build } from "./controls.js";
import { colourTables, greyCanvas } from "./draw.js";
import { el, message } from "./elements.js";
import { fetchClasses, fetchQuery, rememberClasses } from "./fetching.js";
import { createMaps } from "./maps.js";
import { baseVector, drawPicture, patchValues } from "./picture.js";
import { pythonOf } from "./python.js";
import { fitting, isClass, isOne, SCHEMA, useSchema } from "./state.js";
import { fillHeads, sync } from "./sync.js";
import { sheetOf } from "./takeaway.js";
import { drawWall, emptyWall, prepareWall } from "./wall.js";
import { fill } from "./words.js";

let serial = 0;

const OF_PICTURE = { query: null, label: null, minus: null }; // these do not outlive a picture

/** Everything one explorer knows. The functions of all modules take it as their first argument.
 * @param {ExplorerRoot} root
 * @param {Partial<MountOptions> & Pick<Setup, "texts" | "colours">} given */
function createExplorer(
  root,
  { texts, colours, onState = () => {}, fetchQueryBlob = null, fetchClassMaps = null },
) {
  /** @type {Explorer} */
  const explorer = {
    root,
    id: `vitx${++serial}`,
    texts,
    words: texts.en,
    tables: colourTables(colours),
    ui: {},
    onState,
    // What can be fetched; null without a server.
    fetchQueryBlob,
    fetchClassMaps,
    fetching: new Map(),
    // Of one picture.
    data: null,
    maps: null,
    picture: null,
    grey: null,
    classes: new Map(), // what is known of them, by number
    // What was asked for, what fits this model, and what to go back to.
    wish: {},
    state: { ...SCHEMA.defaults },
    lastHead: null,
    lastPlain: SCHEMA.defaults.map,
    trouble: "",
    // The patch under the pointer, and the one the keys have reached.
    hover: null,
    cursor: null,
    followPointer: matchMedia("(hover: hover)").matches,
    peek: false,
    learned: false,
    // What was drawn last, and what is to be drawn.
    base: { key: null, vector: null },
    shown: null,
    wall: emptyWall(),
    dirty: {},
    pending: 0,
    drawn: 0,
    load: 0,
    // Timers.
    playing: null,
    dwellTimer: null,
    reportTimer: null,
    t: (key, values = {}) => fill(explorer.words[key], values),
    set: (changes, quiet) => setState(explorer, changes, quiet),
    draw: (...parts) => draw(explorer, parts),
    togglePlay: () => togglePlay(explorer),
    stopPlaying: () => stopPlaying(explorer),
  };
  return explorer;
}

/**
 * @param {Explorer} explorer
 * @param {Partial<State>} changes
 * @param {boolean} [quiet] */
function setState(explorer, changes, quiet = false) {
  const { data, maps, state: before } = explorer;
  if (!data) return;
  const state = fitting({ ...before, ...withHead(explorer, changes) }, maps, data);
  explorer.state = state;
  explorer.trouble = "";
  if (!isClass(state)) explorer.lastPlain = state.map;
  explorer.wish = {
    ...explorer.wish,
    ...state,
    layer: state.layer === maps.L - 1 ? -1 : state.layer,
  };
  if (before.map !== state.map) fillHeads(explorer);
  sync(explorer);
  const unknown = state.query && !maps.knows(state.query);
  if (unknown || maps.needsFetch(state, state.query)) fetchQuery(explorer, state.query);
  fetchClasses(explorer);
  explorer.draw("picture", "wall");
  if (!quiet) reportState(explorer);
}

/** Rollout has no single head; whoever comes back from it finds the head of before.
 * @param {Explorer} explorer
 * @param {Partial<State>} changes */
function withHead(explorer, changes) {
  const { state } = explorer;
  if (isOne(state.head)) explorer.lastHead = state.head;
  const leaves = state.map === "rollout" && changes.map && changes.map !== "rollout";
  if (!leaves || state.head !== "mean" || explorer.lastHead === null) return changes;
  return { ...changes, head: changes.head ?? explorer.lastHead };
}

/** @param {Explorer} explorer */
function reportState(explorer) {
  clearTimeout(explorer.reportTimer);
  explorer.reportTimer = setTimeout(() => explorer.onState({ ...explorer.state }), 150);
}

/** @param {Explorer} explorer */
function togglePlay(explorer) {
  if (explorer.playing) return stopPlaying(explorer);
  const { L } = explorer.maps;
  let layer = -1;
  const next = () => {
    layer += 1;
    if (layer >= L) return stopPlaying(explorer);
    explorer.set({ layer }, true);
  };
  explorer.playing = setInterval(next, Math.max(180, Math.min(450, 5400 / L)));
  next();
  sync(explorer);
}

/** @param {Explorer} explorer */
function stopPlaying(explorer) {
  clearInterval(explorer.playing);
  explorer.playing = null;
  sync(explorer);
  reportState(explorer);
}

/** Draw some parts, once a frame: "picture", "tiles" (of the wall, as they are), "wall".
 * @param {Explorer} explorer
 * @param {Part[]} parts */
function draw(explorer, parts) {
  for (const part of parts) explorer.dirty[part] = true;
  explorer.pending ||= requestAnimationFrame(() => {
    const { dirty, root } = explorer;
    explorer.pending = 0;
    explorer.dirty = {};
    if (!root.isConnected) return;
    if (dirty.picture) drawPicture(explorer); // what one looks at comes first
    if (dirty.wall || dirty.tiles) drawWall(explorer);
    if (dirty.wall) prepareWall(explorer);
  });
}

/** Show a picture's data; its settings are those of before, then those in `changes`.
 * @param {Explorer} explorer
 * @param {ArrayBuffer} buffer
 * @param {Partial<State>} [changes]
 * @param {Record<string, ClassMaps>} [classes] */
async function show(explorer, buffer, changes = {}, classes = {}) {
  const mine = ++explorer.load,
    data = decode(buffer),
    [w, h] = data.picture.size;
  const picture = await createImageBitmap(
    new Blob([data.arrays.picture], { type: data.picture.kind }),
  );
  if (mine !== explorer.load) return;
  clearInterval(explorer.playing);
  const maps = createMaps(data),
    wish = { ...explorer.wish, ...OF_PICTURE, ...changes };
  Object.assign(explorer, {
    data,
    maps,
    picture,
    grey: greyCanvas(picture),
    wish,
    shown: null,
    state: fitting(wish, maps, data),
    playing: null,
    hover: null,
    cursor: null,
  });
  explorer.classes.clear();
  rememberClasses(explorer, classes);
  explorer.base.key = null;
  Object.assign(explorer.wall, { key: null, job: null, layers: [], scale: null });
  explorer.ui.stage.style.setProperty("--vx-aspect", w / h);
  message(explorer, "");
  fillHeads(explorer);
  explorer.set({});
}

/**
 * @param {Explorer} explorer
 * @param {string} [text] */
function clear(explorer, text = explorer.t("empty")) {
  const { ui } = explorer;
  clearInterval(explorer.playing);
  Object.assign(explorer, { load: explorer.load + 1, playing: null, data: null, maps: null });
  explorer.wall.job = null;
  message(explorer, text);
  sync(explorer);
  ui.say.textContent = ui.name.textContent = "";
  ui.tip.hidden = true;
  ui.wall.getContext("2d").clearRect(0, 0, ui.wall.width, ui.wall.height);
  explorer.draw("picture");
}

/** In the wanted language, else in the first of the browser's that is known.
 * @param {Explorer} explorer
 * @param {string | undefined} wanted */
function speak(explorer, wanted) {
  const { texts, data } = explorer,
    short = (name) => String(name || "").slice(0, 2);
  const found = [wanted, ...navigator.languages].map(short).find((name) => texts[name]);
  explorer.words = texts[found] ?? texts.en;
  build(explorer);
  message(explorer, data ? "" : explorer.t("empty"));
}

/** Build the explorer in `root`; what it gives back is also `root.explorer`.
 * @param {ExplorerRoot} root
 * @param {MountOptions} given
 * @returns {ExplorerHandle} */
export function mountExplorer(root, { css, schema, language, onTheme, ...setup }) {
  useSchema(schema);
  if (!document.getElementById("vitx-style")) {
    document.head.append(el("style", { id: "vitx-style" }, css));
  }
  const explorer = createExplorer(root, setup),
    themed = () => explorer.draw("wall");
  speak(explorer, language);
  onTheme?.(themed);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", themed);
  root.addEventListener("language", (event) =>
    speak(explorer, /** @type {CustomEvent} */ (event).detail),
  );
  root.explorer = {
    show: (buffer, changes, classes) => show(explorer, buffer, changes, classes),
    clear: (text) => clear(explorer, text),
    set: explorer.set,
    leaveClass: () => explorer.set({ map: explorer.lastPlain }),
    speak: (wanted) => speak(explorer, wanted),
    message: (text) => message(explorer, text),
    python: () => pythonOf(explorer),
    sheet: () => sheetOf(explorer),
    get state() {
      return { ...explorer.state };
    },
    get maps() {
      return explorer.maps;
    },
    get data() {
      return explorer.data;
    },
    get picture() {
      return explorer.picture;
    },
    get grey() {
      return explorer.grey;
    },
    get tables() {
      return explorer.tables;
    },
    get classes() {
      return explorer.classes;
    },
    get values() {
      // of the locked map, or null
      const vector = explorer.data && baseVector(explorer);
      return vector && patchValues(explorer, vector);
    },
  };
  return root.explorer;
}

/** As a page of its own: the data are inside.
 * @param {ExplorerRoot} root
 * @param {Setup} setup
 * @param {{ language: string; state: Partial<State>; classes: Record<string, ClassMaps> }} given */
export function mountPage(root, setup, { language, state, classes }) {
  const explorer = mountExplorer(root, { ...setup, language });
  explorer.show(
    fromBase64(document.getElementById("vitx-data").textContent).buffer,
    state,
    classes,
  );
  return explorer;
}
