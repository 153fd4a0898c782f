// @ts-check
// What is switched off: heads, layers and patches, each set by name ("layer,head", "row,column").

export function emptyOff(fill = "black") {
  return { heads: new Set(), layers: new Set(), patches: new Set(), fill };
}

export const pairOf = (text) => text.split(",").map(Number);

export function toggleMember(set, key) {
  if (!set.delete(key)) set.add(key);
}
