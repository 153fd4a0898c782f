// Knock-outs: heads and layers that are switched off, patches that are painted over, and what is left of
// the answer. The same grid shows, once it was computed, what each head alone is worth.

function emptyOff() {
  return { heads: new Set(), layers: new Set(), patches: new Set(), fill: "black" };
}

/** A change of a probability in points; small ones with one more digit. */
const points = (change) => signed(100 * change, Math.abs(change) < 0.01 ? 2 : 1);
const pairOf = (text) => text.split(",").map(Number);

function buildKnockout(why) {
  const { ui, t } = why, { el } = V;
  ui.heads = el("div", { class: "why-heads", role: "group", "aria-label": t("heads_label") });
  ui.head = el("p", { class: "why-head", role: "status" });
  ui.wall = el("button", { type: "button", class: "why-button why-main", onclick: () => computeWall(why) }, t("wall"));
  ui.wallLegend = el("p", { class: "why-scale" }, el("span"), el("i"), el("span"), el("span", { class: "why-muted" }));
  ui.paint = el("canvas", { class: "why-paint", tabindex: 0, role: "application", "aria-label": t("paint_label"),
    "aria-describedby": "why-painted" });
  ui.painted = el("p", { class: "why-muted", id: "why-painted", role: "status" });
  ui.fill = el("div", { class: "why-choice", role: "radiogroup", "aria-label": t("fill") });
  for (const fill of ["black", "blur"]) {
    const input = el("input", { type: "radio", name: "why-fill", value: fill,
      onchange: () => { why.off.fill = fill; changed(why); } });
    ui.fill.append(el("label", {}, input, el("span", {}, t(`fill_${fill}`))));
  }
  ui.restore = el("button", { type: "button", class: "why-button", onclick: () => restore(why) }, t("restore"));
  ui.changes = el("ol", { class: "why-changes", "aria-label": t("changes_title") });
  ui.fell = el("p", { class: "why-muted" });
  ui.said = el("p", { class: "why-said", role: "status" });
  listenToHeads(why);
  listenToPaint(why);
  return el("section", { class: "why-knock", "aria-label": t("knock_title") },
    el("h3", {}, t("knock_title")), el("p", {}, t("knock_about")),
    el("div", { class: "why-three" },
      el("div", {}, el("h4", {}, t("heads_title")), ui.heads, ui.wallLegend, ui.head,
        el("div", { class: "why-row" }, ui.wall), jobBar(why, "wall")),
      el("div", {}, el("h4", {}, t("paint_title")), ui.paint, el("div", { class: "why-row" }, ui.fill), ui.painted),
      el("div", {}, el("div", { class: "why-row why-apart" }, el("h4", {}, t("changes_title")), ui.restore),
        ui.said, ui.changes, ui.fell)));
}

// ---- What is off

function changed(why) {
  showKnockout(why);
  clearTimeout(why.waiting);
  why.waiting = setTimeout(() => askWithout(why), 120);
}

function restore(why) {
  why.off = { ...emptyOff(), fill: why.off.fill };
  changed(why);
}

function toggle(set, key) {
  if (!set.delete(key)) set.add(key);
}

/** Only the newest question counts. */
async function askWithout(why) {
  const { off, server, ui, t } = why, turn = (why.turn = (why.turn ?? 0) + 1);
  if (!off.heads.size && !off.layers.size && !off.patches.size) {
    why.without = null;
    return showChanges(why);
  }
  ui.changes.setAttribute("aria-busy", "true");
  const request = { id: why.id, language: why.language, fill: off.fill, layers: [...off.layers],
    heads: [...off.heads].map(pairOf), patches: [...off.patches].map(pairOf) };
  const answer = await server.without(request);
  if (turn !== why.turn) return;
  why.without = answer?.after ? answer : { error: answer?.error ?? t("failed") };
  showChanges(why);
}

// ---- The wall: what happens without each head

function computeWall(why) {
  const { label } = why;
  startJob(why, { kind: "wall", label }, (result) => {
    why.walls.set(result.label, result);
    showKnockout(why);
  });
}

function headText(why, layer, head) {
  const { t, label, off } = why, wall = why.walls.get(label), name = { layer: layer + 1, head: head + 1 };
  const gone = off.layers.has(layer) || (head >= 0 && off.heads.has(`${layer},${head}`));
  if (head < 0) return t(gone ? "layer_is_off" : "layer_is_on", name);
  if (!wall) return t(gone ? "head_is_off" : "head_is_on", name);
  const change = wall.changes[layer][head];
  return t("head_change", { ...name, label: labelOf(why, label), before: V.percent(wall.before),
    after: V.percent(Math.max(0, wall.before + change)), change: points(change) });
}

// ---- The grid of heads: one stop of the Tab key, arrows walk inside it

