// @ts-check
// What the model saw of the picture, as a frame over it.

import { onCameraChosen, onPictureChange, pictureImage, removePicture } from "../gradio.js";
import { find } from "./dom.js";

/** A frame drawn over the picture: it lies wherever the picture lies.
 * @param {HTMLElement} element
 * @param {GradioComponent} gradio */
export function mount(element, { watch }) {
  const place = () => {
    const frame = find(element, "svg"),
      image = pictureImage();
    if (!frame) return;
    frame.style.visibility = image ? "visible" : "hidden";
    if (!image) return;
    const [box, shown] = [element.getBoundingClientRect(), image.getBoundingClientRect()];
    const [, , w, h] = frame.getAttribute("viewBox").split(" ").map(Number);
    const scale = Math.min(shown.width / w, shown.height / h);
    const left = shown.left - box.left + (shown.width - w * scale) / 2;
    const top = shown.top - box.top + (shown.height - h * scale) / 2;
    Object.assign(frame.style, {
      left: `${left}px`,
      top: `${top}px`,
      width: `${w * scale}px`,
      height: `${h * scale}px`,
    });
  };
  watch("value", place);
  onPictureChange(place);
  onCameraChosen(removePicture); // the camera needs the place of the picture
  new ResizeObserver(place).observe(element);
}
