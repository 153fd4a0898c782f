// @ts-check
// Knock-outs: heads and layers that are switched off, and what is left of the answer. The same grid shows,
// once it was computed, what each head alone is worth.

import { gradient } from "../explorer/draw.js";
import { ARROWS, el } from "../explorer/elements.js";
import { labelName, percent, shortName } from "../explorer/words.js";
import { answerOf } from "../gradio.js";
import { signed } from "./charts.js";
import { jobBar, startJob } from "./jobs.js";
import { emptyOff, pairOf, toggleMember } from "./off.js";
import { drawPaint, listenToPaint } from "./paint.js";

/** A change of a probability in points; small ones with one more digit.
 * @param {number} change */
const points = (change) => signed(100 * change, Math.abs(change) < 0.01 ? 2 : 1);

/** @param {Trust} trust */
export function buildKnockout(trust) {
  const { ui, t } = trust;
  ui.heads = el("div", { class: "why-heads", role: "group", "aria-label": t("heads_label") });
  ui.head = el("p", { class: "why-head", role: "status" });
  ui.wall = el(
    "button",
    { type: "button", class: "why-button why-main", onclick: () => computeWall(trust) },
    t("wall"),
  );
  ui.wallLegend = el(
    "p",
    { class: "why-scale" },
    el("span"),
    el("i"),
    el("span"),
    el("span", { class: "why-muted" }),
  );
  ui.paint = el("canvas", {
    class: "why-paint",
    tabindex: 0,
    role: "application",
    "aria-label": t("paint_label"),
    "aria-describedby": "why-painted",
  });
  ui.painted = el("p", { class: "why-muted", id: "why-painted", role: "status" });
  ui.fill = el("div", { class: "why-choice", role: "radiogroup", "aria-label": t("fill") });
  for (const fill of trust.fills) {
    const input = el("input", {
      type: "radio",
      name: "why-fill",
      value: fill,
      onchange: () => {
        trust.off.fill = fill;
        changed(trust);
      },
    });
    ui.fill.append(el("label", {}, input, el("span", {}, t(`fill_${fill}`))));
  }
  ui.restore = el(
    "button",
    { type: "button", class: "why-button", onclick: () => restore(trust) },
    t("restore"),
  );
  ui.changes = el("ol", { class: "why-changes", "aria-label": t("changes_title") });
  ui.fell = el("p", { class: "why-muted" });
  ui.said = el("p", { class: "why-said", role: "status" });
  listenToHeads(trust);
  listenToPaint(trust, () => changed(trust));
  return el(
    "section",
    { class: "why-knock", "aria-label": t("knock_title") },
    el("h3", {}, t("knock_title")),
    el("p", {}, t("knock_about")),
    el(
      "div",
      { class: "why-three" },
      el(
        "div",
        {},
        el("h4", {}, t("heads_title")),
        ui.heads,
        ui.wallLegend,
        ui.head,
        el("div", { class: "why-row" }, ui.wall),
        jobBar(trust, "wall"),
      ),
      el(
        "div",
        {},
        el("h4", {}, t("paint_title")),
        ui.paint,
        el("div", { class: "why-row" }, ui.fill),
        ui.painted,
      ),
      el(
        "div",
        {},
        el("div", { class: "why-row why-apart" }, el("h4", {}, t("changes_title")), ui.restore),
        ui.said,
        ui.changes,
        ui.fell,
      ),
    ),
  );
}

/** @param {Trust} trust */
function changed(trust) {
  showKnockout(trust);
  clearTimeout(trust.waiting);
  trust.waiting = setTimeout(() => askWithout(trust), 120);
}

/** @param {Trust} trust */
function restore(trust) {
  trust.off = { ...emptyOff(), fill: trust.off.fill };
  changed(trust);
}

/** Only the newest question counts.
 * @param {Trust} trust */
