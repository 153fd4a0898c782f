// @ts-check
// What the explorer asks the server for: a patch's attention, the maps of a class. Each once.

import { fromBase64 } from "./blob.js";
import { announce } from "./elements.js";
import { SCHEMA } from "./state.js";
import { sync } from "./sync.js";

/** Lean data: a patch's rows come when they are needed, once.
 * @param {Explorer} explorer
 * @param {Patch | null} query */
export function fetchQuery(explorer, query) {
  const { fetchQueryBlob, fetching, maps } = explorer,
    key = JSON.stringify(query);
  if (!fetchQueryBlob || maps.knows(query) || fetching.has(key)) return;
  fetching.set(key, maps);
  fetchQueryBlob(query)
    .then((buffer) => {
      if (maps !== explorer.maps) return;
      maps.remember(query, buffer);
      explorer.base.key = explorer.wall.key = null;
      sync(explorer);
      explorer.draw("picture", "wall");
    })
    .catch((error) => {
      if (maps === explorer.maps) announce(explorer, String(error.message || error));
    })
    .finally(() => {
      if (fetching.get(key) === maps) fetching.delete(key);
    });
}

/** The maps of a class come when somebody asks for it, once.
 * @param {Explorer} explorer */
export function fetchClasses(explorer) {
  const { state, classes, fetchClassMaps, fetching, maps } = explorer;
  const missing = [state.label, state.minus].filter(
    (label) => label !== null && !classes.has(label),
  );
  const key = `classes ${missing}`;
  if (!missing.length || fetching.has(key)) return;
  if (!fetchClassMaps) {
    // a page without a server: only what is in the file
    const [first] = classes.keys(),
      other = first !== undefined && !classes.has(state.label);
    return explorer.set(other ? { label: first, minus: null } : { map: explorer.lastPlain });
  }
  fetching.set(key, maps);
  fetchClassMaps(missing)
    .then((found) => {
      if (maps !== explorer.maps) return;
      rememberClasses(explorer, found);
      sync(explorer);
      explorer.draw("picture");
    })
    .catch((error) => {
      if (maps !== explorer.maps) return;
      explorer.set({ map: explorer.lastPlain });
      explorer.trouble = String(error.message || error);
      announce(explorer, explorer.trouble);
    })
    .finally(() => {
      if (fetching.get(key) === maps) fetching.delete(key);
    });
}

/** `found`: {number: {name, probability, data}}; data are (SCHEMA.class_maps x N) numbers in base64.
 * @param {Pick<Explorer, "classes" | "maps">} explorer
 * @param {Record<string, ClassMaps>} found */
export function rememberClasses({ classes, maps: { N } }, found) {
  for (const [label, { name, probability, data }] of Object.entries(found)) {
    const all = new Float32Array(fromBase64(data).buffer),
      maps = /** @type {KnownClass["maps"]} */ ({});
    SCHEMA.class_maps.forEach((map, k) => {
      maps[map] = all.subarray(k * N, (k + 1) * N);
    });
    classes.set(+label, { name, probability, maps });
  }
}
