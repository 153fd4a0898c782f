// @ts-check
// What a visitor takes away from the explorer: Python code and a PNG.

import { framePatch } from "./draw.js";
import { announce, el } from "./elements.js";
import { tableOf } from "./legend.js";
import { paintPicture } from "./picture.js";
import { pythonOf } from "./python.js";
import { drawSheet } from "./sheets.js";
import { isClass, isOne } from "./state.js";
import { className, percent } from "./words.js";

/** @param {Explorer} explorer */
export async function copyPython(explorer) {
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
  const { root, data, shown, tables, ui } = explorer,
    [best] = data.top;
  const [low, , high, note] = [...ui.legend.children].map((node) => node.firstChild?.textContent);
  return drawSheet({
    size: data.picture.size,
    family: getComputedStyle(root).fontFamily,
    title: data.model + (best ? `: ${best[0].split(",")[0]} ${percent(best[1])}` : ""),
    words: ui.say.textContent,
    legend: [low, high, note],
    table: tableOf(shown.settings, tables),
    drawing: (context, width, height) => {
      paintPicture(explorer, context, width, height);
      if (shown.query) framePatch(context, shown.query, data.grid, width, height, "#fff", 3);
    },
  });
}

/** @param {Explorer} explorer */
export function savePng(explorer) {
  const {
    data,
    state: { map, layer, head, part },
  } = explorer;
  const model = data.model.split(/[\\/]/).pop(),
    which = isOne(head) ? head + 1 : head;
  const what = isClass(explorer.state) ? className(explorer) : `layer${layer + 1}-head-${which}`;
  const kind = part === "special" ? `${map}-special` : map;
  const name = `${model}-${kind}-${what}.png`.replace(/[^\p{L}\w.-]+/gu, "_");
  sheetOf(explorer).toBlob((blob) => {
    const link = el("a", { href: URL.createObjectURL(blob), download: name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }, "image/png");
}
