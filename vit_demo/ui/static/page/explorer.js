// @ts-check
// The explorer, for the other parts of the page.

/** The explorer's element: its `explorer` is there once it is mounted. */
function explorerRoot() {
  return /** @type {ExplorerRoot | null} */ (document.querySelector("#explorer .vitx"));
}

/** The explorer, once it is mounted. */
export const theExplorer = () => explorerRoot()?.explorer;

/** The explanation that it shows. */
export const explorerId = () => explorerRoot()?.dataset.id;

/** Its settings, as they stand in links.
 * @returns {Partial<State>} */
export function explorerState() {
  return theExplorer()?.state ?? {};
}

/** Components are mounted in any order: call when the explorer is there.
 * @param {(explorer: ExplorerHandle) => void} then */
export function whenExplorerIsThere(then) {
  const explorer = theExplorer();
  if (explorer) then(explorer);
  else requestAnimationFrame(() => whenExplorerIsThere(then));
}
