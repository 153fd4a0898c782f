// @ts-check
// The pad to draw digits on.

import { sendValue } from "../gradio.js";
import { find } from "./dom.js";
import { forgetUpload } from "./picture.js";

/** Black strokes on white; after each stroke the drawing is sent. An empty pad has no answer.
 * @param {HTMLElement} element
 * @param {GradioComponent} gradio */
export function mount(element, { props, trigger }) {
  const canvas = find(element, "canvas"),
    pen = canvas.getContext("2d");
  let last = null,
    timer = null;
  const erase = () => {
    pen.fillStyle = "#fff";
    pen.fillRect(0, 0, canvas.width, canvas.height);
  };
  /** @param {PointerEvent} event */
  const point = (event) => {
    const box = canvas.getBoundingClientRect(),
      scale = canvas.width / box.width;
    return [(event.clientX - box.left) * scale, (event.clientY - box.top) * scale];
  };
  /**
   * @param {number[]} from
   * @param {number[]} to */
  const stroke = (from, to) => {
    Object.assign(pen, { lineWidth: 22, lineCap: "round", lineJoin: "round", strokeStyle: "#111" });
    pen.beginPath();
    pen.moveTo(...from);
    pen.lineTo(...to);
    pen.stroke();
  };
  /** @param {string | null} drawing */
  const send = (drawing) => {
    forgetUpload();
    sendValue({ props, trigger }, drawing);
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
    timer = setTimeout(() => send(canvas.toDataURL("image/png")), 150);
  };
  canvas.addEventListener("pointerup", end);
  canvas.addEventListener("pointercancel", end);
  find(element, "button").addEventListener("click", () => {
    clearTimeout(timer);
    erase();
    send(null);
  });
  erase();
}
