// @ts-check
// The small drawings of the glossary: SVG of 96 x 64. Their classes are in glossary.css. Filled: `a` the
// accent, `m` and `l` more and less (red and blue), `f` faint. Lines: `o` an outline, `s` plain, `b` the
// accent, `x` and `y` red and blue.

/** @param {string} inside */
const svg = (inside) =>
  `<svg viewBox="0 0 96 64" width="96" height="64" aria-hidden="true">${inside}</svg>`;

/**
 * @param {number} x
 * @param {number} y
 * @param {number} width
 * @param {number} height
 * @param {string} kind
 * @param {number} [opacity] */
const box = (x, y, width, height, kind, opacity = 1) =>
  `<rect x="${x}" y="${y}" width="${width}" height="${height}" rx="1.5" class="${kind}" opacity="${opacity}"/>`;

/**
 * @param {string} d
 * @param {string} kind
 * @param {number} [width] */
const path = (d, kind, width = 1.5) => `<path d="${d}" class="${kind}" stroke-width="${width}"/>`;

/** A row of tokens; `shades` are their opacities.
 * @param {number} y
 * @param {number[]} shades
 * @param {string} [kind] */
const tokens = (y, shades, kind = "a") =>
  shades
    .map((shade, k) => box(9 + 14 * k, y, 10, 8, "o") + box(9 + 14 * k, y, 10, 8, kind, shade))
    .join("");

/** The middle of a token.
 * @param {number} k */
const at = (k) => 14 + 14 * k;

/** Lines from one token above to some below: [which, how wide].
 * @param {number} from
 * @param {number} top
 * @param {number} bottom
 * @param {[number, number][]} to
 * @param {string} [kind] */
const fan = (from, top, bottom, to, kind = "s") =>
  to.map(([k, width]) => path(`M${at(from)} ${top}L${at(k)} ${bottom}`, kind, width)).join("");

/** Bars that stand on one line.
 * @param {number} x
 * @param {number[]} heights
 * @param {string[]} [kinds] */
const bars = (x, heights, kinds = []) =>
  heights.map((h, k) => box(x + 8 * k, 54 - h, 6, h, kinds[k] ?? "a")).join("") +
  path(`M${x - 2} 55H${x + 8 * heights.length}`, "s", 1);

/** A grid of patches: a kind and an opacity for each.
 * @param {number} x
 * @param {number} y
 * @param {number} size
 * @param {(row: number, col: number) => [kind: string, opacity: number]} shade */
const grid = (x, y, size, shade) =>
  Array.from({ length: 16 }, (_, k) => {
    const row = k >> 2,
      col = k & 3,
      [kind, opacity] = shade(row, col),
      place = /** @type {const} */ ([x + col * (size + 1), y + row * (size + 1), size, size]);
    return box(...place, "o") + box(...place, kind, opacity);
  }).join("");

const photo = (/** @type {number} */ x, /** @type {number} */ y, /** @type {number} */ w) =>
  box(x, y, w, 36, "o") +
  path(`M${x} ${y + 36}l${w * 0.35} -22 l${w * 0.25} 14 l${w * 0.15} -8 l${w * 0.25} 16Z`, "f", 0) +
  `<circle cx="${x + w * 0.74}" cy="${y + 10}" r="4.5" class="f"/>`;

