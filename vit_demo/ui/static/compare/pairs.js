// @ts-check
// Two maps on one grid, and what matches what in two models or pictures. The definitions are those of
// `compare.py`, and a test compares the two. Boxes are [left, top, right, bottom].

/** The index in the same relative place among `others`. What is alone matches the last.
 * @param {number} index
 * @param {number} count
 * @param {number} others */
export function matching(index, count, others) {
  if (count === 1) return others - 1;
  return Math.floor((index * (others - 1)) / (count - 1) + 0.5);
}

/** The other side's patch in the place of this one; null where it saw nothing, or no picture.
 * @param {Patch} patch
 * @param {Place} from
 * @param {Place} to
 * @param {Box} bounds of the picture
 * @returns {Patch | null} */
export function matchingPatch([row, col], from, to, bounds) {
  const [left, top, right, bottom] = from.box,
    x = left + ((col + 0.5) * (right - left)) / from.grid[1],
    y = top + ((row + 0.5) * (bottom - top)) / from.grid[0];
  if (x < bounds[0] || x >= bounds[2] || y < bounds[1] || y >= bounds[3]) return null;
  return patchAt(x, y, to);
}

/** The patch at a point, or null.
 * @param {number} x
 * @param {number} y
 * @param {Place} place
 * @returns {Patch | null} */
export function patchAt(x, y, { grid: [rows, cols], box: [left, top, right, bottom] }) {
  const row = Math.floor(((y - top) / (bottom - top)) * rows),
    col = Math.floor(((x - left) / (right - left)) * cols);
  return row >= 0 && row < rows && col >= 0 && col < cols ? [row, col] : null;
}

/** The smallest box that holds both.
 * @param {Box} a
 * @param {Box} b
 * @returns {Box} */
export const around = (a, b) => [
  Math.min(a[0], b[0]),
  Math.min(a[1], b[1]),
  Math.max(a[2], b[2]),
  Math.max(a[3], b[3]),
];

/** Rows and columns over the frame, with cells about as large as the smaller patches.
 * @param {Box} frame
 * @param {Place[]} places
 * @returns {Grid} */
export function commonGrid(frame, places) {
  /** @param {0 | 1} axis */
  const count = (axis) => {
    const low = 1 - axis,
      length = frame[low + 2] - frame[low];
    const fine = places.map(({ grid, box }) => (grid[axis] * length) / (box[low + 2] - box[low]));
    return Math.floor(Math.max(...fine) + 0.5);
  };
  return [count(0), count(1)];
}

/** Equal pieces from start to stop, by their edges: the same numbers as numpy's and torch's linspace.
 * @param {number} start
 * @param {number} stop
 * @param {number} count */
const edgesOf = (start, stop, count) =>
  Float64Array.from({ length: count + 1 }, (_, k) =>
    k === count ? stop : start + (k * (stop - start)) / count,
  );

/** The share of each of `count` pieces of a line that lies in each cell of the frame: for each cell the
 * pieces that reach into it.
 * @param {number} start
 * @param {number} stop
 * @param {number} count
 * @param {number} frameStart
 * @param {number} frameStop
 * @param {number} cells
 * @returns {[piece: number, share: number][][]} */
function shares(start, stop, count, frameStart, frameStop, cells) {
  const pieces = edgesOf(start, stop, count),
    edges = edgesOf(frameStart, frameStop, cells);
  return Array.from({ length: cells }, (_, cell) => {
    const found = /** @type {[number, number][]} */ ([]);
    for (let k = 0; k < count; k++) {
      const common = Math.min(pieces[k + 1], edges[cell + 1]) - Math.max(pieces[k], edges[cell]);
      if (common > 0) found.push([k, common / (pieces[k + 1] - pieces[k])]);
    }
    return found;
  });
}

/** A map over a box on another grid over the frame, which holds the box. Each patch is shared out by area,
 * so that the sum stays what it was.
 * @param {ArrayLike<number>} heat
 * @param {Place} place
 * @param {Box} frame
 * @param {Grid} grid */
export function onGrid(heat, { grid: [rows, cols], box }, frame, [R, C]) {
  const down = shares(box[1], box[3], rows, frame[1], frame[3], R),
    across = shares(box[0], box[2], cols, frame[0], frame[2], C),
    wide = new Float64Array(rows * C),
    laid = new Float64Array(R * C);
  for (let row = 0; row < rows; row++) {
    across.forEach((parts, c) => {
      for (const [col, share] of parts) wide[row * C + c] += share * heat[row * cols + col];
    });
  }
  down.forEach((parts, r) => {
    for (const [row, share] of parts) {
      for (let c = 0; c < C; c++) laid[r * C + c] += share * wide[row * C + c];
    }
  });
  return laid;
}

/** Whether at least half of a cell lies in every box.
 * @param {Box[]} boxes
 * @param {Box} frame
 * @param {Grid} grid */
export function seenCells(boxes, frame, [R, C]) {
  /**
   * @param {Box} box
   * @param {0 | 1} low
   * @param {number} cells */
  const inside = (box, low, cells) => {
    const edges = edgesOf(frame[low], frame[low + 2], cells),
      cell = (frame[low + 2] - frame[low]) / cells;
    return Array.from({ length: cells }, (_, k) => {
      const common = Math.min(edges[k + 1], box[low + 2]) - Math.max(edges[k], box[low]);
      return Math.max(0, common) / cell;
    });
  };
  const each = boxes.map((box) => ({ down: inside(box, 1, R), across: inside(box, 0, C) }));
  return Array.from({ length: R * C }, (_, at) =>
    each.every(({ down, across }) => down[Math.floor(at / C)] * across[at % C] > 0.5 - 1e-9),
  );
}

/** Of a map without a unit: each value as a share of all values together, whatever their sign.
 * @param {ArrayLike<number>} heat */
export function shareOfAll(heat) {
  let total = 0;
  for (let k = 0; k < heat.length; k++) total += Math.abs(heat[k]);
  return Float64Array.from(heat, (value) => value / Math.max(total, 1e-300));
}

/** The place of each value in the order; equal values share the mean of their places. What differs by
 * rounding alone is equal.
 * @param {ArrayLike<number>} values */
function ranks(values) {
  const rounded = Float32Array.from(values),
    order = Array.from(rounded, (_, k) => k).sort((a, b) => rounded[a] - rounded[b]),
    found = new Float64Array(rounded.length);
  for (let first = 0; first < order.length; ) {
    let last = first;
    while (last + 1 < order.length && rounded[order[last + 1]] === rounded[order[first]]) last++;
    for (let k = first; k <= last; k++) found[order[k]] = (first + last) / 2 + 1;
    first = last + 1;
  }
  return found;
}

/** Rank correlation: 1 the same order, 0 unrelated, -1 reversed. A flat map is related to none but
 * another flat one.
 * @param {ArrayLike<number>} a
 * @param {ArrayLike<number>} b */
export function spearman(a, b) {
  const [x, y] = [ranks(a), ranks(b)].map((one) => {
    const mean = one.reduce((sum, rank) => sum + rank, 0) / one.length;
    return one.map((rank) => rank - mean);
  });
  /**
   * @param {Float64Array} u
   * @param {Float64Array} v */
  const dot = (u, v) => u.reduce((sum, value, k) => sum + value * v[k], 0);
  const size = Math.sqrt(dot(x, x) * dot(y, y));
  return size ? dot(x, y) / size : Number(dot(x, x) === dot(y, y));
}
