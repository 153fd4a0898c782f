// @ts-check
// The pad to draw digits on.

import { sendValue } from "../gradio.js";

// Black strokes on white; after each stroke the drawing is sent.
export function mount(element, { props, trigger }) {
  const canvas = element.querySelector("canvas"),
    pen = canvas.getContext("2d");
  let last = null,
    timer = null;
  const erase = () => {
    pen.fillStyle = "#fff";
    pen.fillRect(0, 0, canvas.width, canvas.height);
  };
  const point = (event) => {
    const box = canvas.getBoundingClientRect(),
      scale = canvas.width / box.width;
    return [(event.clientX - box.left) * scale, (event.clientY - box.top) * scale];
  };
  const stroke = (from, to) => {
    Object.assign(pen, { lineWidth: 22, lineCap: "round", lineJoin: "round", strokeStyle: "#111" });
    pen.beginPath();
    pen.moveTo(...from);
    pen.lineTo(...to);
    pen.stroke();
  };
  const send = () => sendValue({ props, trigger }, canvas.toDataURL("image/png"));
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
    timer = setTimeout(send, 150);
  };
  canvas.addEventListener("pointerup", end);
  canvas.addEventListener("pointercancel", end);
  element.querySelector("button").addEventListener("click", erase);
  erase();
}