async function askWithout(trust) {
  const { off, server, ui, t } = trust,
    turn = ++trust.turn;
  if (!off.heads.size && !off.layers.size && !off.patches.size) {
    trust.without = null;
    return showChanges(trust);
  }
  ui.changes.setAttribute("aria-busy", "true");
  const request = {
    id: trust.id,
    language: trust.language,
    fill: off.fill,
    layers: [...off.layers],
    heads: [...off.heads].map(pairOf),
    patches: [...off.patches].map(pairOf),
  };
  const answer = await answerOf(server.without, request, t("lost")).catch((error) => ({
    error: error.message,
  }));
  if (turn !== trust.turn) return;
  trust.without = answer;
  showChanges(trust);
}

/** @param {Trust} trust */
function computeWall(trust) {
  const { label } = trust;
  startJob(trust, { kind: "wall", label }, (result) => {
    trust.walls.set(result.label, result);
    showKnockout(trust);
  });
}

/**
 * @param {Trust} trust
 * @param {number} layer
 * @param {number} head */
function headText(trust, layer, head) {
  const { t, label, off } = trust,
    wall = trust.walls.get(label),
    name = { layer: layer + 1, head: head + 1 };
  const gone = off.layers.has(layer) || (head >= 0 && off.heads.has(`${layer},${head}`));
  if (head < 0) return t(gone ? "layer_is_off" : "layer_is_on", name);
  if (!wall) return t(gone ? "head_is_off" : "head_is_on", name);
  const change = wall.changes[layer][head];
  return t("head_change", {
    ...name,
    label: labelName(trust.explorer, label),
    before: percent(wall.before),
    after: percent(Math.max(0, wall.before + change)),
    change: points(change),
  });
}

/** @param {Trust} trust */
export function buildHeads(trust) {
  const {
      ui,
      explorer: { data },
      t,
    } = trust,
    cells = [];
  ui.heads.style.setProperty("--heads", data.heads);
  cells.push(
    el("span"),
    ...Array.from({ length: data.heads }, (_, head) =>
      el("span", { class: "why-number", "aria-hidden": "true" }, String(head + 1)),
    ),
  );
  for (let layer = data.layers - 1; layer >= 0; layer--) {
    for (let head = -1; head < data.heads; head++) {
      const first = layer === data.layers - 1 && head === 0;
      cells.push(
        el(
          "button",
          {
            type: "button",
            class: head < 0 ? "why-layer" : "why-cell",
            "data-at": `${layer},${head}`,
            tabindex: first ? 0 : -1,
          },
          head < 0 ? t("layer_short", { layer: layer + 1 }) : "",
        ),
      );
    }
  }
  ui.heads.replaceChildren(...cells);
}

/** @param {Trust} trust */
function listenToHeads(trust) {
  const { ui } = trust,
    cellOf = (event) => event.target.closest("button[data-at]");
  /** @param {Event} event */
  const tell = (event) => {
    const cell = cellOf(event);
    ui.head.textContent = cell ? headText(trust, ...pairOf(cell.dataset.at)) : headHint(trust);
  };
  ui.heads.addEventListener("pointerover", tell);
  ui.heads.addEventListener("focusin", tell);
  ui.heads.addEventListener("pointerleave", () => {
    ui.head.textContent = headHint(trust);
  });
  ui.heads.addEventListener("click", (event) => {
    const cell = cellOf(event);
    if (!cell) return;
    const [layer, head] = pairOf(cell.dataset.at);
    if (head < 0) toggleMember(trust.off.layers, layer);
    else toggleMember(trust.off.heads, cell.dataset.at);
    moveTo(cell);
    changed(trust);
    tell(event);
  });
  ui.heads.addEventListener("keydown", (event) => {
    const cell = cellOf(event),
      arrow = ARROWS[event.key];
    if (!cell || !arrow) return;
    event.preventDefault();
    const [layer, head] = pairOf(cell.dataset.at),
      [down, right] = arrow;
    moveTo(ui.heads.querySelector(`[data-at="${layer - down},${head + right}"]`), true);
  });
  /**
   * @param {HTMLElement | null} cell
   * @param {boolean} [focus] */
  const moveTo = (cell, focus) => {
    if (!cell) return;
    ui.heads.querySelector("[tabindex='0']")?.setAttribute("tabindex", "-1");
    cell.setAttribute("tabindex", "0");
    if (focus) cell.focus();
  };
}

/** @param {Trust} trust */
const headHint = (trust) =>
  trust.t(trust.walls.get(trust.label) ? "wall_hint" : "heads_hint", {
    label: labelName(trust.explorer, trust.label),
  });

