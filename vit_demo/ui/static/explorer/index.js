// @ts-check
// The attention explorer: its state, what changes it, and how it is put on a page.

import { useGlossary } from "../glossary.js";
import { decode, fromBase64 } from "./blob.js";
import { build } from "./controls.js";
import { colourTables, greyCanvas } from "./draw.js";
import { el, message } from "./elements.js";
import { fetchAhead, fetchClasses, rememberClasses } from "./fetching.js";
import { createMaps } from "./maps.js";
import { baseVector, drawNow, drawPicture, groundOf, patchValues, reveal } from "./picture.js";
import { pythonOf } from "./python.js";
import { fitting, isClass, isOne, isRollout, SCHEMA, useSchema, wallView } from "./state.js";
import { fillHeads, sync } from "./sync.js";
import { sheetOf } from "./takeaway.js";
import { drawWall, emptyWall, noTiles, prepareWall } from "./wall.js";
import { fill, useLabels } from "./words.js";

let serial = 0;

const OF_PICTURE = { query: null, label: null, minus: null }; // these do not outlive a picture

/** Everything one explorer knows. The functions of all modules take it as their first argument.
 * @param {ExplorerRoot} root
 * @param {Partial<MountOptions> & Pick<Setup, "texts" | "colours">} given */
function createExplorer(
  root,
  {
    texts,
    labels = {},
    colours,
    findings = {},
    onState = () => {},
    fetchRowsBlob = null,
    fetchClassMaps = null,
    openExample = null,
  },
) {
  /** @type {Explorer} */
  const explorer = {
    root,
    id: `vitx${++serial}`,
    texts,
    labels,
    words: texts.en,
    tables: colourTables(colours),
    ui: {},
    onState,
    // What can be fetched; null without a server.
    fetchRowsBlob,
    fetchClassMaps,
    openExample,
    fetching: new Map(),
    findingsOf: findings, // each model's
    // Of one picture.
    example: null, // its name, if it is one of ours
    image: "", // its file, for copied code
    data: null,
    maps: null,
    grounds: null,
    classes: new Map(), // what is known of them, by number
    // What was asked for, what fits this model, and what to go back to.
    wish: {},
    state: { ...SCHEMA.defaults },
    lastHead: 0,
    lastPart: SCHEMA.defaults.part,
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
    layerTimer: null,
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
  const state = fitting({ ...before, ...completed(explorer, changes) }, maps, data);
  explorer.state = state;
  explorer.trouble = "";
  if (!isClass(state)) explorer.lastPlain = state.map;
  explorer.wish = {
    ...explorer.wish,
    ...state,
    layer: state.layer === maps.L - 1 ? -1 : state.layer,
  };
  if (changes.wall) explorer.wall.chosen = true;
  fillHeads(explorer);
  sync(explorer);
  fetchAhead(explorer);
  fetchClasses(explorer);
  explorer.draw("picture", "wall");
  if (!quiet) reportState(explorer);
}

/** Rollout has no single head and no part; whoever comes back from it finds those of before.
 * @param {Explorer} explorer
 * @param {Partial<State>} changes
 * @returns {Partial<State>} */
function completed(explorer, changes) {
  const { state } = explorer,
    map = changes.map ?? state.map,
    head = changes.head ?? state.head;
  if (isOne(state.head)) explorer.lastHead = Number(state.head);
  if (state.map === "head_rollout") explorer.lastPart = state.part;
  const leaves = state.map === "rollout" && map !== "rollout" && state.head === "mean";
  const needed =
    map === "head_rollout" &&
    (isRollout({ ...state, ...changes, head }) || changes.part === "special");
  const kept = {};
  if (changes.head === undefined && !isOne(head) && (leaves || needed))
    kept.head = explorer.lastHead;
  if (map === "head_rollout" && state.map !== map) kept.part = explorer.lastPart;
  return { ...kept, ...changes };
}

/** @param {Explorer} explorer */
function reportState(explorer) {
  clearTimeout(explorer.reportTimer);
  explorer.reportTimer = setTimeout(() => explorer.onState({ ...explorer.state }), 150);
}

/** @param {Explorer} explorer */
function togglePlay(explorer) {
  if (explorer.playing) return stopPlaying(explorer);
  const { L } = explorer.maps,
    from = explorer.state.layer;
  let layer = from === L - 1 ? -1 : from; // on, from where it stands; from the last: once more
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
  if (explorer.maps) fetchAhead(explorer);
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
 * @param {Record<string, ClassMaps>} [classes]
 * @param {Pick<ExplorerValue, "example" | "image">} [file] */
async function show(explorer, buffer, changes = {}, classes = {}, file = {}) {
  const mine = ++explorer.load,
    data = decode(buffer),
    grounds = await groundsOf(data);
  if (mine !== explorer.load) return;
  clearInterval(explorer.playing);
  const maps = createMaps(data),
    wish = { ...explorer.wish, ...OF_PICTURE, ...changes };
  Object.assign(explorer, {
    example: file.example ?? null,
    image: file.image ?? "your-picture.jpg",
    data,
    maps,
    grounds,
    wish,
    shown: null,
    state: fitting(wish, maps, data),
    playing: null,
    hover: null,
    cursor: null,
  });
  useLabels(explorer);
  explorer.classes.clear();
  rememberClasses(explorer, classes);
  explorer.base.key = null;
  Object.assign(explorer.wall, { key: null, job: null, ...noTiles() });
  message(explorer, "");
  const wall = changes.wall ?? wallView(changes); // who opens a view finds it framed there
  explorer.set(wall ? { wall } : {});
}

/** What can lie under the map: the picture that the model saw, and the visitor's own, where it is finer.
 * @param {Payload} data
 * @returns {Promise<Explorer["grounds"]>} */
export async function groundsOf({ picture, preview, arrays }) {
  /**
   * @param {Uint8Array<ArrayBuffer>} bytes
   * @param {string} kind
   * @param {boolean} crisp */
  const open = async (bytes, kind, crisp) => {
    const colour = await createImageBitmap(new Blob([bytes], { type: kind }));
    return { colour, grey: greyCanvas(colour), crisp };
  };
  const seen = open(arrays.picture, picture.kind, Math.max(...picture.size) <= picture.crisp),
    own = preview ? open(arrays.preview, preview.kind, false) : seen;
  return { seen: await seen, own: await own };
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
  ui.tiles.getContext("2d").clearRect(0, 0, ui.tiles.width, ui.tiles.height);
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
  useLabels(explorer);
  build(explorer);
  message(explorer, data ? "" : explorer.t("empty"));
}

/** Build the explorer in `root`; what it gives back is also `root.explorer`.
 * @param {ExplorerRoot} root
 * @param {MountOptions} given
 * @returns {ExplorerHandle} */
export function mountExplorer(root, { css, schema, glossary, language, onTheme, ...setup }) {
  useSchema(schema);
  useGlossary(glossary);
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
    show: (buffer, changes, classes, file) => show(explorer, buffer, changes, classes, file),
    clear: (text) => clear(explorer, text),
    set: explorer.set,
    leaveClass: () => explorer.set({ map: explorer.lastPlain }),
    speak: (wanted) => speak(explorer, wanted),
    message: (text) => message(explorer, text),
    reveal: () => reveal(explorer),
    python: () => {
      drawNow(explorer);
      return pythonOf(explorer);
    },
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
    get ground() {
      return groundOf(explorer);
    },
    get grounds() {
      return explorer.grounds;
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
