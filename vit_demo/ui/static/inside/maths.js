// @ts-check
// The formulas of the steps, as MathML: every browser draws it.

const MATHML = "http://www.w3.org/1998/Math/MathML";

/**
 * @param {string} tag
 * @param {...(Node | string)} children */
function m(tag, ...children) {
  const node = document.createElementNS(MATHML, tag);
  node.append(...children);
  return node;
}

/** A string becomes numbers, signs and letters: "x + 1" is mi, mo, mn.
 * @param {Node | string} part
 * @returns {Node[]} */
function pieces(part) {
  if (typeof part !== "string") return [part];
  return (part.match(/[A-Za-zα-ωΑ-Ω]+|[\d.]+|\S/g) ?? []).map((word) =>
    m(/^[A-Za-zα-ωΑ-Ω]/.test(word) ? "mi" : /^[\d.]/.test(word) ? "mn" : "mo", word),
  );
}

/** @param {...(Node | string)} parts */
const row = (...parts) => m("mrow", ...parts.flatMap(pieces));
/** @param {...(Node | string)} parts */
function line(...parts) {
  const math = m("math", ...parts.flatMap(pieces));
  math.setAttribute("display", "block");
  return math;
}
/** @param {Node | string} above
 * @param {Node | string} below */
const frac = (above, below) => m("mfrac", row(above), row(below));
/** @param {Node | string} base
 * @param {Node | string} index */
const sub = (base, index) => m("msub", row(base), row(index));
/** @param {Node | string} base
 * @param {Node | string} power */
const sup = (base, power) => m("msup", row(base), row(power));
/** @param {Node | string} base
 * @param {Node | string} index
 * @param {Node | string} power */
const both = (base, index, power) => m("msubsup", row(base), row(index), row(power));
/** @param {...(Node | string)} parts */
const root = (...parts) => m("msqrt", ...parts.flatMap(pieces));
/** @param {Node | string} index */
const total = (index) => m("munder", m("mo", "∑"), row(index));

/** @type {Record<string, () => Node[]>} */
export const formulas = {
  pixels: () => [line("x = ", frac(row("v / 255 − μ"), "σ"))],
  patches: () => [
    line(sub("z", "i"), " = ", sub("x", "i"), " E + b"),
    line(
      sub("z", row("i,j")),
      " = ",
      total("c,u,v"),
      sub("x", row("i,c,u,v")),
      sub("E", row("c,u,v,j")),
      " + ",
      sub("b", "j"),
    ),
  ],
  embedding: () => [
    line(
      sub("z", "0"),
      " = [ ",
      sub("x", "class"),
      " ; ",
      sub("x", "1"),
      " E ; … ; ",
      sub("x", "n"),
      " E ] + ",
      sub("E", "pos"),
    ),
  ],
  norm: () => [
    line("LN ( x ) = ", frac(row("x − μ"), "σ"), " γ + β"),
    line(
      "μ = ",
      frac("1", "D"),
      total("j"),
      sub("x", "j"),
      " , ",
      sup("σ", "2"),
      " = ",
      frac("1", "D"),
      total("j"),
      sup(row("( ", sub("x", "j"), " − μ )"), "2"),
      " + ε",
    ),
  ],
  qkv: () => [
    line(
      "q = LN ( z ) ",
      sub("W", "q"),
      " + ",
      sub("b", "q"),
      " , k = LN ( z ) ",
      sub("W", "k"),
      " + ",
      sub("b", "k"),
      " , v = LN ( z ) ",
      sub("W", "v"),
      " + ",
      sub("b", "v"),
    ),
    line(sub("s", row("i,j")), " = ", frac(row(sub("q", "i"), " · ", sub("k", "j")), root("d"))),
  ],
  softmax: () => [
    line(
      sub("A", row("i,j")),
      " = ",
      frac(sup("e", sub("s", row("i,j"))), row(total("m"), sup("e", sub("s", row("i,m"))))),
      " , ",
      total("j"),
      sub("A", row("i,j")),
      " = 1",
    ),
    line("H = − ", total("j"), sub("A", row("i,j")), sub("log", "2"), sub("A", row("i,j"))),
  ],
  heads: () => [
    line(
      sub("o", "i"),
      " = ",
      total("h"),
      " ( ",
      total("j"),
      both("A", row("i,j"), "h"),
      both("v", "j", "h"),
      " ) ",
      both("W", "o", "h"),
      " + ",
      sub("b", "o"),
    ),
  ],
  mlp: () => [
    line("z′ = z + MSA ( LN ( z ) )"),
    line(
      "z″ = z′ + ",
      sub("W", "2"),
      " GELU ( ",
      sub("W", "1"),
      " LN ( z′ ) + ",
      sub("b", "1"),
      " ) + ",
      sub("b", "2"),
    ),
  ],
  layers: () => [
    line(
      sub("logit", "c"),
      " = ",
      sub("u", "c"),
      " · ",
      sub("z", "0"),
      " + ",
      total("l"),
      " ( ",
      total("h"),
      sub("u", "c"),
      " · ",
      both("o", "l", "h"),
      " + ",
      sub("u", "c"),
      " · ",
      sub("m", "l"),
      " ) + const",
    ),
    line(
      sub("u", "c"),
      " = ",
      frac(
        row("γ ", sub("w", "c"), " − ", m("mover", row("γ ", sub("w", "c")), m("mo", "‾"))),
        "σ",
      ),
    ),
  ],
  answer: () => [
    line(
      sub("logit", "c"),
      " = ",
      total("j"),
      sub("y", "j"),
      sub("W", row("j,c")),
      " + ",
      sub("b", "c"),
    ),
    line(
      sub("p", "c"),
      " = ",
      frac(sup("e", sub("logit", "c")), row(total("m"), sup("e", sub("logit", "m")))),
    ),
  ],
};
