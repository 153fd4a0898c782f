// @ts-check
// The picture: chosen, photographed, pasted or dropped anywhere on the page; with a frame around what the
// model saw of it. Picture, frame and sentence change together, when the new picture is ready to be drawn.

import { question } from "../glossary.js";
import { sendValue, serverAnswers, uploadFile } from "../gradio.js";
import { closest, find } from "./dom.js";
import { listenForFiles } from "./drop.js";
import { whenExplorerIsThere } from "./explorer.js";
import { sending } from "./look.js";
import { say } from "./message.js";

const SVG = "http://www.w3.org/2000/svg";
const MEGABYTE = 2 ** 20;
const FITS = ["crop", "pad", "stretch", "native"];

let chosen = 0; // pictures so far: the last one counts

/** @type {{ take?: (file: File) => void; remove?: () => void }} */
const ways = {};
/** @param {File} file */
export const takePicture = (file) => ways.take(file);
export const removePicture = () => ways.remove();

/** Something was chosen; if it is a file, by this name.
 * @param {string} [name] */
function choose(name = "") {
  document.dispatchEvent(new CustomEvent("vit-chosen", { detail: name }));
  return ++chosen;
}

/** Something else was chosen: a picture that is still being sent does not count any more. */
export function forgetUpload() {
  choose();
  sending(false);
}

/** @typedef {{ url: string; size: number[]; box: number[]; about: string; fit?: string }} Shown */

/** The value is what was sent, {path}; the property `shown` is what the server made of the last picture.
 * @param {HTMLElement} element
 * @param {GradioComponent} gradio */
