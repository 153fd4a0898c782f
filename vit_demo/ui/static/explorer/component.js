// @ts-check
// The explorer as a Gradio component.

import { answerOf, componentValue, onTheme } from "../gradio.js";
import { chooseExample } from "../page/examples.js";
import { fromBase64 } from "./blob.js";
import { mountExplorer } from "./index.js";

const NO_PICTURE = ["tab", "lang", "__theme"]; // of an address: these name none

/** The value names an address, from which the data are fetched.
 * @param {HTMLElement} element
 * @param {GradioComponent} gradio
 * @param {Setup} setup */
export function mount(element, { trigger, props, watch, server }, setup) {
  const root = /** @type {HTMLElement} */ (element.querySelector(".vitx"));
  /** @type {ExplorerValue} */
  let current = {}; // what is shown
  /** @type {ExplorerValue} */
  let coming = {}; // what is on its way
  let turn = 0;
  const silent = () => setup.texts[root.lang].silent;
  /** @param {RowsWanted} wanted */
  const fetchRowsBlob = async (wanted) => {
    const request = { id: current.id, ...wanted, language: root.lang };
    const answer = await answerOf(server.explorer_rows, request, silent());
    return fromBase64(answer.data).buffer;
  };
  /** @param {number[]} labels */
  const fetchClassMaps = async (labels) => {
    const request = { id: current.id, labels, language: root.lang };
    return (await answerOf(server.explorer_classes, request, silent())).classes;
  };
  /** @type {{ example: string; state: Partial<State> } | null} */
  let wanted = null; // an example that a finding asked for, and its settings
  /** @type {MountOptions["openExample"]} */
  const openExample = (example, state) => {
    if (example === current.example) {
      explorer.set(state);
      return explorer.reveal();
    }
    wanted = { example, state };
    chooseExample(example);
  };
  const explorer = mountExplorer(root, {
    ...setup,
    language: props.language,
    fetchRowsBlob,
    fetchClassMaps,
    openExample,
    onState: (state) => trigger("change", state),
    onTheme,
  });

  /** @param {ExplorerValue} value @param {number} mine */
  async function load(value, mine) {
    root.classList.add("vx-busy");
    coming = value;
    try {
      const response = await fetch(value.url);
      if (!response.ok) throw new Error(String(response.status));
      const buffer = await response.arrayBuffer();
      if (mine !== turn) return;
      current = value;
      coming = {};
      await explorer.show(buffer, value.state || {}, {}, value);
      if (mine === turn) root.dataset.id = value.id; // of what is shown
    } catch {
      if (mine !== turn) return;
      coming = {};
      explorer.clear(value === props.first ? "" : setup.texts[root.lang].failed);
    } finally {
      if (mine === turn) root.classList.remove("vx-busy");
    }
  }

  /** Settings that wait for an example join it when it comes.
   * @param {ExplorerValue | null} value */
  function withWanted(value) {
    if (!wanted || value?.example !== wanted.example) return value;
    const { state } = wanted;
    wanted = null;
    return { ...value, state };
  }

  function update() {
    const value = withWanted(componentValue(props));
    if (value?.url && value.id === coming.id && value.url === coming.url) {
      coming.state = value.state ?? coming.state; // it is on its way
      return;
    }
    const mine = ++turn;
    root.classList.remove("vx-busy");
    if (!value?.url) {
      current = {};
      return explorer.clear();
    }
    if (value.id === current.id && value.url === current.url) {
      return explorer.set(value.state || {});
    }
    return load({ ...value }, mine);
  }

  watch("value", update);
  watch("language", () => explorer.speak(props.language));
  if (props.first && !followsLink()) load(props.first, ++turn);
  else update();
}

/** Does the address, or what was here before a reload, name anything to see? Otherwise it is the first
 * picture, which is the same for everybody: nobody has to be asked which one. */
function followsLink() {
  const names = [...new URLSearchParams(location.search).keys()];
  return history.state?.upload || !names.every((name) => NO_PICTURE.includes(name));
}
