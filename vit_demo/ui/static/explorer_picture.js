// The picture with its map: drawing, the tooltip, pointer and keys, and what one takes away of it.

const patchIndex = ({ data }, [row, col]) => row * data.grid[1] + col;
const patchValues = ({ maps }, vector) => vector.subarray(maps.P);
const pointed = ({ cursor, hover }) => cursor || hover;

/** The query whose map is on screen: a locked one, else the patch under the pointer. */
function shownQuery(explorer) {
  const { state, follow, peek } = explorer;
  if (isClass(state)) return null; // its map does not depend on who asks
  return state.query || !follow || peek ? state.query : pointed(explorer);
}

/** The locked map: what the tooltip's numbers are about. */
function baseVector(explorer) {
  const { state, maps } = explorer, { map, layer, head, direction, below, residual, discard, query } = state;
  if (isClass(state)) return classVector(explorer);
  const key = JSON.stringify([map, layer, head, direction, below, residual, discard, query]);
  if (explorer.base.key !== key) explorer.base = { key, vector: maps.mapOf(state, query) };
  return explorer.base.vector;
}

/** The map of a class, or of one class minus another; null while it has not been fetched. */
function classVector({ state: { map, label, minus }, classes }) {
  const [plus, less] = [label, minus].map((one) => classes.get(one)?.[map]);
  if (!plus || minus === null) return plus ?? null;
  return less ? plus.map((value, k) => value - less[k]) : null;
}

/** The query's map; while its rows are missing, the mean of the heads and a note that says so. */
function vectorAndNote(explorer, query) {
  const { state, maps, ask, t } = explorer;
  const vector = same(query, state.query) ? baseVector(explorer) : maps.mapOf(state, query);
  if (vector) return { vector, note: "" };
  if (isClass(state)) return { vector, note: t("loading") };
  if (ask) {
    clearTimeout(explorer.dwell);
    explorer.dwell = setTimeout(() => fetchRows(explorer, query), state.query ? 0 : 120);
  }
  const mean = maps.mapOf({ ...state, head: "mean", discard: 0, direction: "from" }, query);
  return { vector: mean, note: t(ask ? "loading" : "lean_note") };
}

// ---- Drawing

function drawPicture(explorer) {
  const { root, data, state, wall, ui } = explorer;
  const began = performance.now(), box = ui.canvas.getBoundingClientRect();
  const ratio = fitCanvas(ui.canvas, box.width, box.height), context = ui.canvas.getContext("2d");
  const { width, height } = ui.canvas;
  if (!data) return context.clearRect(0, 0, width, height);
  const query = shownQuery(explorer), { vector, note } = vectorAndNote(explorer, query);
  if (!vector) return void (ui.say.textContent = note); // what was there before stays until it comes
  context.clearRect(0, 0, width, height);
  const values = patchValues(explorer, vector), own = query ? patchIndex(explorer, query) : -1;
  const shared = state.scale === "shared" && wall.scale && !isClass(state);
  const scale = isSigned(state) ? scaleAround(values)
    : shared ? wall.scale : scaleOf([values], 1, own);
  explorer.shown = { query, vector, values, scale, note };
  paintPicture(explorer, context, width, height);
  const mark = (patch, inner, line) =>
    framePatch(context, patch, data.grid, width, height, inner, line * ratio);
  if (query) mark(query, "#fff", 2);
  const patch = pointed(explorer);
  if (patch && !same(patch, query)) mark(patch, "#fffc", 1);
  drawTip(explorer, patch, box);
  ui.query.textContent = queryName(explorer, query);
  ui.say.textContent = explorer.trouble || note || caption(explorer);
  showLegend(explorer, "legend", scale);
  root.dataset.drawn = String(++explorer.drawn);
  root.dataset.drawMs = (performance.now() - began).toFixed(2);
}

/** Picture and map, nothing else: for the screen and for the PNG. */
function paintPicture({ data, picture, grey, peek, shown, state, tables }, context, width, height) {
  context.imageSmoothingQuality = "high";
  context.imageSmoothingEnabled = Math.max(...data.picture.size) > data.picture.crisp;
  context.drawImage(peek ? picture : grey, 0, 0, width, height);
  if (peek) return;
  const looks = { ...state, table: tableOf(state, tables), scale: shown.scale };
  drawMap(context, width, height, shown.values, data.grid, looks);
}

const tableOf = (state, tables) => tables[isSigned(state) ? "difference" : state.colours];

function drawTip(explorer, patch, box) {
  const { root, data, state, learned, ui: { tip }, t } = explorer;
  tip.hidden = !patch;
  if (!patch) return void delete root.dataset.tip;
  const name = t("tip_patch", fromOne(patch)), value = valueAt(explorer, patch);
  tip.replaceChildren(el("b", {}, name), el("span", {}, `${value} · ${queryName(explorer, state.query)}`));
  if (!learned && !isClass(state)) tip.append(el("small", {}, t(same(patch, state.query) ? "tip_back" : "tip_choose")));
  root.dataset.tip = `${name} ${value}`;
  const [row, col] = patch, [rows, cols] = data.grid, cell = box.height / rows;
  const x = (col + 0.5) * box.width / cols, y = row * cell, w = tip.offsetWidth, h = tip.offsetHeight;
  tip.style.left = `${Math.max(4, Math.min(box.width - w - 4, x - w / 2))}px`;
  tip.style.top = `${y - h - 8 >= 0 ? y - h - 8 : y + cell + 8}px`;
}

