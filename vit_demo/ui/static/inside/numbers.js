// @ts-check
// Numbers: how they are shown, and what follows from those that are here already. Nothing here draws.

const MINUS = "\u2212";
const SUPERSCRIPTS = "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079";

/** A number as a reader wants it: three digits, and a power of ten where it is very small or large.
 * @param {number} x
 * @param {number} [digits] */
export function figure(x, digits = 3) {
  const size = Math.abs(x),
    sign = x < 0 ? MINUS : "";
  if (!size) return "0";
  if (size >= 1e6 || size < 1e-3) {
    const [mantissa, power] = size.toExponential(digits - 2).split("e"),
      raised = [...String(Math.abs(+power))].map((c) => SUPERSCRIPTS[+c]).join("");
    return `${sign}${mantissa} \u00d7 10${+power < 0 ? "\u207b" : ""}${raised}`;
  }
  return sign + (size >= 10 ** (digits - 1) ? size.toFixed(0) : size.toPrecision(digits));
}

/** With so many places behind the point.
 * @param {number} x
 * @param {number} [places] */
export function fixed(x, places = 2) {
  const text = Math.abs(x).toFixed(places);
  return (x < 0 && +text !== 0 ? MINUS : "") + text;
}

/** Whole numbers with a space at every thousand.
 * @param {number} x */
export const count = (x) => String(x).replace(/\B(?=(\d{3})+$)/g, "\u202f");

/** @param {ArrayLike<number>} list */
export function sum(list) {
  let total = 0;
  for (let k = 0; k < list.length; k++) total += list[k];
  return total;
}

/** @param {ArrayLike<number>} list */
export const length = (list) => Math.sqrt(sum(Array.from(list, (x) => x * x)));

/** @param {ArrayLike<number>} list */
export function most(list) {
  let found = 0;
  for (let k = 0; k < list.length; k++) found = Math.max(found, Math.abs(list[k]));
  return found;
}

/** The positions of a list, largest value first.
 * @param {ArrayLike<number>} list */
export function descending(list) {
  return Array.from(list, (_, k) => k).sort((a, b) => list[b] - list[a]);
}

/** Numbers that came as whole ones with a factor (`signed` of inside.py), in so many rows.
 * @param {PartAnswer} answer
 * @param {string} name
 * @param {number} count */
export function rowsOf({ arrays }, name, count) {
  const codes = arrays[name],
    factor = arrays[`${name}_scale`][0],
    width = codes.length / count;
  return Array.from({ length: count }, (_, row) =>
    Float32Array.from({ length: width }, (_, k) => codes[row * width + k] * factor),
  );
}

/** Shares that came as roots (`coded` of payload.py).
 * @param {ArrayLike<number>} codes
 * @param {ArrayLike<number>} scale */
export function sharesOf(codes, scale) {
  const width = codes.length / scale.length;
  return Array.from(scale, (factor, row) =>
    Float32Array.from({ length: width }, (_, k) => (codes[row * width + k] / 65535) ** 2 * factor),
  );
}

/** The products of a query and a key, number by number.
 * @param {ArrayLike<number>} query
 * @param {ArrayLike<number>} key */
export const products = (query, key) => Float32Array.from(query, (x, k) => x * key[k]);

/** Each key's score: the sum of its products, divided by the root of d.
 * @param {ArrayLike<number>} query
 * @param {ArrayLike<number>[]} keys */
export const scoresOf = (query, keys) =>
  Float64Array.from(keys, (key) => sum(products(query, key)) / Math.sqrt(query.length));

/** The softmax: exponentials, with the largest score taken away first, and shares.
 * @param {ArrayLike<number>} scores
 * @param {number} [temperature] */
export function softmax(scores, temperature = 1) {
  const top = Math.max(...Array.from(scores));
  const exponentials = Float64Array.from(scores, (x) => Math.exp((x - top) / temperature)),
    total = sum(exponentials);
  return { exponentials, total, shares: exponentials.map((x) => x / total) };
}

/** In bits.
 * @param {ArrayLike<number>} shares */
export const entropy = (shares) => -sum(Array.from(shares, (p) => (p > 0 ? p * Math.log2(p) : 0)));

/** The weighted sum of the first so many values, in a given order.
 * @param {ArrayLike<number>} shares
 * @param {ArrayLike<number>[]} values
 * @param {number[]} order */
export function weightedSum(shares, values, order) {
  const total = new Float64Array(values[0].length);
  for (const token of order)
    for (let k = 0; k < total.length; k++) total[k] += shares[token] * values[token][k];
  return total;
}

/** @param {ArrayLike<number>} list */
export function median(list) {
  const sorted = Float64Array.from(list).sort();
  return sorted[(sorted.length - 1) >> 1]; // as torch takes it
}
