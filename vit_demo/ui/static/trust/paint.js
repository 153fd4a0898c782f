// @ts-check
// Painting over patches: the brush of the knock-outs.

import { fitCanvas } from "../explorer/draw.js";
import { ARROWS } from "../explorer/elements.js";
import { pairOf, toggleMember } from "./off.js";

const SLACK = 6; // pixels that a thumb may move while it only taps

/** @param {Trust} trust */
export function drawPaint(trust) {
  const {
      ui,
      off,
      t,
      explorer: { data, ground },
    } = trust,
    [w, h] = data.picture.size,
    [rows, cols] = data.grid;
  const box = ui.paint.getBoundingClientRect(),
    context = ui.paint.getContext("2d");
  ui.paint.style.aspectRatio = `${w} / ${h}`;
  const ratio = fitCanvas(ui.paint, box.width || 280, ((box.width || 280) * h) / w),
    { width, height } = ui.paint;
  /** @param {Patch} patch
   * @returns {[number, number, number, number]} */
  const cell = (patch) => {
    const [row, col] = patch;
    const [x, y] = [Math.round((col * width) / cols), Math.round((row * height) / rows)];
    return [
      x,
      y,
      Math.round(((col + 1) * width) / cols) - x,
      Math.round(((row + 1) * height) / rows) - y,
    ];
  };
  context.imageSmoothingEnabled = !ground.crisp;
  context.drawImage(ground.colour, 0, 0, width, height);
  const fill = off.fill === "blur" && blurred(ground.colour, data.grid);
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
  for (const patch of [trust.brush?.at, trust.cursor]) {
    if (!patch) continue;
    context.lineWidth = 4 * ratio;
    context.strokeStyle = "#000a";
    context.strokeRect(...cell(patch));
    context.lineWidth = 2 * ratio;
    context.strokeStyle = "#fff";
    context.strokeRect(...cell(patch));
  }
  ui.painted.textContent = off.patches.size
    ? t("painted", { count: off.patches.size, total: rows * cols })
    : t("paint_hint");
}

/** About what the model will see under the brush: a picture without its details.
 * @param {ImageBitmap} picture
 * @param {Grid} grid */
function blurred(picture, [rows, cols]) {
  const small = Object.assign(document.createElement("canvas"), { width: cols, height: rows });
  small.getContext("2d").drawImage(picture, 0, 0, cols, rows);
  return small;
}

/**
 * @param {Trust} trust
 * @param {() => void} changed */
export function listenToPaint(trust, changed) {
  const canvas = trust.ui.paint;
  /** @type {number[] | null} */
  let thumb = null; // where one touched the picture; down the page it scrolls, across it paints
  /** @param {MouseEvent} event
   * @returns {Patch} */
  const patchAt = (event) => {
    const box = canvas.getBoundingClientRect(),
      [rows, cols] = trust.explorer.data.grid;
    /**
     * @param {number} share
     * @param {number} count */
    const inside = (share, count) => Math.max(0, Math.min(count - 1, Math.floor(share * count)));
    return [
      inside((event.clientY - box.top) / box.height, rows),
      inside((event.clientX - box.left) / box.width, cols),
    ];
  };
  /** @param {Patch} patch */
  const paint = (patch) => {
    const key = patch.join();
    if (trust.brush.on === trust.off.patches.has(key)) return;
    toggleMember(trust.off.patches, key);
    changed();
  };
  canvas.addEventListener("pointerdown", (event) => {
    if (!trust.ready) return;
    canvas.setPointerCapture(event.pointerId);
    const patch = patchAt(event);
    trust.cursor = null;
    trust.brush = { on: !trust.off.patches.has(patch.join()), at: patch };
    thumb = event.pointerType === "touch" ? [event.clientX, event.clientY] : null;
    if (!thumb) paint(patch);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!trust.brush) return;
    if (thumb) {
      const [across, down] = [event.clientX - thumb[0], event.clientY - thumb[1]].map(Math.abs);
      if (Math.max(across, down) < SLACK) return;
      thumb = null;
      if (down > across) trust.brush = null;
      if (!trust.brush) return;
      paint(trust.brush.at);
    }
    trust.brush.at = patchAt(event);
    paint(trust.brush.at);
  });
  for (const end of ["pointerup", "pointercancel"])
    canvas.addEventListener(end, () => {
      if (trust.brush && end === "pointerup") paint(trust.brush.at);
      trust.brush = null;
      if (trust.ready) drawPaint(trust);
    });
  canvas.addEventListener("keydown", (event) => {
    const arrow = ARROWS[event.key];
    if (!trust.ready || !(arrow || event.key === "Enter" || event.key === " ")) return;
    event.preventDefault();
    const [rows, cols] = trust.explorer.data.grid,
      clamp = (x, most) => Math.max(0, Math.min(most, x));
    if (!trust.cursor) trust.cursor = [rows >> 1, cols >> 1];
    else if (arrow)
      trust.cursor = [
        clamp(trust.cursor[0] + arrow[0], rows - 1),
        clamp(trust.cursor[1] + arrow[1], cols - 1),
      ];
    else {
      toggleMember(trust.off.patches, trust.cursor.join());
      return changed();
    }
    drawPaint(trust);
    trust.ui.painted.textContent = trust.t("paint_at", {
      row: trust.cursor[0] + 1,
      col: trust.cursor[1] + 1,
    });
  });
  canvas.addEventListener("blur", () => {
    trust.cursor = null;
    if (trust.ready) drawPaint(trust);
  });
}
