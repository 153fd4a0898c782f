// @ts-check
// Parts of the walk: each is asked for once, and remembered as long as its picture, or its model, is here.

import { decode, fromBase64 } from "../explorer/blob.js";
import { answerOf } from "../gradio.js";

const OF_MODEL = ["kernel", "filters", "positions", "example", "position_grid"];

/** Where a part is remembered; what belongs to the model alone outlives the picture.
 * @param {Walk} walk
 * @param {Wish} wish */
function memoryOf({ ofModel, ofPicture }, [name, params]) {
  const memory = OF_MODEL.includes(name) && !("query" in params) ? ofModel : ofPicture;
  return { memory, key: JSON.stringify([name, params]) };
}

/** A part that is here already.
 * @param {Walk} walk
 * @param {Wish} wish
 * @returns {PartAnswer | undefined} */
export function remembered(walk, wish) {
  const { memory, key } = memoryOf(walk, wish),
    found = memory.get(key);
  return found instanceof Promise ? undefined : found;
}

/** A part, now or soon.
 * @param {Walk} walk
 * @param {Wish} wish
 * @returns {Promise<PartAnswer>} */
export async function part(walk, wish) {
  const { memory, key } = memoryOf(walk, wish);
  if (memory.has(key)) return memory.get(key);
  const coming = fetchPart(walk, wish);
  memory.set(key, coming);
  try {
    memory.set(key, await coming);
  } catch (error) {
    memory.delete(key); // the next one who asks tries again
    throw error;
  }
  return memory.get(key);
}

/** @param {Walk} walk
 * @param {Wish} wish */
async function fetchPart({ ask, id, language, t }, [name, params]) {
  const request = { ...params, part: name, id, language };
  const answer = await answerOf(ask, request, t("lost"));
  return /** @type {any} */ (decode(fromBase64(answer.data).buffer));
}
