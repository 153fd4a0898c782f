// @ts-check
// The explorer as a Gradio component.

import { answerOf, componentValue, onTheme, serverAnswers } from "../gradio.js";
import { chooseExample } from "../page/examples.js";
import { fromBase64 } from "./blob.js";
import { mountExplorer } from "./index.js";

const NO_PICTURE = ["tab", "lang", "__theme"]; // of an address: these name none
const PATIENCE = 2000; // ms

/** @type {ReturnType<typeof createComponent> | null} */
let early = null; // the one that was there before Gradio

/** The value names an address, from which the data are fetched.
 * @param {HTMLElement} element
 * @param {GradioComponent} gradio
 * @param {Setup} setup */
export function mount(element, gradio, setup) {
  const place = /** @type {ExplorerRoot} */ (element.querySelector(".vitx"));
  if (early) {
    early.connect(gradio);
    moveTo(place, early.root, gradio);
    early = null;
    return;
  }
  const { first, language } = gradio.props,
    component = createComponent(place, setup, language);
  component.connect(gradio);
  if (first && !followsLink()) component.load(first);
  else component.update(gradio.props);
}

/** Before Gradio is there: the first picture; what needs the server waits for Gradio.
 * @param {ExplorerRoot} root
 * @param {Setup} setup
 * @param {string} language
 * @param {ExplorerValue} first */
export function mountEarly(root, setup, language, first) {
  early = createComponent(root, setup, language);
  return early.load(first);
}

/** The explorer that was there before Gradio moves to its place, as soon as that can be seen, and the sketch
 * around it goes. Gradio's page is English until the server has answered: another language waits for
 * that, so that no word changes twice.
 * @param {HTMLElement} place
 * @param {HTMLElement} root
 * @param {GradioComponent} gradio */
function moveTo(place, root, { watch }) {
  const move = () => {
    const sketch = root.parentElement,
      focused = /** @type {HTMLElement} */ (document.activeElement);
    if (!place.isConnected) return; // it has moved
    place.replaceWith(root);
    sketch.remove();
    if (root.contains(focused)) focused.focus({ preventScroll: true });
  };
  const moveSoon = () => requestAnimationFrame(move); // the components around it are mounted by then
  if (root.lang === "en") return moveSoon();
  watch("language", moveSoon);
  setTimeout(move, PATIENCE);
}

/** An explorer that fetches its data, with Gradio or before it.
 * @param {ExplorerRoot} root
 * @param {Setup} setup
 * @param {string | null} language */
function createComponent(root, setup, language) {
  /** @type {ExplorerValue} */
  let current = {}; // what is shown
  /** @type {ExplorerValue} */
  let coming = {}; // what is on its way
  let turn = 0;
  /** @type {(given: GradioComponent) => void} */
  let arrive;
  /** @type {Promise<GradioComponent>} */
  const gradio = new Promise((done) => {
    arrive = done;
  });
  const lost = () => setup.texts[root.lang].lost;
  /** @param {RowsWanted} wanted */
  const fetchRowsBlob = async (wanted) => {
    const request = { id: current.id, ...wanted, language: root.lang };
    const answer = await answerOf((await gradio).server.explorer_rows, request, lost());
    return fromBase64(answer.data).buffer;
  };
  /** @param {number[]} labels */
  const fetchClassMaps = async (labels) => {
    const request = { id: current.id, labels, language: root.lang };
    return (await answerOf((await gradio).server.explorer_classes, request, lost())).classes;
  };
  /** @type {{ example: string; state: Partial<State> } | null} */
  let wanted = null; // an example that a finding asked for, and its settings
  let answered = false; // before that, the server's first answer would bring another one
  /** @type {MountOptions["openExample"]} */
  const openExample = (example, state) => {
    explorer.reveal(); // the links lie below the picture
    if (example === current.example) return explorer.set(state);
    wanted = { example, state };
    if (answered) chooseExample(example);
  };
  const explorer = mountExplorer(root, {
    ...setup,
    language,
    fetchRowsBlob,
    fetchClassMaps,
    openExample,
    onState: (state) => gradio.then(({ trigger }) => trigger("change", state)),
    onTheme,
  });

  /** @param {ExplorerValue} value
   * @param {string} [failed] what to say if it does not come; of the first picture nothing: it comes again */
  async function load(value, failed = "") {
    const mine = ++turn;
    root.classList.add("vx-busy");
    coming = value;
    try {
      const response = await fetch(value.url);
      if (!response.ok) throw new Error(String(response.status));
      const buffer = await response.arrayBuffer();
      if (mine !== turn) return;
      current = value;
      root.dataset.id = value.id;
      coming = {};
      await explorer.show(buffer, value.state || {}, {}, value);
    } catch {
      const words = failed && !(await serverAnswers()) ? lost() : failed;
      if (mine !== turn) return;
      coming = {};
      explorer.clear(words);
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

  /** Show the component's value.
   * @param {GradioComponent["props"]} props */
  function update(props) {
    const value = withWanted(componentValue(props)),
      name = wanted?.example;
    if (name && !answered) requestAnimationFrame(() => chooseExample(name));
    answered = true;
    if (value?.url && value.id === coming.id && value.url === coming.url) {
      coming.state = value.state ?? coming.state; // it is on its way
      return;
    }
    turn++;
    root.classList.remove("vx-busy");
    if (!value?.url) {
      current = {};
      return explorer.clear();
    }
    if (value.id === current.id && value.url === current.url) {
      return explorer.set(value.state || {});
    }
    return load({ ...value }, setup.texts[root.lang].failed);
  }

  /** Gradio is there.
   * @param {GradioComponent} given */
  function connect(given) {
    const { props, watch } = given;
    watch("value", () => update(props));
    watch("language", () => {
      if (props.language !== root.lang) explorer.speak(props.language);
    });
    arrive(given);
  }

  return { root, load, update, connect };
}

/** Does the address, or what was here before a reload, name anything to see? Otherwise it is the first
 * picture, which is the same for everybody: nobody has to be asked which one. */
export function followsLink() {
  const names = [...new URLSearchParams(location.search).keys()];
  return history.state?.upload || !names.every((name) => NO_PICTURE.includes(name));
}
