// The explorer's settings: what they may be, and what they mean, in plain words and in Python.

const DEFAULTS = { map: "head_rollout", layer: -1, head: "mean", query: null, direction: "from",
  below: "mean", residual: 0.5, discard: 0, opacity: 0.55, smooth: false, colours: "inferno",
  scale: "own", sort: "layer", label: null, minus: null };
const PLAIN_MAPS = ["head_rollout", "rollout", "attention"]; // the same for every class
const CLASS_MAPS = ["contribution", "relevance", "gradient_rollout", "grad_cam", "random"]; // as `class_maps` packs them
const SIGNED_MAPS = ["contribution"]; // for the class above zero, against it below
const CHOICES = { map: [...PLAIN_MAPS, ...CLASS_MAPS], direction: ["from", "to"],
  below: ["mean", "same"], scale: ["shared", "own"], sort: ["layer", "focus"],
  colours: ["inferno", "viridis", "cividis", "magma"] };
const FUSIONS = ["mean", "max", "min"];

const isClass = ({ map }) => CLASS_MAPS.includes(map);
const isSigned = ({ map, minus }) => minus !== null || SIGNED_MAPS.includes(map);
const isOne = (head) => typeof head === "number"; // otherwise all heads, fused
const same = (a, b) => a === b || (a && b && a[0] === b[0] && a[1] === b[1]);

function clamp(x, low, high, other) {
  return Number.isFinite(+x) ? Math.min(high, Math.max(low, +x)) : other;
}