function buildHeads(why) {
  const { ui, explorer: { data }, t } = why, { el } = V, cells = [];
  ui.heads.style.setProperty("--heads", data.heads);
  cells.push(el("span"), ...Array.from({ length: data.heads }, (_, head) =>
    el("span", { class: "why-number", "aria-hidden": "true" }, String(head + 1))));
  for (let layer = data.layers - 1; layer >= 0; layer--) {
    for (let head = -1; head < data.heads; head++) {
      const first = layer === data.layers - 1 && head === 0;
      cells.push(el("button", { type: "button", class: head < 0 ? "why-layer" : "why-cell", "data-at": `${layer},${head}`,
        tabindex: first ? 0 : -1 }, head < 0 ? t("layer_short", { layer: layer + 1 }) : ""));
    }
  }
  ui.heads.replaceChildren(...cells);
}

function listenToHeads(why) {
  const { ui } = why, cellOf = (event) => event.target.closest("button[data-at]");
  const tell = (event) => {
    const cell = cellOf(event);
    ui.head.textContent = cell ? headText(why, ...pairOf(cell.dataset.at)) : headHint(why);
  };
  ui.heads.addEventListener("pointerover", tell);
  ui.heads.addEventListener("focusin", tell);
  ui.heads.addEventListener("pointerleave", () => { ui.head.textContent = headHint(why); });
  ui.heads.addEventListener("click", (event) => {
    const cell = cellOf(event);
    if (!cell) return;
    const [layer, head] = pairOf(cell.dataset.at);
    if (head < 0) toggle(why.off.layers, layer);
    else toggle(why.off.heads, cell.dataset.at);
    moveTo(cell);
    changed(why);
    tell(event);
  });
  ui.heads.addEventListener("keydown", (event) => {
    const cell = cellOf(event), arrow = V.ARROWS[event.key];
    if (!cell || !arrow) return;
    event.preventDefault();
    const [layer, head] = pairOf(cell.dataset.at), [down, right] = arrow;
    moveTo(ui.heads.querySelector(`[data-at="${layer - down},${head + right}"]`), true);
  });
  const moveTo = (cell, focus) => {
    if (!cell) return;
    ui.heads.querySelector("[tabindex='0']")?.setAttribute("tabindex", -1);
    cell.setAttribute("tabindex", 0);
    if (focus) cell.focus();
  };
}

const headHint = (why) => why.t(why.walls.get(why.label) ? "wall_hint" : "heads_hint", { label: labelOf(why, why.label) });

function showKnockout(why) {
  const { ui, off, t, label } = why;
  if (!why.ready) return;
  const wall = why.walls.get(label), table = why.explorer.tables.difference;
  const most = wall && Math.max(1e-6, ...wall.changes.flat().map(Math.abs));
  for (const cell of ui.heads.querySelectorAll("button")) {
    const [layer, head] = pairOf(cell.dataset.at), whole = off.layers.has(layer);
    const gone = head < 0 ? whole : off.heads.has(cell.dataset.at);
    cell.setAttribute("aria-pressed", gone);
    cell.setAttribute("aria-label", headText(why, layer, head));
    cell.classList.toggle("gone", gone || whole);
    if (head < 0) continue;
    const change = wall?.changes[layer][head], shade = wall && Math.min(255, Math.floor(128 * (1 + change / most)));
    const c = wall ? table[shade] : 0;
    cell.style.background = wall ? `rgb(${c & 255} ${c >> 8 & 255} ${c >> 16 & 255})` : "";
    cell.classList.toggle("deep", Boolean(wall) && Math.abs(change) / most > 0.6);
    if (wall) cell.dataset.change = change;
    else delete cell.dataset.change;
  }
  const [low, bar, high, note] = ui.wallLegend.children;
  ui.wallLegend.style.visibility = wall ? "visible" : "hidden";
  if (wall) {
    bar.style.background = V.gradient(table);
    [low.textContent, high.textContent] = [points(-most), points(most)];
    note.textContent = t("wall_scale", { label: labelOf(why, label) });
  }
  if (!ui.heads.matches(":hover, :focus-within")) ui.head.textContent = headHint(why);
  ui.wall.disabled = Boolean(why.job);
  for (const input of ui.fill.querySelectorAll("input")) input.checked = input.value === off.fill;
  drawPaint(why);
}

// ---- The answer, before and after

function showChanges(why) {
  const { ui, t, explorer: { data }, without, off } = why, { el } = V;
  ui.changes.removeAttribute("aria-busy");
  const count = off.heads.size + off.layers.size + off.patches.size;
  ui.restore.disabled = !count;
  if (without?.error) {
    ui.said.textContent = without.error;
    return;
  }
  const untouched = data.top.map(([label, p, index]) => ({ label, index, before: p, after: p }));
  const rows = without?.after ?? untouched, order = (without?.before ?? untouched).map(({ index }) => index);
  ui.said.textContent = without ? t("without_is", { heads: off.heads.size, layers: off.layers.size,
    patches: off.patches.size }) : t("without_nothing");
  ui.changes.replaceChildren(...rows.map(({ label, index, before, after }, k) => {
    const was = order.indexOf(index), change = after - before, moved = was < 0 || was > k ? "up" : was < k ? "down" : "";
    return el("li", { "data-index": index, "data-after": after, "data-before": before, class: moved,
      style: `--before:${100 * before}%;--after:${100 * after}%` },
    el("span", { class: "why-moved", "aria-hidden": "true" }, { up: "\u25b2", down: "\u25bc" }[moved] ?? ""),
    el("span", { class: "why-label" }, V.shortName(label)), el("span", { class: "why-bar", "aria-hidden": "true" }),
    el("span", { class: "why-percent" }, `${(100 * after).toFixed(1)}\u2009%`),
    el("span", { class: `why-delta ${Math.abs(change) < 5e-4 ? "" : change > 0 ? "more" : "less"}` },
      without ? signed(100 * change, 1) : ""));
  }));
  const gone = (without?.before ?? []).filter(({ index }) => !rows.some((row) => row.index === index));
  ui.fell.textContent = gone.length ? t("fell_out", { labels: gone.map(({ label, after }) =>
    `${V.shortName(label)} (${(100 * after).toFixed(1)}\u2009%)`).join(", ") }) : "";
}

