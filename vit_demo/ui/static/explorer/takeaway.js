// @ts-check
// What a visitor takes away from the explorer: Python code and a PNG.

import { framePatch } from "./draw.js";
import { announce, el } from "./elements.js";
import { tableOf } from "./legend.js";
import { drawNow, paintPicture } from "./picture.js";
import { pythonOf } from "./python.js";
import { drawSheet } from "./sheets.js";
import { isClass, isOne } from "./state.js";
import { className, percent, shortName } from "./words.js";

/** @param {Explorer} explorer */
export async function copyPython(explorer) {
  drawNow(explorer);
  const { root, ui, t } = explorer,
    code = pythonOf(explorer);
  root.dataset.python = code;
  let done = true;
  try {
    await navigator.clipboard.writeText(code);
  } catch {
    // no permission, or not a secure page
    const area = el("textarea", { class: "vx-live" });
    area.value = code;
    root.append(area);
    area.select();
    done = document.execCommand("copy");
    area.remove();
  }
  ui.python.textContent = t(done ? "copied" : "copy_failed");
  announce(explorer, ui.python.textContent);
  setTimeout(() => {
    ui.python.textContent = t("python");
  }, 1600);
}

/** Picture, map, words and legend on one sheet of paper.
 * @param {Explorer} explorer */
export function sheetOf(explorer) {
  drawNow(explorer);
  const { root, data, shown, tables, ui } = explorer,
    [best] = data.top;
  const [low, , high, note] = [...ui.legend.children].map((node) => node.firstChild?.textContent);
  return drawSheet({
    size: data.picture.size,
    family: getComputedStyle(root).fontFamily,
    title: data.model + (best ? `: ${shortName(best[0])} ${percent(best[1])}` : ""),
    words: `${ui.say.textContent} ${setup(explorer)}`,
    legend: [low, high, note],
    table: tableOf(shown.settings, tables),
    drawing: (context, width, height) => {
      paintPicture(explorer, context, width, height);
      if (shown.query) framePatch(context, shown.query, data.grid, width, height, "#fff", 3);
    },
  });
}

/** What the caption does not say: how the picture met the model, and how rollout was told to work.
 * @param {Explorer} explorer */
function setup({ data, state, t }) {
  const rollout = !isClass(state) && state.map !== "attention";
  const shares = { residual: percent(state.residual), discard: percent(state.discard) };
  const fit = t(`fit_${data.fit}`);
  return t("sheet_fit", { fit }) + (rollout ? t("sheet_rollout", shares) : ".");
}

/** A file's name that tells views apart: model, map, layer, head, who asks, fit.
 * @param {Explorer} explorer */
export function pngName(explorer) {
  const { data, state } = explorer,
    { map, layer, head, part, query, direction } = state;
  const parts = [data.model.split(/[\\/]/).pop(), map];
  if (part === "special") parts.push(part);
  if (isClass(state)) parts.push(className(explorer));
  else {
    const to = map === "attention" && direction === "to";
    parts.push(`layer${layer + 1}`, `head-${isOne(head) ? head + 1 : head}`);
    if (query) parts.push(`${to ? "to" : "from"}-row${query[0] + 1}-column${query[1] + 1}`);
    else if (to) parts.push("to-readout");
  }
  return `${[...parts, data.fit].join("-")}.png`.replace(/[^\p{L}\w.-]+/gu, "_");
}

/** Hand a drawing to the visitor as a file.
 * @param {HTMLCanvasElement} canvas
 * @param {string} name */
export function savePng(canvas, name) {
  canvas.toBlob((blob) => {
    const link = el("a", { href: URL.createObjectURL(blob), download: name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }, "image/png");
}