/** A state that fits the model, whatever a link may say. */
function fitting(state, { L, H, full, fusions }, { grid, classes, top }) {
  const s = { ...DEFAULTS };
  for (const key of Object.keys(DEFAULTS)) if (state[key] !== undefined) s[key] = state[key];
  for (const [key, allowed] of Object.entries(CHOICES)) {
    if (!allowed.includes(s[key])) s[key] = DEFAULTS[key];
  }
  s.layer = Math.round(clamp(s.layer < 0 ? L + +s.layer : s.layer, 0, L - 1, L - 1));
  if (!FUSIONS.includes(s.head)) s.head = Math.round(clamp(s.head, 0, H - 1, 0));
  s.residual = clamp(s.residual, 0, 1, 0.5);
  s.discard = clamp(s.discard, 0, 0.99, 0);
  s.opacity = clamp(s.opacity, 0, 1, DEFAULTS.opacity);
  s.smooth = s.smooth === true || s.smooth === "true";
  const inside = (x, k) => Number.isInteger(x) && x >= 0 && x < grid[k];
  if (!Array.isArray(s.query) || ![0, 1].every((k) => inside(s.query[k], k))) s.query = null;
  if (isClass(s) && !classes) s.map = DEFAULTS.map;
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

// ---- In words. `t(key, values)` says a text in the visitor's language.

const fill = (text, values) => text.replace(/\{(\w+)\}/g, (_, name) => values[name]);
const fromOne = ([row, col]) => ({ row: row + 1, col: col + 1 });

function percent(share) {
  const p = 100 * share, digits = p >= 10 ? 1 : p >= 1 ? 2 : 3;
  return p > 0 && p < 0.001 ? "< 0.001 %" : `${p.toFixed(p === 0 ? 0 : digits)} %`;
}

function readoutName({ data, t }) {
  return t(data?.pool === "avg" ? "token_avg" : data?.readout[1] > 1 ? "token_two" : "token_cls");
}

/** A label in a few letters: the first of its names. */
const shortName = (name) => name.split(",")[0];

function labelName({ classes, data }, label) {
  const found = classes.get(label)?.name ?? data.top.find(([, , index]) => index === label)?.[0];
  return shortName(found ?? String(label));
}

/** Whose class map it is: "tabby", or "tabby - tiger cat". */
function className(explorer) {
  const { label, minus } = explorer.state;
  return [label, minus].filter((one) => one !== null).map((one) => labelName(explorer, one)).join(" \u2212 ");
}

/** A value of the map as a visitor reads it: a share, or a number in units of the logit. */
function amount({ state }, value) {
  const sign = isSigned(state) && value > 0 ? "+" : "";
  if (!isClass(state) || state.map === "gradient_rollout") {
    return value < 0 ? `\u2212${percent(-value)}` : sign + percent(value);
  }
  return (sign + (+value.toPrecision(3))).replace("-", "\u2212");
}

function queryName(explorer, query) {
  if (isClass(explorer.state)) return className(explorer);
  return query ? explorer.t("patch", fromOne(query)) : readoutName(explorer);
}

function tileName({ data, maps, t }, [layer, head]) {
  const at = layer * maps.H + head, { distance, entropy } = data.arrays;
  return `${t("wall_name", { layer: layer + 1, head: head + 1 })} · ${t("wall_facts", {
    distance: Math.round(distance[at]), entropy: entropy[at].toFixed(1) })}`;
}

function classCaption(explorer) {
  const { state: { map, label, minus }, t } = explorer;
  const values = { label: labelName(explorer, label), minus: minus === null ? "" : labelName(explorer, minus) };
  if (minus !== null) return t("say_difference", values);
  const shares = map === "gradient_rollout" ? prefixShares(explorer)
    : map === "contribution" ? prefixShares(explorer, (value) => amount(explorer, value)) : [];
  return [t(`say_${map}`, values), ...shares].join(" ");
}

/** What is shown, as a sentence or two. */
function caption(explorer) {
  if (isClass(explorer.state)) return classCaption(explorer);
  const { state: { map, layer, head, direction, below }, shown, maps, t } = explorer;
  const one = isOne(head), { query } = shown, last = !query && layer === maps.L - 1;
  const asker = query ? t("the_patch", fromOne(query))
    : t("the_readout", { readout: readoutName(explorer) });
  const values = { layer: layer + 1, head: one ? head + 1 : "", asker,
    target: last ? t("the_answer") : asker };
  if (map === "attention" && direction === "to") {
    return t("say_to", { ...values, heads: t(one ? "to_head" : `to_${head}`, values) });
  }
  if (map === "rollout") return [t("say_rollout", values), ...prefixShares(explorer)].join(" ");
  const sameHead = map === "head_rollout" && one && below === "same";
  const text = t(`say_${map}${one ? "" : `_${head}`}${sameHead ? "_same" : ""}`, values);
  if (head === "max" || head === "min") return text; // these are no shares of 1
  return [text, ...prefixShares(explorer)].join(" ");
}

/** How much stays on the tokens that are no patches: a sentence for each kind. */
function prefixShares({ data, shown, t }, say = percent) {
  let token = 0;
  return Object.entries(data.prefix).map(([name, count]) => {
    let share = 0;
    for (const stop = token + count; token < stop; token++) share += shown.vector[token];
    return t("stays", { share: say(share), tokens: t(`of_${name}`) });
  });
}

// ---- In Python

const literal = (text) => JSON.stringify(text);
const number = (x) => String(+x.toPrecision(6));

/** The call that makes the same map: `explanation.rollout(...)` and so on. */
function pythonCall({ map, layer, head, query, direction, below, residual, discard, label, minus }) {
  if (map === "random") return "faithful.random_map(explanation)";
  if (map === "contribution") return `explanation.contribution(${label}${minus === null ? "" : `, minus=${minus}`})`;
  if (label !== null) {
    return [label, minus].filter((one) => one !== null).map((one) => `explanation.${map}(${one})`).join(" - ");
  }
  const one = isOne(head), given = [layer];
  if (map === "attention") given.push(`head=${one ? head : literal(head)}`);
  if (query) given.push(`query=(${query.join(", ")})`);
  if (map === "rollout" && head !== "mean" && !one) given.push(`fusion="${head}"`);
  if (map === "head_rollout" && below !== "mean") given.push(`below="${below}"`);
  if (map !== "attention") given.push(`residual=${number(residual)}`, `discard=${number(discard)}`);
  if (direction === "to") given.push('direction="to"');
  const call = { head_rollout: "head_rollouts", rollout: "rollout", attention: "attention" }[map];
  const across = { mean: ".mean(dim=0)", max: ".amax(dim=0)", min: ".amin(dim=0)" };
  const pick = map !== "head_rollout" ? "" : one ? `[${head}]` : across[head];
  return `explanation.${call}(${given.join(", ")})${pick}`;
}

function pythonOf(explorer) {
  const { state, shown, data, maps } = explorer;
  const about = isClass(state) ? className(explorer) : `layer ${state.layer + 1} of ${maps.L}`;
  return [
    "import vit_demo",
    `from vit_demo import ${state.map === "random" ? "faithful, " : ""}render`,
    "",
    `classifier = vit_demo.load(${literal(data.model)})`,
    `explanation = classifier.explain("your-picture.jpg", fit=${literal(data.fit)})`,
    `heat = ${pythonCall(state)}  # ${about}`,
    "picture = render.overlay(",
    "    explanation.view.picture,",
    "    heat,",
    `    opacity=${number(state.opacity)},`,
    `    colour_map=${literal(isSigned(state) ? "RdBu_r" : state.colours)},`,
    `    smooth=${state.smooth ? "True" : "False"},`,
    `    scale=(${number(shown.scale.low)}, ${number(shown.scale.high)}),`,
    ")",
    'picture.save("attention.png")',
    "",
  ].join("\n");
}
