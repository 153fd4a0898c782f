// @ts-check
// Both pictures, their difference and the words around them on one sheet of white paper, as PNG.

import { canvasOf, newCanvas } from "../explorer/draw.js";
import { tableOf } from "../explorer/legend.js";
import { paintDifference, paintSide } from "./views.js";

const WIDTH = 448,
  GAP = 32,
  INK = "#1b1f24";

/** What is on the screen, for the PNG and for tests.
 * @param {Compare} compare */
export function sheetOf(compare) {
  const { ui, root, views, explorer } = compare;
  const shapes = ui.views.map(({ box }) => +box.style.getPropertyValue("--vx-aspect") || 1),
    tallest = Math.max(...shapes.map((aspect) => Math.round(WIDTH / aspect)));
  const canvas = newCanvas(3 * WIDTH + 4 * GAP, tallest + 250),
    context = canvas.getContext("2d"),
    family = getComputedStyle(root).fontFamily;
  context.fillStyle = "#fff";
  context.fillRect(0, 0, canvas.width, canvas.height);
  shapes.forEach((aspect, side) => {
    const height = Math.round(WIDTH / aspect);
    context.save();
    context.translate(GAP + side * (WIDTH + GAP), GAP);
    context.beginPath();
    context.rect(0, 0, WIDTH, height);
    context.save();
    context.clip();
    if (side < 2) paintSide(views.sides[side], explorer.tables, context, WIDTH, height);
    else paintDifference(compare, context, WIDTH, height);
    context.restore();
    context.translate(0, tallest + 14);
    write(compare, side, context, family);
    context.restore();
  });
  return canvas;
}

/**
 * @param {Compare} compare
 * @param {number} side
 * @param {CanvasRenderingContext2D} context
 * @param {string} family */
function write(
  { ui, first, second, language, views, explorer: { tables } },
  side,
  context,
  family,
) {
  const [low, , high, note] = [...ui.views[side].legend.children].map((node) => node.textContent);
  const best = [first, second][side]?.answers[0];
  const lines = [
    ui.titles[side].textContent,
    best ? `${best.names[language]} ${(100 * best.probability).toFixed(1)} %` : "",
    ui.whats[side].textContent,
  ];
  if (side === 2) lines[1] = ui.correlation.textContent;
  context.fillStyle = INK;
  context.textBaseline = "top";
  lines.forEach((text, k) => {
    context.font = `${k ? 400 : 600} 20px ${family}`;
    context.fillText(text, 0, 28 * k, WIDTH);
  });
  context.font = `400 18px ${family}`;
  const y = 28 * lines.length + 8,
    x = context.measureText(low).width + 10;
  const table = side === 2 ? tables.difference : tableOf(views.sides[side].state, tables);
  const ramp = Float32Array.from({ length: 256 }, (_, k) => k);
  context.fillText(low, 0, y);
  context.drawImage(canvasOf(ramp, 256, 1, table, { low: 0, high: 256 }), x, y + 2, 160, 16);
  context.fillText(`${high} ${note}`, x + 170, y, WIDTH - x - 170);
}
