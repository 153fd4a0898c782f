// @ts-check
// The explorer's settings: what they may be, and what fits a model.

/** The names, choices and defaults of all settings: `SCHEMA` of `map_settings.py`.
 * @type {Schema} */
export const SCHEMA = /** @type {any} */ ({});

/** Python hands the schema over once, before anything else happens.
 * @param {Schema} schema */
export function useSchema(schema) {
  Object.assign(SCHEMA, schema);
}

/** @param {Pick<State, "map">} given */
export const isClass = ({ map }) => SCHEMA.class_maps.includes(map);

/** Values on both sides of zero, which is the middle of the colours.
 * @param {Pick<State, "map"> & Partial<State>} given */
export const isSigned = ({ map, part = "whole", minus = null }) =>
  minus !== null ||
  SCHEMA.signed_maps.includes(map) ||
  (map === "head_rollout" && part === "special");

/** @param {unknown} head */
export const isOne = (head) => typeof head === "number"; // otherwise all heads, fused

/** What the tiles of the wall show, as settings.
 * @param {State} state
 * @returns {State} */
export const tileSettings = (state) => ({
  ...state,
  map: state.wall === "attention" ? "attention" : "head_rollout",
  part: state.wall === "special" ? "special" : "whole",
  label: null,
  minus: null,
});

/** The view of the wall whose tiles are maps of this kind; undefined where it has none.
 * @param {Partial<State>} settings
 * @returns {State["wall"] | undefined} */
export function wallView({ map, part }) {
  if (map === "attention") return map;
  if (map === "head_rollout") return part === "special" ? part : "whole";
}

/** Whether the picture shows the kind of map that the wall shows: then they can share a scale.
 * @param {State} state */
export function isOfWall(state) {
  const tile = tileSettings(state),
    map = state.map === "rollout" ? "head_rollout" : state.map;
  return map === tile.map && state.part === tile.part;
}

/**
 * @param {Patch | null} a
 * @param {Patch | null} b */
export const same = (a, b) => a === b || (a && b && a[0] === b[0] && a[1] === b[1]);

/**
 * @param {any} x
 * @param {number} low
 * @param {number} high
 * @param {number} [other] */
export function clamp(x, low, high, other) {
  return Number.isFinite(+x) ? Math.min(high, Math.max(low, +x)) : other;
}

/** All heads of a layer, followed back: their mean is rollout, exactly.
 * @param {Pick<State, "head" | "below" | "discard">} given */
export const isRollout = ({ head, below, discard }) =>
  head === "mean" && below === "mean" && !discard;

/** The fusions of heads that a visitor is offered: what is special is one head's, and all heads of a head
 * rollout are rollout, which has its own name. So they are in the first layer, whatever is followed below
 * it; who walks there with all heads keeps them.
 * @param {State} state
 * @returns {Fusion[]} */
export function fusionsOf(state) {
  if (state.part === "special") return [];
  if (state.map !== "head_rollout") return SCHEMA.fusions;
  const below = state.layer ? state.below : "mean";
  return SCHEMA.fusions.filter(
    (head) => head === state.head || !isRollout({ ...state, head, below }),
  );
}

/** A state that fits the model, whatever a link may say.
 * @param {Record<string, any>} state
 * @param {Pick<Maps, "L" | "H" | "full" | "fusions">} given
 * @param {Pick<Payload, "grid" | "classes" | "top" | "readout_tokens">} given2 */
export function fitting(
  state,
  { L, H, full, fusions },
  { grid, classes, top, readout_tokens: [start, stop] },
) {
  /** @type {Record<string, any> & State} */
  const s = { ...SCHEMA.defaults };
  for (const key of Object.keys(SCHEMA.defaults)) if (state[key] !== undefined) s[key] = state[key];
  for (const [key, allowed] of Object.entries(SCHEMA.choices)) {
    if (!allowed.includes(s[key])) s[key] = SCHEMA.defaults[key];
  }
  s.layer = Math.round(clamp(s.layer < 0 ? L + +s.layer : s.layer, 0, L - 1, L - 1));
  if (!SCHEMA.fusions.includes(/** @type {Fusion} */ (s.head)))
    s.head = Math.round(clamp(s.head, 0, H - 1, 0));
  s.residual = clamp(s.residual, 0, 1, SCHEMA.defaults.residual);
  s.discard = clamp(s.discard, 0, 0.99, SCHEMA.defaults.discard);
  s.opacity = clamp(s.opacity, 0, 1, SCHEMA.defaults.opacity);
  s.smooth = String(s.smooth) === "true";
  /**
   * @param {number} x
   * @param {number} k */
  const inside = (x, k) => Number.isInteger(x) && x >= 0 && x < grid[k];
  if (!Array.isArray(s.query) || ![0, 1].every((k) => inside(s.query[k], k))) s.query = null;
  if (isClass(s) && !classes) s.map = SCHEMA.defaults.map;
  /** @param {number} label */
  const known = (label) => Number.isInteger(label) && label >= 0 && label < classes;
  if (!isClass(s)) s.label = s.minus = null;
  else {
    if (!known(s.label)) s.label = top[0][2]; // the predicted one
    if (!known(s.minus) || s.minus === s.label || s.map === "random") s.minus = null;
    s.query = null;
  }
  if (s.map !== "attention") s.direction = "from";
  if (!full) s.below = "mean";
  if (!full && stop - start > 1) s.discard = 0; // it needs the rows of all these tokens
  if (s.map !== "head_rollout" || !isOne(s.head)) s.part = "whole"; // what is special is one head's
  if (s.map === "head_rollout" && isRollout(s)) s.map = "rollout";
  if (s.map === "rollout" && (isOne(s.head) || !fusions)) s.head = "mean";
  return s;
}
