// @ts-check
// What is switched off: heads, layers and patches, each set by name ("layer,head", "row,column").

/** @param {string} [fill]
 * @returns {Off} */
export function emptyOff(fill = "black") {
  return { heads: new Set(), layers: new Set(), patches: new Set(), fill };
}

/** @param {string} text
 * @returns {[number, number]} */
export function pairOf(text) {
  const [first, second] = text.split(",");
  return [Number(first), Number(second)];
}

/**
 * @param {Set<any>} set
 * @param {any} key */
export function toggleMember(set, key) {
  if (!set.delete(key)) set.add(key);
}