/** @param {Trust} trust */
export function showKnockout(trust) {
  const { ui, off, t, label } = trust;
  if (!trust.ready) return;
  const wall = trust.walls.get(label),
    table = trust.explorer.tables.difference;
  const most = wall && Math.max(1e-6, ...wall.changes.flat().map(Math.abs));
  for (const cell of ui.heads.querySelectorAll("button")) {
    const [layer, head] = pairOf(cell.dataset.at),
      whole = off.layers.has(layer);
    const gone = head < 0 ? whole : off.heads.has(cell.dataset.at);
    cell.setAttribute("aria-pressed", gone);
    cell.setAttribute("aria-label", headText(trust, layer, head));
    cell.classList.toggle("gone", gone || whole);
    if (head < 0) continue;
    const change = wall?.changes[layer][head],
      shade = wall && Math.min(255, Math.floor(128 * (1 + change / most)));
    const c = wall ? table[shade] : 0;
    cell.style.background = wall ? `rgb(${c & 255} ${(c >> 8) & 255} ${(c >> 16) & 255})` : "";
    cell.classList.toggle("deep", Boolean(wall) && Math.abs(change) / most > 0.6);
    if (wall) cell.dataset.change = change;
    else delete cell.dataset.change;
  }
  const [low, bar, high, note] = ui.wallLegend.children;
  ui.wallLegend.style.visibility = wall ? "visible" : "hidden";
  if (wall) {
    bar.style.background = gradient(table);
    [low.textContent, high.textContent] = [points(-most), points(most)];
    note.textContent = t("wall_scale", { label: labelName(trust.explorer, label) });
  }
  if (!ui.heads.matches(":hover, :focus-within")) ui.head.textContent = headHint(trust);
  ui.wall.disabled = Boolean(trust.job);
  for (const input of ui.fill.querySelectorAll("input")) input.checked = input.value === off.fill;
  drawPaint(trust);
}

/** @param {Trust} trust */
export function showChanges(trust) {
  const {
    ui,
    t,
    explorer: { data },
    without,
    off,
  } = trust;
  ui.changes.removeAttribute("aria-busy");
  const count = off.heads.size + off.layers.size + off.patches.size;
  ui.restore.disabled = !count;
  if (without?.error) {
    ui.said.textContent = without.error;
    return;
  }
  const untouched = data.top.map(([label, p, index]) => ({ label, index, before: p, after: p }));
  const rows = without?.after ?? untouched,
    order = (without?.before ?? untouched).map(({ index }) => index);
  ui.said.textContent = without
    ? t("without_is", { heads: off.heads.size, layers: off.layers.size, patches: off.patches.size })
    : t("without_nothing");
  ui.changes.replaceChildren(
    ...rows.map(({ label, index, before, after }, k) => {
      const was = order.indexOf(index),
        change = after - before,
        moved = was < 0 || was > k ? "up" : was < k ? "down" : "";
      return el(
        "li",
        {
          "data-index": index,
          "data-after": after,
          "data-before": before,
          class: moved,
          style: `--before:${100 * before}%;--after:${100 * after}%`,
        },
        el(
          "span",
          { class: "why-moved", "aria-hidden": "true" },
          { up: "\u25b2", down: "\u25bc" }[moved] ?? "",
        ),
        el("span", { class: "why-label" }, shortName(label)),
        el("span", { class: "why-bar", "aria-hidden": "true" }),
        el("span", { class: "why-percent" }, `${(100 * after).toFixed(1)}\u2009%`),
        el(
          "span",
          { class: `why-delta ${Math.abs(change) < 5e-4 ? "" : change > 0 ? "more" : "less"}` },
          without ? signed(100 * change, 1) : "",
        ),
      );
    }),
  );
  const gone = (without?.before ?? []).filter(
    ({ index }) => !rows.some((row) => row.index === index),
  );
  ui.fell.textContent = gone.length
    ? t("fell_out", {
        labels: gone
          .map(({ label, after }) => `${shortName(label)} (${(100 * after).toFixed(1)}\u2009%)`)
          .join(", "),
      })
    : "";
}