// ---- Painting over patches

function drawPaint(why) {
  const { ui, off, t, explorer: { data, picture } } = why, [w, h] = data.picture.size, [rows, cols] = data.grid;
  const box = ui.paint.getBoundingClientRect(), context = ui.paint.getContext("2d");
  ui.paint.style.aspectRatio = `${w} / ${h}`;
  const ratio = V.fitCanvas(ui.paint, box.width || 280, (box.width || 280) * h / w), { width, height } = ui.paint;
  const cell = (patch) => {
    const [row, col] = patch;
    const [x, y] = [Math.round(col * width / cols), Math.round(row * height / rows)];
    return [x, y, Math.round((col + 1) * width / cols) - x, Math.round((row + 1) * height / rows) - y];
  };
  context.imageSmoothingEnabled = Math.max(w, h) > data.picture.crisp;
  context.drawImage(picture, 0, 0, width, height);
  const fill = off.fill === "blur" && blurred(picture, data.grid);
  for (const patch of [...off.patches].map(pairOf)) {
    const [x, y, dx, dy] = cell(patch);
    context.save();
    context.beginPath();
    context.rect(x, y, dx, dy);
    context.clip();
    context.fillStyle = "#000";
    context.imageSmoothingEnabled = true;
    if (fill) context.drawImage(fill, 0, 0, width, height);
    else context.fillRect(x, y, dx, dy);
    context.restore();
  }
  for (const [patch, colour] of [[why.brush?.at, "#fff"], [why.cursor, "#fff"]]) {
    if (!patch) continue;
    context.lineWidth = 4 * ratio;
    context.strokeStyle = "#000a";
    context.strokeRect(...cell(patch));
    context.lineWidth = 2 * ratio;
    context.strokeStyle = colour;
    context.strokeRect(...cell(patch));
  }
  ui.painted.textContent = off.patches.size ? t("painted", { count: off.patches.size, total: rows * cols }) : t("paint_hint");
}

/** About what the model will see under the brush: a picture without its details. */
function blurred(picture, [rows, cols]) {
  const small = Object.assign(document.createElement("canvas"), { width: cols, height: rows });
  small.getContext("2d").drawImage(picture, 0, 0, cols, rows);
  return small;
}

function listenToPaint(why) {
  const canvas = why.ui.paint;
  const patchAt = (event) => {
    const box = canvas.getBoundingClientRect(), [rows, cols] = why.explorer.data.grid;
    const inside = (share, count) => Math.max(0, Math.min(count - 1, Math.floor(share * count)));
    return [inside((event.clientY - box.top) / box.height, rows), inside((event.clientX - box.left) / box.width, cols)];
  };
  const paint = (patch) => {
    const key = patch.join();
    if (why.brush.on === why.off.patches.has(key)) return;
    toggle(why.off.patches, key);
    changed(why);
  };
  canvas.addEventListener("pointerdown", (event) => {
    if (!why.ready) return;
    canvas.setPointerCapture(event.pointerId);
    const patch = patchAt(event);
    why.cursor = null;
    why.brush = { on: !why.off.patches.has(patch.join()), at: patch };
    paint(patch);
  });
  canvas.addEventListener("pointermove", (event) => { if (why.brush) paint(why.brush.at = patchAt(event)); });
  for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, () => {
    why.brush = null;
    if (why.ready) drawPaint(why);
  });
  canvas.addEventListener("keydown", (event) => {
    const arrow = V.ARROWS[event.key];
    if (!why.ready || !(arrow || event.key === "Enter" || event.key === " ")) return;
    event.preventDefault();
    const [rows, cols] = why.explorer.data.grid, clamp = (x, most) => Math.max(0, Math.min(most, x));
    if (!why.cursor) why.cursor = [rows >> 1, cols >> 1];
    else if (arrow) why.cursor = [clamp(why.cursor[0] + arrow[0], rows - 1), clamp(why.cursor[1] + arrow[1], cols - 1)];
    else {
      toggle(why.off.patches, why.cursor.join());
      return changed(why);
    }
    drawPaint(why);
    why.ui.painted.textContent = why.t("paint_at", { row: why.cursor[0] + 1, col: why.cursor[1] + 1 });
  });
  canvas.addEventListener("blur", () => { why.cursor = null; if (why.ready) drawPaint(why); });
}
