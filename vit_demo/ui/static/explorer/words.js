// @ts-check
// What is shown, in words. `t(key, values)` says a text in the visitor's language.

import { isClass, isOne, isSigned } from "./state.js";

/**
 * @param {string} text
 * @param {Record<string, any>} values */
export const fill = (text, values) => text.replace(/\{(\w+)\}/g, (_, name) => values[name]);

/** @param {Patch} patch */
export const fromOne = ([row, col]) => ({ row: row + 1, col: col + 1 });

/** @param {number} share */
export function percent(share) {
  const p = 100 * share,
    digits = p >= 10 ? 1 : p >= 1 ? 2 : 3;
  return p > 0 && p < 0.001 ? "< 0.001 %" : `${p.toFixed(p === 0 ? 0 : digits)} %`;
}

/** A difference of shares, without its sign.
 * @param {number} share
 * @param {Translate} t */
function points(share, t) {
  const p = 100 * share,
    digits = p >= 10 ? 1 : p >= 0.1 ? 2 : 0;
  return t("points", { points: digits ? p.toFixed(digits) : String(+p.toPrecision(2)) });
}

/** @param {Explorer} explorer */
export function readoutName({ data, t }) {
  return t(
    data?.pool === "avg" ? "token_avg" : data?.readout_tokens[1] > 1 ? "token_two" : "token_cls",
  );
}

/** Words of the glossary for who asks: the patch, the class, or the read-out's tokens.
 * @param {Explorer} explorer */
export function askerWords({ data, state }) {
  if (isClass(state)) return ["class_map"];
  if (state.query) return ["patch"];
  const readout = data.pool === "avg" ? ["average"] : ["class_token"],
    others = ["dist_token", "reg_token"].filter((name) => data.prefix[name]);
  return [...readout, ...others];
}

/** What labels are called in the visitor's language: empty, or a word for each label of the model.
 * @type {Record<string, string>} */
let spoken = {};

/** Words for all labels of a model, or for none of them.
 * @param {Pick<Explorer, "labels" | "words" | "texts" | "data">} given */
export function useLabels({ labels, words, texts, data }) {
  const [language] = Object.entries(texts).find(([, known]) => known === words);
  const table = labels?.[language] ?? {};
  spoken = data?.classes === Object.keys(table).length ? table : {};
}

/** All of a label's names, the visitor's own first: "사자, lion".
 * @param {string} name */
export const fullName = (name) => (spoken[name] ? `${spoken[name]}, ${name}` : name);

/** A label in a few letters: the first of its names.
 * @param {string} name */
export const shortName = (name) => fullName(name).split(",")[0];

/**
 * @param {Pick<Explorer, "classes" | "data">} given
 * @param {number} label */
export function labelName({ classes, data }, label) {
  const found = classes.get(label)?.name ?? data.top.find(([, , index]) => index === label)?.[0];
  return shortName(found ?? String(label));
}

/** Whose class map it is: "tabby", or "tabby - tiger cat".
 * @param {Explorer} explorer */
export function className(explorer) {
  const { label, minus } = explorer.state;
  return [label, minus]
    .filter((one) => one !== null)
    .map((one) => labelName(explorer, one))
    .join(" \u2212 ");
}

/** A value of a map as a visitor reads it: a share, a difference of shares, or a number in units of
 * the logit or of log p.
 * @param {Pick<Explorer, "t">} explorer
 * @param {State} settings
 * @param {number} value */
export function amount({ t }, settings, value) {
  const signed = isSigned(settings),
    size = Math.abs(value),
    sign = value < 0 ? "\u2212" : signed && value > 0 ? "+" : "";
  if (isClass(settings) && settings.map !== "gradient_rollout") {
    return sign + String(+size.toPrecision(3));
  }
  return sign + (signed ? points(size, t) : percent(size));
}

/**
 * @param {Explorer} explorer
 * @param {Patch | null} query */
export function queryName(explorer, query) {
  if (isClass(explorer.state)) return className(explorer);
  return query ? explorer.t("patch", fromOne(query)) : readoutName(explorer);
}

/**
 * @param {Explorer} explorer
 * @param {[layer: number, head: number]} given2 */
export function tileName(explorer, [layer, head]) {
  const { data, maps, state, wall, t } = explorer;
  const name = t("wall_name", { layer: layer + 1, head: head + 1 }),
    bits = wall.focus[layer]?.[head],
    stays = wall.prefix[layer]?.[head];
  if (bits === undefined || stays === undefined) return name; // they are on their way
  const distance = Math.round(data.arrays.distance[layer * maps.H + head]);
  const facts = [name, t("wall_facts", { distance, entropy: bits.toFixed(1) })],
    kinds = Object.keys(data.prefix).filter((kind) => data.prefix[kind]);
  if (kinds.length && state.direction === "from") {
    const tokens = t(kinds.length > 1 ? "of_prefix" : `of_${kinds[0]}`);
    facts.push(t("wall_stays", { share: percent(stays), tokens }));
  }
  return facts.join(" · ");
}

/** @param {Explorer} explorer */
function classCaption(explorer) {
  const {
    state: { map, label, minus },
    t,
  } = explorer;
  const values = {
    label: labelName(explorer, label),
    minus: minus === null ? "" : labelName(explorer, minus),
  };
  if (minus !== null) return t("say_difference", values);
  const adds = map === "gradient_rollout" || map === "contribution";
  return [t(`say_${map}`, values), ...(adds ? prefixShares(explorer) : [])].join(" ");
}

/** What is shown, as a sentence or two.
 * @param {Explorer} explorer */
export function caption(explorer) {
  if (isClass(explorer.shown.settings)) return classCaption(explorer);
  const { shown, maps, t } = explorer,
    { map, layer, head, direction, below, part } = shown.settings;
  const one = isOne(head),
    { query } = shown,
    last = !query && layer === maps.L - 1;
  const asker = query
    ? t("the_patch", fromOne(query))
    : t("the_readout", { readout: readoutName(explorer) });
  const values = {
    layer: layer + 1,
    head: one ? head + 1 : "",
    asker,
    target: last ? t("the_answer") : asker,
  };
  if (map === "attention" && direction === "to") {
    return t("say_to", { ...values, heads: t(one ? "to_head" : `to_${head}`, values) });
  }
  if (map === "rollout") return [t("say_rollout", values), ...prefixShares(explorer)].join(" ");
  if (part === "special") return [t("say_special", values), ...prefixShares(explorer)].join(" ");
  const sameHead = map === "head_rollout" && one && below === "same";
  const text = t(`say_${map}${one ? "" : `_${head}`}${sameHead ? "_same" : ""}`, values);
  if (head === "max" || head === "min") return text; // these are no shares of 1
  return [text, ...prefixShares(explorer)].join(" ");
}

/** How much stays on the tokens that are no patches: a sentence for each kind.
 * @param {Explorer} explorer */
function prefixShares(explorer) {
  const { data, shown, t } = explorer;
  let token = 0;
  return Object.entries(data.prefix).map(([name, count]) => {
    let share = 0;
    for (const stop = token + count; token < stop; token++) share += shown.vector[token];
    const stays = { share: amount(explorer, shown.settings, share), tokens: t(`of_${name}`) };
    return t(isSigned(shown.settings) ? "has" : "stays", stays);
  });
}
