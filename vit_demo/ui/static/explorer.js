// The attention explorer in the browser: its state, what changes it, and the places it is put in.
// `script()` in `explorer.py` lays the files explorer_*.js before this one, inside one function:
//   maths     from the blob to every map            controls  the elements
//   draw      numbers to pixels                     picture   the picture with its map
//   state     settings, their words, their Python   wall      the wall of heads

let serial = 0;
const OF_PICTURE = { query: null, label: null, minus: null }; // these do not outlive a picture

/** Everything one explorer knows. The functions of all files take it as their first argument. */
function createExplorer(root, { texts, colours, onState = () => {}, ask = null, askClasses = null }) {
  const explorer = {
    root, texts, onState,
    ask, askClasses, // fetch a query's rows, some classes' maps; null without a server
    classes: new Map(), lastPlain: DEFAULTS.map, trouble: "", // what is known of classes, by number
    id: `vitx${++serial}`, words: texts.en, tables: colourTables(colours), ui: {},
    data: null, maps: null, picture: null, grey: null, // of one picture
    wish: {}, state: { ...DEFAULTS }, lastHead: null, // what was asked for, and what fits this model
    hover: null, cursor: null, // the patch under the pointer, and the one the keys have reached
    follow: matchMedia("(hover: hover)").matches, peek: false, learned: false,
    base: { key: null, vector: null }, shown: null, wall: emptyWall(), // what was drawn last
    dirty: {}, pending: 0, drawn: 0, load: 0, asking: new Map(),
    playing: null, dwell: 0, told: 0, // timers
  };
  explorer.t = (key, values = {}) => fill(explorer.words[key], values);
  explorer.set = (changes, quiet) => setState(explorer, changes, quiet);
  return explorer;
}

// ---- The state

function setState(explorer, changes, quiet = false) {
  const { data, maps, state: before } = explorer;
  if (!data) return;
  const state = fitting({ ...before, ...withHead(explorer, changes) }, maps, data);
  explorer.state = state;
  explorer.trouble = "";
  if (!isClass(state)) explorer.lastPlain = state.map;
  explorer.wish = { ...explorer.wish, ...state, layer: state.layer === maps.L - 1 ? -1 : state.layer };
  if (before.map !== state.map) fillHeads(explorer);
  sync(explorer);
  const unknown = state.query && !maps.knows(state.query);
  if (unknown || maps.needsRows(state, state.query)) fetchRows(explorer, state.query);
  fetchClasses(explorer);
  draw(explorer, "picture", "wall");
  if (!quiet) tell(explorer);
}

/** Rollout has no single head; whoever comes back from it finds the head of before. */
function withHead(explorer, changes) {
  const { state } = explorer;
  if (isOne(state.head)) explorer.lastHead = state.head;
  const leaves = state.map === "rollout" && changes.map && changes.map !== "rollout";
  if (!leaves || state.head !== "mean" || explorer.lastHead === null) return changes;
  return { ...changes, head: changes.head ?? explorer.lastHead };
}

function tell(explorer) {
  clearTimeout(explorer.told);
  explorer.told = setTimeout(() => explorer.onState({ ...explorer.state }), 150);
}

/** Lean data: a patch's rows come when they are needed, once. */
function fetchRows(explorer, query) {
  const { ask, asking, maps } = explorer, key = JSON.stringify(query);
  if (!ask || maps.knows(query) || asking.has(key)) return;
  asking.set(key, maps);
  ask(query).then((buffer) => {
    if (maps !== explorer.maps) return;
    maps.remember(query, buffer);
    explorer.base.key = explorer.wall.key = null;
    draw(explorer, "picture", "wall");
  }).catch((error) => {
    if (maps === explorer.maps) announce(explorer, String(error.message || error));
  }).finally(() => { if (asking.get(key) === maps) asking.delete(key); });
}

/** The maps of a class come when somebody asks for it, once. */
function fetchClasses(explorer) {
  const { state, classes, askClasses, asking, maps } = explorer;
  const missing = [state.label, state.minus].filter((label) => label !== null && !classes.has(label));
  const key = `classes ${missing}`;
  if (!missing.length || asking.has(key)) return;
  if (!askClasses) { // a page without a server: only what is in the file
    const [first] = classes.keys(), other = first !== undefined && !classes.has(state.label);
    return explorer.set(other ? { label: first, minus: null } : { map: explorer.lastPlain });
  }
  asking.set(key, maps);
  askClasses(missing).then((found) => {
    if (maps !== explorer.maps) return;
    rememberClasses(explorer, found);
    sync(explorer);
    draw(explorer, "picture");
  }).catch((error) => {
    if (maps !== explorer.maps) return;
    explorer.set({ map: explorer.lastPlain });
    explorer.trouble = String(error.message || error);
    announce(explorer, explorer.trouble);
  }).finally(() => { if (asking.get(key) === maps) asking.delete(key); });
}

/** `found`: {number: {name, probability, data}}; data are (CLASS_MAPS x N) numbers in base64. */
function rememberClasses({ classes, maps: { N } }, found) {
  for (const [label, { name, probability, data }] of Object.entries(found)) {
    const all = new Float32Array(fromBase64(data).buffer), known = { name, probability };
    CLASS_MAPS.forEach((map, k) => { known[map] = all.subarray(k * N, (k + 1) * N); });
    classes.set(+label, known);
  }
}

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

function stopPlaying(explorer) {
  clearInterval(explorer.playing);
  explorer.playing = null;
  sync(explorer);
  tell(explorer);
}

