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

/** @param {unknown} head */
export const isOne = (head) => typeof head === "number"; // otherwise all heads, fused

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

/** A state that fits the model, whatever a link may say.
 * @param {Record<string, any>} state
 * @param {Pick<Maps, "L" | "H" | "full" | "fusions">} given
 * @param {Pick<Payload, "grid" | "classes" | "top">} given2 */
export function fitting(state, { L, H, full, fusions }, { grid, classes, top }) {
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
  if (s.map === "rollout" && (isOne(s.head) || !fusions)) s.head = "mean";
  return s;
}