function valueAt(explorer, patch) {
  const vector = baseVector(explorer) ?? explorer.shown?.vector;
  return vector && amount(explorer, patchValues(explorer, vector)[patchIndex(explorer, patch)]);
}

// ---- Pointer and keys

function listenToPicture(explorer) {
  const { canvas } = explorer.ui;
  const point = (patch) => {
    explorer.hover = patch;
    explorer.cursor = null;
    draw(explorer, "picture");
  };
  canvas.addEventListener("pointermove", (event) => {
    if (!explorer.data || event.pointerType === "touch") return;
    const patch = patchAt(explorer, event);
    if (!same(patch, explorer.hover) || explorer.cursor) point(patch);
  });
  canvas.addEventListener("pointerleave", () => { explorer.hover = null; draw(explorer, "picture"); });
  canvas.addEventListener("blur", () => { explorer.cursor = null; draw(explorer, "picture"); });
  canvas.addEventListener("click", (event) => {
    const patch = explorer.data && patchAt(explorer, event);
    if (patch) choosePatch(explorer, patch);
  });
  canvas.addEventListener("keydown", (event) => {
    if (explorer.data && keyOnPicture(explorer, event.key)) event.preventDefault();
  });
}

function patchAt({ ui, data }, event) {
  const box = ui.canvas.getBoundingClientRect(), [rows, cols] = data.grid;
  const x = (event.clientX - box.left) / box.width, y = (event.clientY - box.top) / box.height;
  const inside = x >= 0 && x < 1 && y >= 0 && y < 1;
  return inside ? [Math.floor(y * rows), Math.floor(x * cols)] : null;
}

function choosePatch(explorer, patch) {
  if (isClass(explorer.state)) { // a class map asks for no patch; its value there is what one gets
    explorer.cursor = patch;
    return draw(explorer, "picture");
  }
  explorer.learned = true;
  explorer.hover = explorer.cursor = null; // what was chosen is shown; nothing else competes with it
  explorer.set({ query: same(patch, explorer.state.query) ? null : patch });
  announce(explorer, explorer.t("tip_patch", fromOne(patch)));
}

/** Whether the key means something here. */
function keyOnPicture(explorer, key) {
  const patch = explorer.cursor;
  if (ARROWS[key]) moveCursor(explorer, ARROWS[key]);
  else if ((key === "Enter" || key === " ") && patch) {
    choosePatch(explorer, patch);
    explorer.cursor = patch;
  } else if (key === "Escape") {
    explorer.cursor = null;
    explorer.set({ query: null });
  } else return false;
  return true;
}

/** From the cursor, else from the chosen patch; without either it appears in the middle. */
function moveCursor(explorer, [down, right]) {
  const { data: { grid: [rows, cols] }, state, t } = explorer, from = explorer.cursor || state.query;
  explorer.cursor = from
    ? [clamp(from[0] + down, 0, rows - 1), clamp(from[1] + right, 0, cols - 1)]
    : [rows >> 1, cols >> 1];
  draw(explorer, "picture");
  announce(explorer, `${t("tip_patch", fromOne(explorer.cursor))}: ${valueAt(explorer, explorer.cursor)}`);
}

// ---- To take away

async function copyPython(explorer) {
  const { root, ui, t } = explorer, code = (root.dataset.python = pythonOf(explorer));
  let done = true;
  try {
    await navigator.clipboard.writeText(code);
  } catch { // no permission, or not a secure page
    const area = el("textarea", { class: "vx-live" });
    area.value = code;
    root.append(area);
    area.select();
    done = document.execCommand("copy");
    area.remove();
  }
  ui.python.textContent = t(done ? "copied" : "copy_failed");
  announce(explorer, ui.python.textContent);
  setTimeout(() => { ui.python.textContent = t("python"); }, 1600);
}

/** Picture, map, words and legend on one sheet of paper. */
function sheetOf(explorer) {
  const { root, data, state, shown, tables, ui } = explorer, [best] = data.top;
  const [low, , high, note] = [...ui.legend.children].map((node) => node.textContent);
  return drawSheet({
    size: data.picture.size,
    family: getComputedStyle(root).fontFamily,
    title: data.model + (best ? `: ${best[0].split(",")[0]} ${percent(best[1])}` : ""),
    words: ui.say.textContent,
    legend: [low, high, note],
    table: tableOf(state, tables),
    drawing: (context, width, height) => {
      paintPicture(explorer, context, width, height);
      if (shown.query) framePatch(context, shown.query, data.grid, width, height, "#fff", 3);
    },
  });
}

function savePng(explorer) {
  const { data, state: { map, layer, head } } = explorer;
  const model = data.model.split(/[\\/]/).pop(), which = isOne(head) ? head + 1 : head;
  const what = isClass(explorer.state) ? className(explorer) : `layer${layer + 1}-head-${which}`;
  const name = `${model}-${map}-${what}.png`.replace(/[^\p{L}\w.-]+/gu, "_");
  sheetOf(explorer).toBlob((blob) => {
    const link = el("a", { href: URL.createObjectURL(blob), download: name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }, "image/png");
}