/** Draw some parts, once a frame: "picture", "tiles" (of the wall, as they are), "wall". */
function draw(explorer, ...parts) {
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

// ---- The outside

/** Show a picture's data; its settings are those of before, then those in `changes`. */
async function show(explorer, buffer, changes = {}, classes = {}) {
  const mine = ++explorer.load, data = decode(buffer), [w, h] = data.picture.size;
  const picture = await createImageBitmap(new Blob([data.arrays.picture], { type: data.picture.kind }));
  if (mine !== explorer.load) return;
  clearInterval(explorer.playing);
  const maps = createMaps(data), wish = { ...explorer.wish, ...OF_PICTURE, ...changes };
  Object.assign(explorer, { data, maps, picture, grey: greyCanvas(picture), wish, shown: null,
    state: fitting(wish, maps, data), playing: null, hover: null, cursor: null });
  explorer.classes.clear();
  rememberClasses(explorer, classes);
  explorer.base.key = null;
  Object.assign(explorer.wall, { key: null, job: null, layers: [], scale: null });
  explorer.ui.stage.style.setProperty("--vx-aspect", w / h);
  message(explorer, "");
  fillHeads(explorer);
  explorer.set({});
}

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
  draw(explorer, "picture");
}

/** In the wanted language, else in the first of the browser's that is known. */
function speak(explorer, wanted) {
  const { texts, data } = explorer, short = (name) => String(name || "").slice(0, 2);
  const found = [wanted, ...navigator.languages].map(short).find((name) => texts[name]);
  explorer.words = texts[found] ?? texts.en;
  build(explorer);
  message(explorer, data ? "" : explorer.t("empty"));
}

/** Build the explorer in `root`; what it gives back is also `root.explorer`. */
function mount(root, { css, language, ...setup }) {
  if (!document.getElementById("vitx-style")) {
    document.head.append(el("style", { id: "vitx-style" }, css));
  }
  const explorer = createExplorer(root, setup), themed = () => draw(explorer, "wall");
  speak(explorer, language);
  new MutationObserver(themed).observe(document.documentElement, { attributeFilter: ["class"] });
  new MutationObserver(themed).observe(document.body, { attributeFilter: ["class"] });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", themed);
  root.addEventListener("language", (event) => speak(explorer, event.detail));
  root.explorer = {
    show: (buffer, changes, classes) => show(explorer, buffer, changes, classes),
    clear: (text) => clear(explorer, text),
    set: explorer.set,
    leaveClass: () => explorer.set({ map: explorer.lastPlain }),
    speak: (wanted) => speak(explorer, wanted),
    message: (text) => message(explorer, text),
    python: () => pythonOf(explorer),
    sheet: () => sheetOf(explorer),
    get state() { return { ...explorer.state }; },
    get maps() { return explorer.maps; },
    get data() { return explorer.data; },
    get picture() { return explorer.picture; },
    get grey() { return explorer.grey; },
    get tables() { return explorer.tables; },
    get classes() { return explorer.classes; },
    get values() { // of the locked map, or null
      const vector = explorer.data && baseVector(explorer);
      return vector && patchValues(explorer, vector);
    },
  };
  return root.explorer;
}

/** As a Gradio component: the value names an address, from which the data are fetched. */
function mountComponent(root, { trigger, props, watch, ask, askClasses, ...setup }) {
  let current = {}, coming = {}, turn = 0; // what is shown, what is on its way
  const askRows = async (query) => {
    const answer = await ask({ id: current.id, query, language: root.lang });
    if (!answer || answer.error) throw new Error(answer?.error || "?");
    return fromBase64(answer.data).buffer;
  };
  const askLabels = async (labels) => {
    const answer = await askClasses({ id: current.id, labels, language: root.lang });
    if (!answer || answer.error) throw new Error(answer?.error || "?");
    return answer.classes;
  };
  const explorer = mount(root, { ...setup, language: props.language, ask: askRows, askClasses: askLabels,
    onState: (state) => trigger("change", state) });

  async function load(value, mine) {
    root.classList.add("vx-busy");
    try {
      const response = await fetch(value.url);
      if (!response.ok) throw new Error(String(response.status));
      const buffer = await response.arrayBuffer();
      if (mine !== turn) return;
      current = value;
      root.dataset.id = value.id;
      coming = {};
      await explorer.show(buffer, value.state || {});
    } catch (error) {
      if (mine === turn) explorer.clear(setup.texts[root.lang].failed);
    } finally {
      if (mine === turn) root.classList.remove("vx-busy");
    }
  }

  async function update() {
    const value = typeof props.value === "string" && props.value ? JSON.parse(props.value) : props.value;
    const mine = ++turn;
    root.classList.remove("vx-busy");
    if (!value || !value.url) {
      current = {};
      return explorer.clear();
    }
    if (value.id === current.id && value.url === current.url) return explorer.set(value.state || {});
    // The same picture may be named twice before it is here: the second time must not lose the state.
    const state = value.state ?? (value.id === coming.id ? coming.state : null);
    coming = { ...value, state };
    return load(coming, mine);
  }

  watch("value", update);
  watch("language", () => explorer.speak(props.language));
  update();
  return explorer;
}

/** As a page of its own: the data are inside. */
function mountPage(root, setup, { language, state, classes }) {
  const explorer = mount(root, { ...setup, language });
  explorer.show(fromBase64(document.getElementById("vitx-data").textContent).buffer, state, classes);
  return explorer;
}

globalThis.ViTExplorer = { decode, maths: { step, normalise, discarder, createMaps, enlarge, scaleOf },
  mount, mountComponent, mountPage, el, fill, percent, canvasOf, drawMap, fitCanvas, gradient, scaleAround,
  shortName, isSigned, ARROWS };
