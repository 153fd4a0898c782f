// @ts-check
// What the explorer asks the server for: attention that was left out, the maps of a class. Each once.

import { fromBase64 } from "./blob.js";
import { announce } from "./elements.js";
import { isClass, SCHEMA, tileSettings } from "./state.js";
import { sync } from "./sync.js";

/** Lean data: what was left out comes when it is needed, once: a layer's heads, a patch's rows in every
 * layer, the strongest or weakest of the heads.
 * @param {Explorer} explorer
 * @param {RowsWanted} wanted */
export function fetchRows(explorer, wanted) {
  const { fetchRowsBlob, fetching, maps } = explorer,
    key = JSON.stringify(wanted);
  if (!fetchRowsBlob || maps.remembers(wanted) || fetching.get(key) === maps) return;
  fetching.set(key, maps);
  fetchRowsBlob(wanted)
    .then((buffer) => {
      if (maps !== explorer.maps) return;
      maps.remember(wanted, buffer);
      explorer.base.key = null;
      if (!("layer" in wanted)) explorer.wall.key = null;
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

/** Ask for what these settings will need: for the picture, for the wall, and for every patch that may be
 * pointed at in the layer that is shown.
 * @param {Explorer} explorer */
export function fetchAhead(explorer) {
  const { state, maps, playing } = explorer,
    { query, layer, map } = state,
    tiles = tileSettings(state);
  clearTimeout(explorer.layerTimer);
  if (maps.full) return;
  if (query || (tiles.map === "attention" && tiles.direction === "to")) {
    fetchRows(explorer, { query }); // in every layer
  }
  if (map === "rollout" || isClass(state)) {
    const wanted = isClass(state) ? null : maps.missing(state, query);
    if (wanted) fetchRows(explorer, wanted);
  } else if (maps.later.layers && !playing) {
    explorer.layerTimer = setTimeout(() => fetchRows(explorer, { layer }), 150);
  } else if (maps.missing(state, query)) {
    fetchRows(explorer, { query });
  }
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
