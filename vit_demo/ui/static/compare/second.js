// @ts-check
// The second one: its data, and the map that matches the first one's.

import { decode, fromBase64 } from "../explorer/blob.js";
import { rememberClasses } from "../explorer/fetching.js";
import { groundsOf } from "../explorer/index.js";
import { createMaps } from "../explorer/maps.js";
import { classVector } from "../explorer/picture.js";
import { fitting, isClass, isOne, same } from "../explorer/state.js";
import { answerOf } from "../gradio.js";
import { matching, matchingPatch } from "./pairs.js";

/** Fetch and open the data of the second one.
 * @param {Pair} pair
 * @returns {Promise<Second>} */
export async function openSecond(pair) {
  const response = await fetch(pair.url);
  if (!response.ok) throw new Error(String(response.status));
  const data = decode(await response.arrayBuffer());
  return {
    ...pair,
    data,
    maps: createMaps(data),
    grounds: await groundsOf(data),
    classes: new Map(),
    asked: new Set(),
  };
}

/** Where both maps lie, in one system of coordinates.
 * @param {Payload} first
 * @param {Second} second
 * @returns {[Place, Place]} */
export const placesOf = (first, second) => [
  { grid: first.grid, box: second.boxes[0] },
  { grid: second.data.grid, box: second.boxes[1] },
];

/** The first one's settings, asked of the second: layer, head, patch and labels that match. `notes` name
 * what has no match there.
 * @param {State} state
 * @param {Payload} first
 * @param {Second} second
 * @param {{ first: Patch; second: Patch } | null} chosen
 * @returns {{ state: State; notes: string[] }} */
export function matched(state, first, second, chosen) {
  const { data, maps, bounds, matches } = second,
    notes = [],
    found = { ...state };
  found.layer = matching(state.layer, first.layers, data.layers);
  if (isOne(state.head)) found.head = matching(Number(state.head), first.heads, data.heads);
  if (state.query) {
    const [here, there] = placesOf(first, second),
      clicked = chosen && same(chosen.first, state.query);
    found.query = clicked ? chosen.second : matchingPatch(state.query, here, there, bounds);
    if (!found.query) notes.push("not_seen");
  }
  if (isClass(state)) {
    const wanted = [state.label, state.minus].map((label) =>
      label === null ? null : (matches[label] ?? -1),
    );
    if (wanted.includes(-1)) notes.push("no_label");
    [found.label, found.minus] = wanted.includes(-1) ? [null, null] : wanted;
  }
  return { state: fitting(found, maps, data), notes };
}

/** The second one's map, as values of its patches; null while something of it is fetched.
 * @param {Compare} compare
 * @param {State} state */
export function secondValues(compare, state) {
  const { second } = compare,
    { maps, classes } = second,
    missing = [state.label, state.minus].filter((label) => label !== null && !classes.has(label));
  if (missing.length) {
    fetchOnce(compare, "class_maps", { labels: missing }, (answer) =>
      rememberClasses(second, answer.classes),
    );
    return null;
  }
  const vector = isClass(state) ? classVector({ state, classes }) : maps.mapOf(state, state.query);
  if (vector) return vector.subarray(maps.P);
  const wanted = maps.missing(state, state.query);
  fetchOnce(compare, "attention_rows", wanted, (answer) =>
    maps.remember(wanted, fromBase64(answer.data).buffer),
  );
  return null;
}

/** Ask the server, each thing once; then everything is drawn anew.
 * @param {Compare} compare
 * @param {string} question
 * @param {object} request
 * @param {(answer: any) => void} then */
function fetchOnce(compare, question, request, then) {
  const { second, server, language, t } = compare,
    key = JSON.stringify([question, request]);
  if (second.asked.has(key)) return;
  second.asked.add(key);
  answerOf(server[question], { ...request, id: second.id, language }, t("lost"))
    .then(then)
    .catch((error) => {
      if (compare.second === second) compare.trouble = String(error.message || error);
    })
    .finally(() => {
      if (compare.second === second) compare.draw();
    });
}
