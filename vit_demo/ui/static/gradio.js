// @ts-check
// Everything here leans on how Gradio works inside: names in its page, the order in which things happen,
// and how it hands values over. No other file does. tests/browser/test_gradio_seams.py checks each of
// these functions, so that an update of Gradio breaks there first.

/** A component's value. Gradio hands an object over as it is, or as JSON text (from cached examples).
 * @param {GradioComponent["props"]} props
 * @returns {any} */
export function componentValue({ value }) {
  return typeof value === "string" && value ? JSON.parse(value) : value;
}

/** Set a component's value and send it to the server: only the event `input` makes Gradio look at it.
 * @param {Pick<GradioComponent, "props" | "trigger">} component
 * @param {unknown} value */
export function sendValue({ props, trigger }, value) {
  props.value = value;
  trigger("input");
}

/** Call when the component shows its new HTML: `watch` reports a value before Gradio has drawn it.
 * @param {GradioComponent["watch"]} watch
 * @param {() => void} then */
export function afterRender(watch, then) {
  watch("value", () => requestAnimationFrame(then));
}

/** What a server function answers. An exception on the server arrives as null, without a word.
 * @param {(request: object) => Promise<any>} ask
 * @param {object} request
 * @returns {Promise<any>} */
export async function answerOf(ask, request) {
  const answer = await ask(request);
  if (!answer || answer.error) throw new Error(answer?.error || "?");
  return answer;
}

/** Call with a component's element; Gradio mounts components in any order.
 * @param {string} id
 * @param {(element: HTMLElement) => void} then */
export function whenMounted(id, then) {
  const element = document.getElementById(id);
  if (element) then(element);
  else requestAnimationFrame(() => whenMounted(id, then));
}

/** The picture inside `gr.Image`; there is none while the camera runs or nothing was chosen. */
export function pictureImage() {
  return /** @type {HTMLImageElement | null} */ (document.querySelector("#picture img"));
}

/** Call whenever the picture inside `gr.Image` comes, goes, moves or changes its size.
 * @param {() => void} then */
export function onPictureChange(then) {
  whenMounted("picture", (picture) => {
    const resized = new ResizeObserver(then);
    const changed = () => {
      then();
      const image = pictureImage();
      if (!image) return;
      image.addEventListener("load", then);
      resized.observe(image);
    };
    new MutationObserver(changed).observe(picture, { childList: true, subtree: true });
    resized.observe(picture);
    changed();
  });
}

/** Call when the camera is chosen below `gr.Image`, before Gradio hears of it: the second source.
 * @param {() => void} then */
export function onCameraChosen(then) {
  whenMounted("picture", (picture) => {
    const listen = (/** @type {Event} */ event) => {
      const target = /** @type {Element} */ (event.target);
      const source = target.closest(".source-selection button");
      if (source && source === source.parentElement?.children[1]) then();
    };
    picture.addEventListener("click", listen, true);
  });
}

/** Take the picture out of `gr.Image`: its last icon is the cross. */
export function removePicture() {
  if (!pictureImage()) return;
  /** @type {HTMLElement | null} */
  const cross = document.querySelector("#picture .icon-button-wrapper button:last-of-type");
  cross?.click();
}

/** Gradio writes into `#working` (`show_progress_on`) which place a question has in the queue, such as
 * "queue: 2/3", and whether it failed. Call with the place ("2/3" or "") whenever that changes.
 * @param {(place: string, failed: boolean) => void} then */
export function mirrorQueue(then) {
  whenMounted("working", (status) => {
    const read = () => {
      const words = status.querySelector(".meta-text, .meta-text-center")?.textContent ?? "";
      const place = words.match(/queue: *(\d+\/\d+)/)?.[1] ?? "";
      then(place, status.querySelector(".error") !== null);
    };
    const changes = { childList: true, characterData: true, subtree: true };
    new MutationObserver(read).observe(status, changes);
  });
}

/** Call when Gradio changes between light and dark: the class `dark` of the body.
 * @param {() => void} then */
export function onTheme(then) {
  for (const element of [document.documentElement, document.body]) {
    new MutationObserver(then).observe(element, { attributeFilter: ["class"] });
  }
}
