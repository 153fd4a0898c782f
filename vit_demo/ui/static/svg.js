// @ts-check
// Drawings as SVG.

const SVG = "http://www.w3.org/2000/svg";

/**
 * @param {string} tag
 * @param {Record<string, any>} [options]
 * @param {...(Node | string)} children */
export function svg(tag, options = {}, ...children) {
  const node = document.createElementNS(SVG, tag);
  for (const [key, value] of Object.entries(options)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}