/** @type {Record<string, string>} */
export const DRAWINGS = {
  patch: svg(grid(24, 8, 11, (row, col) => (row === 1 && col === 2 ? ["a", 1] : ["f", 0.4]))),
  layer: svg(
    [10, 28, 46].map((y, k) => box(18, y, 60, 10, k ? "o" : "a")).join("") +
      path("M48 46V38M48 28V20", "s"),
  ),
  head: svg(
    [
      [3, 1, 3.5],
      [2, 4, 2],
      [1, 5, 0.8],
    ]
      .map(([from, to, width], k) =>
        path(`M${at(from)} 16L${at(to)} 46`, ["s", "x", "y"][k], width),
      )
      .join("") +
      tokens(8, [0, 0, 0, 0, 0, 0]) +
      tokens(46, [0, 0.8, 0, 0, 0.5, 0.25]),
  ),
  attention: svg(
    fan(2, 18, 46, [
      [0, 0.6],
      [1, 3.5],
      [2, 1],
      [4, 2],
      [5, 0.6],
    ]) +
      tokens(10, [0, 0, 1, 0, 0, 0]) +
      tokens(46, [0.12, 0.9, 0.25, 0, 0.5, 0.12]),
  ),
  rollout: svg(
    fan(2, 14, 28, [
      [1, 2],
      [2, 1.5],
      [4, 1],
    ]) +
      fan(1, 36, 50, [
        [0, 1.5],
        [1, 2],
      ]) +
      fan(2, 36, 50, [
        [1, 1.2],
        [3, 0.8],
      ]) +
      fan(4, 36, 50, [[4, 1.2]]) +
      tokens(6, [0, 0, 1, 0, 0, 0]) +
      tokens(28, [0, 0.8, 0.5, 0, 0.35, 0]) +
      tokens(50, [0.45, 0.9, 0.1, 0.25, 0.4, 0]),
  ),
  head_rollout: svg(
    fan(2, 14, 28, [[4, 3.5]], "x") +
      fan(4, 36, 50, [
        [3, 2],
        [4, 2],
        [5, 1],
      ]) +
      tokens(6, [0, 0, 1, 0, 0, 0]) +
      tokens(28, [0, 0, 0, 0, 1, 0]) +
      tokens(50, [0, 0, 0, 0.6, 0.8, 0.3]),
  ),
  special: svg(
    grid(2, 18, 5, (row, col) => ["a", (row + col) % 3 === 0 ? 0.9 : 0.4]) +
      path("M31 30H37", "s", 1.8) +
      grid(42, 18, 5, (row, col) => ["a", row === col ? 0.5 : 0.4]) +
      path("M71 28H76M71 32H76", "s", 1.4) +
      `<g transform="translate(80 18)">${box(0, 0, 14, 24, "o")}${box(0, 0, 14, 8, "m", 0.8)}${box(0, 16, 14, 8, "l", 0.8)}</g>`,
  ),
  class_token: svg(
    fan(0, 18, 46, [
      [1, 1],
      [2, 2.5],
      [3, 1],
      [4, 2],
      [5, 0.8],
    ]) +
      tokens(10, [1, 0, 0, 0, 0, 0]) +
      tokens(46, [0, 0.25, 0.7, 0.25, 0.5, 0.2]),
  ),
  class_map: svg(
    grid(24, 8, 11, (row, col) => {
      if (row < 2 && col > 0 && col < 3) return ["m", 0.75];
      return row === 3 ? ["l", 0.55] : ["f", 0];
    }),
  ),
  contribution: svg(
    path("M12 32H84", "s", 1) +
      box(20, 12, 8, 20, "m") +
      box(32, 22, 8, 10, "m") +
      box(44, 32, 8, 8, "l") +
      box(56, 16, 8, 16, "m") +
      box(68, 32, 8, 14, "l"),
  ),
  residual: svg(
    box(32, 22, 32, 20, "o") +
      path("M8 32H32M64 32H86", "s") +
      path("M16 32V10H76V32", "b", 2) +
      path("M82 28L87 32L82 36", "s"),
  ),
  discard: svg(
    bars(24, [40, 6, 26, 4, 14, 8], ["a", "f", "a", "f", "a", "f"]) +
      path("M30 44L42 52M46 46L58 52", "s", 1),
  ),
  entropy: svg(bars(8, [4, 44, 6, 3], []) + bars(56, [18, 22, 19, 21], [])),
  distance: svg(
    tokens(28, [0, 0, 1, 0, 0, 0]) +
      path("M42 26C46 14 52 14 56 26", "b", 2) +
      path("M42 38C54 60 74 60 84 38", "s", 1.5),
  ),
  log_p: svg(path("M12 54V8M12 54H86", "s", 1) + path("M16 52C20 26 40 16 84 11", "b", 2)),
  crop: svg(photo(8, 14, 80) + path("M30 14H66V50H30Z", "b", 2.5)),
  pad: svg(photo(20, 20, 56).replace(/36/g, "28") + path("M20 4H76V60H20Z", "b", 2)),
  stretch: svg(photo(4, 14, 44) + path("M52 32H60M57 29L60 32L57 35", "s") + photo(66, 14, 24)),
  native: svg(
    photo(12, 14, 72) +
      path("M24 14V50M36 14V50M48 14V50M60 14V50M72 14V50M12 26H84M12 38H84", "b", 1),
  ),
};
