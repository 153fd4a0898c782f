// The small parts of the page. Each runs once, when its component is mounted.

function explorerState() {
  const root = document.querySelector("#explorer [data-state]");
  try { return JSON.parse(root.dataset.state); } catch { return {}; }
}

function languageSwitch(element, props, trigger, watch) {
  const show = () => {
    document.documentElement.lang = props.value;
    for (const button of element.querySelectorAll("button"))
      button.setAttribute("aria-pressed", button.dataset.language === props.value);
  };
  element.addEventListener("click", (event) => {
    const chosen = event.target.closest("button")?.dataset.language;
    if (!chosen || chosen === props.value) return;
    try { localStorage.setItem("vit-demo-language", chosen); } catch { /* private mode */ }
    props.value = chosen;
    show();
    trigger("input");
  });
  watch("value", show);
  show();
}

function exampleStrip(element, props, trigger, watch) {
  const show = () => {
    for (const button of element.querySelectorAll("button"))
      button.setAttribute("aria-pressed", button.dataset.example === props.value);
  };
  element.addEventListener("click", (event) => {
    const name = event.target.closest("button")?.dataset.example;
    if (!name) return;
    props.value = name;
    show();
    trigger("input");
  });
  watch(["value", "items"], show);
  show();
}

// A frame drawn over the picture: it lies wherever the picture lies.
function frameOverPicture(element, watch) {
  const place = () => {
    const frame = element.querySelector("svg"), image = document.querySelector("#picture img");
    if (!frame) return;
    frame.style.visibility = image ? "visible" : "hidden";
    if (!image) return;
    const [box, shown] = [element.getBoundingClientRect(), image.getBoundingClientRect()];
    const [, , w, h] = frame.getAttribute("viewBox").split(" ").map(Number);
    const scale = Math.min(shown.width / w, shown.height / h);
    const left = shown.left - box.left + (shown.width - w * scale) / 2;
    const top = shown.top - box.top + (shown.height - h * scale) / 2;
    Object.assign(frame.style, {
      left: `${left}px`, top: `${top}px`, width: `${w * scale}px`, height: `${h * scale}px`,
    });
  };
  watch("value", place);
  const begin = () => {
    const picture = document.querySelector("#picture");
    if (!picture) return requestAnimationFrame(begin);  // not mounted yet
    const resized = new ResizeObserver(place);
    const changed = () => {
      place();
      const image = picture.querySelector("img");
      if (!image) return;
      image.addEventListener("load", place);
      resized.observe(image);
    };
    new MutationObserver(changed).observe(picture, { childList: true, subtree: true });
    resized.observe(picture);
    resized.observe(element);
    picture.addEventListener("click", (event) => {  // the camera needs the place of the picture
      const source = event.target.closest(".source-selection button");
      const camera = source && source === source.parentElement.children[1];
      if (camera && picture.querySelector("img"))
        picture.querySelector(".icon-button-wrapper button:last-of-type")?.click();
    }, true);
    changed();
  };
  begin();
}

// Black strokes on white; after each stroke the drawing is sent.
function drawingPad(element, props, trigger) {
  const canvas = element.querySelector("canvas"), pen = canvas.getContext("2d");
  let last = null, timer = null;
  const erase = () => {
    pen.fillStyle = "#fff";
    pen.fillRect(0, 0, canvas.width, canvas.height);
  };
  const point = (event) => {
    const box = canvas.getBoundingClientRect(), scale = canvas.width / box.width;
    return [(event.clientX - box.left) * scale, (event.clientY - box.top) * scale];
  };
  const stroke = (from, to) => {
    Object.assign(pen, { lineWidth: 22, lineCap: "round", lineJoin: "round", strokeStyle: "#111" });
    pen.beginPath();
    pen.moveTo(...from);
    pen.lineTo(...to);
    pen.stroke();
  };
  const send = () => {
    props.value = canvas.toDataURL("image/png");
    trigger("input");
  };
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    clearTimeout(timer);
    last = point(event);
    stroke(last, last);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!last) return;
    const next = point(event);
    stroke(last, next);
    last = next;
  });
  const end = () => {
    if (!last) return;
    last = null;
    timer = setTimeout(send, 150);
  };
  canvas.addEventListener("pointerup", end);
  canvas.addEventListener("pointercancel", end);
  element.querySelector("button").addEventListener("click", erase);
  erase();
}

function download(url, name) {
  const anchor = Object.assign(document.createElement("a"), { href: url, download: name });
  document.body.append(anchor);
  anchor.click();
  anchor.remove();
}

function takeAway(element, server, watch) {
  const show = () => { // a class map has no layers to walk through
    const still = (explorerState().label ?? null) !== null;
    for (const button of element.querySelectorAll("[data-kind=gif], [data-kind=webp]")) {
      const { shown, notes } = button.parentElement.dataset;
      button.disabled = still || !JSON.parse(shown).id;
      button.title = still ? JSON.parse(notes).still : "";
    }
  };
  document.addEventListener("vitx-state", show);
  watch("value", () => requestAnimationFrame(show));
  element.addEventListener("click", async (event) => {
    const button = event.target.closest("button[data-kind]");
    if (!button || button.disabled) return;
    const { shown, notes, language } = button.parentElement.dataset;
    const text = JSON.parse(notes), note = element.querySelector(".note");
    const say = (words) => { note.textContent = words; };
    say(text.busy);
    button.setAttribute("aria-busy", "true");
    const request = { id: JSON.parse(shown).id, kind: button.dataset.kind };
    const answer = await server.save_file({ ...request, language, state: explorerState() });
    button.removeAttribute("aria-busy");
    if (!answer?.url) return say(answer?.error ?? text.failed);
    download(answer.url, answer.name);
    say(text.done.replace("{name}", answer.name));
  });
}

// The address of what is on the page, without an upload: that stays with the visitor.
function pageLink() {
  const files = document.querySelector("#take .files");
  const shown = JSON.parse(files?.dataset.shown ?? "{}"), address = new URL(location.href);
  const settings = { ...shown, id: null, ...explorerState(), lang: files?.dataset.language };
  address.search = "";
  for (const [key, value] of Object.entries(settings))
    if (value !== null && value !== undefined) address.searchParams.set(key, String(value));
  return { address: address.href, upload: Boolean(shown.id && !shown.example) };
}

function linkButton(element) {
  element.addEventListener("click", async (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    const notes = JSON.parse(button.dataset.notes), note = element.querySelector(".note");
    const { address, upload } = pageLink();
    try {
      await navigator.clipboard.writeText(address);
    } catch {  // no permission, or not https: the address bar can be copied by hand
      history.replaceState(null, "", address);
    }
    button.dataset.address = address;
    note.textContent = upload ? notes.link_upload : notes.link_done;
    setTimeout(() => { note.textContent = ""; }, 4000);
  });
}
