// @ts-check
// What is chosen: patch, layer, head and label are the explorer's, so they are the same in every tab and in
// the link. It knows a patch or a label, never both; here both stay chosen as long as the picture.

import { isClass, isOne, SCHEMA } from "../explorer/state.js";
import { explorerId } from "../page/explorer.js";

/**
 * @param {ExplorerHandle} explorer
 * @returns {WalkHost} */
export function pageHost(explorer) {
  let of = "",
    head = 0,
    query = null,
    label = null;
  const follow = () => {
    const { state } = explorer;
    if (of !== explorerId()) [of, query, label] = [explorerId(), null, null];
    if (isClass(state)) label = state.label;
    else query = state.query;
    if (isOne(state.head)) head = /** @type {number} */ (state.head);
  };
  return {
    get id() {
      return explorer.data ? explorerId() : null;
    },
    get choice() {
      follow();
      const { data, state } = explorer;
      return { query, layer: state.layer, head: Math.min(head, data.heads - 1), label };
    },
    get pictures() {
      const { data, ground, grounds, tables, state } = explorer;
      return { ground, seen: grounds.seen, tables, colours: state.colours, data };
    },
    choose(changes) {
      follow();
      const { state } = explorer;
      if (changes.label !== undefined) {
        label = changes.label;
        const map = isClass(state) ? state.map : SCHEMA.class_maps[0];
        return explorer.set({ map, label, minus: null });
      }
      if (changes.query !== undefined && isClass(state)) explorer.leaveClass();
      if (changes.head !== undefined && state.map === "rollout")
        return explorer.set({ ...changes, map: "head_rollout" });
      return explorer.set(changes);
    },
    onChange: (then) => document.addEventListener("vitx-state", then),
  };
}