export function mount(element, { props, trigger, watch }) {
  const [figure, image, frame, about, video, field, pick] = [
    "figure",
    "img",
    "svg",
    ".about",
    "video",
    "input",
    ".pick",
  ].map((part) => find(element, part));
  /** @type {MediaStream | null} */
  let camera = null;
  let drawn = 0;

  // ---- What is shown

  /** All at once, when the picture can be drawn; false if it cannot.
   * @param {Shown | null} shown */
  async function draw(shown) {
    const mine = ++drawn;
    if (shown) {
      const ready = new Image();
      ready.src = shown.url;
      try {
        await ready.decode();
      } catch {
        return false;
      }
      if (mine !== drawn) return false;
      const [w, h] = shown.size ?? [ready.naturalWidth, ready.naturalHeight];
      URL.revokeObjectURL(image.src); // of a picture that was sent, if it is one
      image.src = shown.url;
      figure.style.setProperty("--ratio", String(w / h));
      figure.classList.toggle("crisp", Math.max(w, h) <= 64);
      drawFrame(shown, w, h);
    } else image.removeAttribute("src");
    about.textContent = shown?.about ?? "";
    if (shown?.fit)
      whenExplorerIsThere(() => {
        // which brings the words
        const fits = [shown.fit, ...FITS.filter((fit) => fit !== shown.fit)], // also before a choice
          explained = question(document.documentElement.lang, fits);
        if (mine === drawn) about.append(" ", explained);
      });
    setState();
    return true;
  }

  /** What the model saw lies in the frame, the rest is dimmed.
   * @param {Partial<Shown>} shown
   * @param {number} w
   * @param {number} h */
  function drawFrame({ box }, w, h) {
    frame.setAttribute("viewBox", `0 0 ${w} ${h}`);
    frame.replaceChildren();
    if (!box) return;
    const [left, top, right, bottom] = box,
      hole = `M${left} ${top}H${right}V${bottom}H${left}Z`;
    for (const [name, path] of [
      ["unseen", `M0 0H${w}V${h}H0Z${hole}`],
      ["seen", hole],
    ]) {
      const node = document.createElementNS(SVG, "path");
      node.setAttribute("class", name);
      node.setAttribute("d", path);
      frame.append(node);
    }
    frame.dataset.box = box.join(" ");
  }

  function setState() {
    element.dataset.state = camera ? "camera" : image.hasAttribute("src") ? "picture" : "empty";
  }

  const showNewest = () => draw(props.shown.url ? props.shown : null);

  // ---- A new picture

  /** The one way in. It is shown at once, as far as the browser can draw it, and sent.
   * @param {File} file */
  async function take(file) {
    const mine = choose(file.name),
      { text, most } = props;
    closeCamera();
    say("");
    if (file.size > most) {
      const size = (file.size / MEGABYTE).toFixed(1);
      return say(fill(text.large, { name: file.name, size, most: String(most / MEGABYTE) }));
    }
    const url = URL.createObjectURL(file);
    sending(true);
    draw({ url, size: null, box: null, about: "" });
    try {
      const path = await uploadFile(file);
      if (mine === chosen) sendValue({ props, trigger }, { path });
    } catch {
      const why = (await serverAnswers()) ? text.unsent : text.lost;
      if (mine !== chosen) return;
      say(fill(why, { name: file.name }));
      showNewest();
    } finally {
      if (mine === chosen) sending(false);
    }
  }

  function remove() {
    forgetUpload();
    closeCamera();
    draw(null);
    sendValue({ props, trigger }, null);
  }

  // ---- The camera

  async function openCamera() {
    try {
      camera = await navigator.mediaDevices.getUserMedia({ video: { facingMode: "environment" } });
    } catch {
      return say(props.text.no_camera);
    }
    video.srcObject = camera;
    setState();
    await video.play();
  }

  function closeCamera() {
    for (const track of camera?.getTracks() ?? []) track.stop();
    video.srcObject = camera = null;
    setState();
  }

  async function photograph() {
    const canvas = new OffscreenCanvas(video.videoWidth, video.videoHeight);
    canvas.getContext("2d").drawImage(video, 0, 0);
    const blob = await canvas.convertToBlob({ type: "image/png" });
    take(new File([blob], "camera.png", { type: blob.type }));
  }

  // ---- The clipboard

  async function paste() {
    try {
      for (const item of await navigator.clipboard.read()) {
        const type = item.types.find((name) => name.startsWith("image/"));
        if (!type) continue;
        const name = `clipboard.${type.slice("image/".length)}`;
        return take(new File([await item.getType(type)], name, { type }));
      }
    } catch {
      /* not allowed, or not https: said below */
    }
    say(props.text.no_paste);
  }

  const buttons = {
    choose: () => field.click(),
    camera: () => (camera ? closeCamera() : openCamera()),
    paste,
    photograph,
    remove: () => (camera ? closeCamera() : remove()),
  };
  element.addEventListener("click", (event) =>
    buttons[closest(event, "[data-do]")?.dataset.do]?.(),
  );
  field.addEventListener("input", (/** @type {Event} */ event) => event.stopPropagation());
  field.addEventListener("change", (/** @type {Event} */ event) => {
    event.stopPropagation();
    if (field.files[0]) take(field.files[0]);
    field.value = ""; // the same file may be chosen again
  });
  listenForFiles({ take, text: () => props.text });
  Object.assign(ways, { take, remove });

  document.addEventListener("vit-look", (event) => {
    // what was sent gives way to what the server shows
    if (!(/** @type {CustomEvent} */ (event).detail.busy)) requestAnimationFrame(showNewest);
  });

  const speak = () => {
    for (const button of element.querySelectorAll("[data-do]")) {
      const words = props.text[/** @type {HTMLElement} */ (button).dataset.do];
      button.setAttribute("aria-label", words);
      button.setAttribute("title", words);
    }
    pick.textContent = props.text.drop;
    image.alt = props.text.picture;
    field.setAttribute("aria-label", props.text.choose);
  };
  watch("shown", showNewest);
  watch("text", speak);
  speak();
  showNewest();
}

/** @param {string} text
 * @param {Record<string, string>} values */
const fill = (text, values) => text.replace(/\{(\w+)\}/g, (_, key) => values[key]);
