// @ts-check
// Finding elements of our own HTML.

/** The element that fits a selector; the caller knows its kind.
 * @param {ParentNode} root
 * @param {string} selector
 * @returns {any} */
export const find = (root, selector) => root.querySelector(selector);

/** The element around an event's target that fits a selector.
 * @param {Event} event
 * @param {string} selector
 * @returns {any} */
export const closest = (event, selector) => /** @type {Element} */ (event.target).closest(selector);
