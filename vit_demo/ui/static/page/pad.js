// @ts-check
// The pad to draw digits on.

import { find } from "./dom.js";
import { removePicture, takePicture } from "./picture.js";

/** After each stroke the drawing is sent, as a picture like any other. An empty pad has no answer; and with
 * another picture on the page it is empty.
 * @param {HTMLElement} element */
export function mount(element) {
  const canvas = find(element, "canvas");
  /** @type {string | null} */
  let sent = null; // the name of the drawing on the pad, which the address keeps
  const pad = drawingPad(canvas, () => {
    const name = `drawing-${Date.now()}.png`;
    sent = name;
    canvas.toBlob((blob) => {
      if (sent === name) takePicture(new File([blob], name, { type: blob.type }));
    });
  });
  const erase = () => {
    sent = null;
    pad.erase();
  };
  find(element, "button").addEventListener("click", () => {
    erase();
    removePicture();
  });
  document.addEventListener("vit-chosen", (event) => {
    if (/** @type {CustomEvent} */ (event).detail !== sent) erase();
  });
  addEventListener("popstate", () => {
    if (!sent || !String(history.state?.upload).endsWith(sent)) erase();
  });
}

/** Black strokes on white; after each stroke the drawing is handed over, as a data URL.
 * @param {HTMLCanvasElement} canvas
 * @param {(drawing: string) => void} drawn */
export function drawingPad(canvas, drawn) {
  const pen = canvas.getContext("2d");
  /** @type {[number, number] | null} */
  let last = null;
  /** @type {Timer} */
  let timer = null;
  const erase = () => {
    clearTimeout(timer);
    pen.fillStyle = "#fff";
    pen.fillRect(0, 0, canvas.width, canvas.height);
  };
  /** @param {PointerEvent} event
   * @returns {[number, number]} */
  const point = (event) => {
    const box = canvas.getBoundingClientRect(),
      scale = canvas.width / box.width;
    return [(event.clientX - box.left) * scale, (event.clientY - box.top) * scale];
  };
  /**
   * @param {[number, number]} from
   * @param {[number, number]} to */
  const stroke = (from, to) => {
    Object.assign(pen, { lineWidth: 22, lineCap: "round", lineJoin: "round", strokeStyle: "#111" });
    pen.beginPath();
    pen.moveTo(...from);
    pen.lineTo(...to);
    pen.stroke();
  };
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    clearTimeout(timer);
    last = point(event);
    stroke(last, last);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!last) return;
    const next = point(event);
    stroke(last, next);
    last = next;
  });
  const end = () => {
    if (!last) return;
    last = null;
    timer = setTimeout(() => drawn(canvas.toDataURL("image/png")), 150);
  };
  canvas.addEventListener("pointerup", end);
  canvas.addEventListener("pointercancel", end);
  erase();
  return {
    erase,
    /** A picture in place of strokes.
     * @param {CanvasImageSource} picture */
    show(picture) {
      erase();
      pen.drawImage(picture, 0, 0, canvas.width, canvas.height);
    },
  };
}
