// The contact sheet: thousands of pictures, of which only those in sight exist as elements.

(() => {
  const GAP = 14;
  const NARROWEST = 196; // pixels of a card; on a phone two stand side by side
  const PHONE = 560;
  const BEYOND = 1; // rows above and below those in sight

  const $ = (/** @type {string} */ selector) =>
    /** @type {any} */ (document.querySelector(selector));
  const read = (/** @type {string} */ id) => JSON.parse($(id).textContent);
  const setup = read("#setup");
  const pictures = read("#rows").map(
    ([
      number,
      name,
      address,
      truth,
      truthProbability,
      top,
      heat,
      rows,
      cols,
      low,
      high,
      prefix,
      width,
      height,
    ]) => ({
      number,
      name,
      address,
      truth,
      truthProbability,
      top,
      heat,
      rows,
      cols,
      low,
      high,
      prefix,
      width,
      height,
    }),
  );
  const colours = bytes(setup.colours);

  // What is asked for: it stands in the address, so that it is still there after reloading.
  const state = { sort: "folder", show: "all", find: "", map: setup.signed ? 70 : 55 };
  let shown = pictures; // in their order
  const cards = new Map(); // of those in sight: place in `shown` -> element
  let columns = 1;
  let cardWidth = 0;
  let rowHeight = 1;

  function bytes(/** @type {string} */ base64) {
    return Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
  }

  function make(/** @type {string} */ tag, className = "", text = "") {
    const element = document.createElement(tag);
    element.className = className;
    element.textContent = text;
    return element;
  }

  const percent = (/** @type {number} */ p) => `${(100 * p).toFixed(1)}\u202f%`;
  const count = (/** @type {number} */ n) => n.toLocaleString("en");
  const answer = (picture) => (picture.top.length ? setup.labels[picture.top[0]] : "");
  const confidence = (picture) => picture.top[1] ?? 0;
  const isRight = (picture) => picture.truth >= 0 && picture.truth === picture.top[0];

  // One picture

  function view(picture) {
    const fit = make("span", "fit");
    const { width, height, rows, cols } = picture;
    fit.style.width = `${100 * Math.min(1, width / height)}%`;
    fit.style.height = `${100 * Math.min(1, height / width)}%`;
    const crisp = Math.max(width, height) <= setup.crisp;
    fit.classList.toggle("crisp", crisp);
    const image = document.createElement("img");
    image.alt = "";
    image.decoding = "async";
    const folder = String(Math.floor(picture.number / 1000)).padStart(3, "0");
    const file = String(picture.number).padStart(6, "0");
    image.src = `report/${folder}/${file}.${crisp ? "png" : "jpg"}`;
    const canvas = document.createElement("canvas");
    canvas.width = cols;
    canvas.height = rows;
    canvas.setAttribute("aria-hidden", "true");
    const pixels = new ImageData(cols, rows);
    bytes(picture.heat).forEach((code, i) => {
      pixels.data.set(colours.subarray(3 * code, 3 * code + 3), 4 * i);
      pixels.data[4 * i + 3] = 255;
    });
    canvas.getContext("2d").putImageData(pixels, 0, 0);
    fit.append(image, canvas);
    return fit;
  }

  function verdict(picture) {
    if (picture.truth < 0) return ["", "true label unknown"];
    const label = setup.labels[picture.truth];
    return isRight(picture) ? ["right", "\u2713 right"] : ["wrong", `\u2717 it is ${label}`];
  }

  function topLines(picture, /** @type {string} */ tag) {
    const lines = [];
    for (let i = 0; i < picture.top.length; i += 2) {
      const [index, p] = picture.top.slice(i, i + 2);
      const line = make(tag, index === picture.truth ? "true" : "");
      line.style.setProperty("--p", String(p));
      line.append(make("span", "label", setup.labels[index]), make("span", "share", percent(p)));
      lines.push(line);
    }
    return lines;
  }

  function makeCard(/** @type {number} */ place) {
    const picture = shown[place];
    const card = make("li", "card");
    card.setAttribute("aria-setsize", String(shown.length));
    card.setAttribute("aria-posinset", String(place + 1));
    const button = make("button");
    button.setAttribute("type", "button");
    button.addEventListener("click", () => open(place));
    const frame = make("span", "view");
    frame.append(view(picture));
    const name = make("span", "name", picture.name);
    name.title = picture.name;
    button.append(frame, name);
    if (setup.judged)
      button.append(make("span", `verdict ${verdict(picture)[0]}`, verdict(picture)[1]));
    const top = make("span", "top");
    top.append(...topLines(picture, "span"));
    button.append(top);
    card.append(button);
    return card;
  }

  // The sheet: cards of one size in rows, made when they come into sight

  function layOut() {
    const width = $("#sheet").clientWidth;
    columns = Math.max(width < PHONE ? 2 : 1, Math.floor((width + GAP) / (NARROWEST + GAP)));
    cardWidth = (width - GAP * (columns - 1)) / columns;
    for (const card of cards.values()) card.remove();
    cards.clear();
    if (shown.length) {
      const probe = makeCard(0);
      probe.style.width = `${cardWidth}px`;
      $("#sheet").append(probe);
      rowHeight = probe.offsetHeight + GAP;
      probe.remove();
    }
    $("#sheet").style.height = `${Math.ceil(shown.length / columns) * rowHeight}px`;
    draw();
  }

  function draw() {
    const top = -$("#sheet").getBoundingClientRect().top;
    const firstRow = Math.max(0, Math.floor(top / rowHeight) - BEYOND);
    const lastRow = Math.floor((top + window.innerHeight) / rowHeight) + BEYOND;
    const first = firstRow * columns;
    const end = Math.min(shown.length, (lastRow + 1) * columns);
    for (const [place, card] of cards) {
      if (place >= first && place < end) continue;
      card.remove();
      cards.delete(place);
    }
    let after = $("#sheet").firstElementChild; // in the order of the pictures, which is that of Tab
    for (let place = first; place < end; place++) {
      const card = cards.get(place);
      if (card) {
        after = card.nextElementSibling;
        continue;
      }
      const made = makeCard(place);
      made.style.width = `${cardWidth}px`;
      made.style.height = `${rowHeight - GAP}px`;
      const x = (place % columns) * (cardWidth + GAP);
      made.style.transform = `translate(${x}px, ${Math.floor(place / columns) * rowHeight}px)`;
      cards.set(place, made);
      $("#sheet").insertBefore(made, after);
    }
  }

  // Order and choice

  const byName = new Intl.Collator(undefined, { numeric: true });
  /** @type {Record<string, [string, (a: any, b: any) => number]>} */
  const ORDERS = {
    folder: ["as in the folder", (a, b) => a.number - b.number],
    name: ["by name", (a, b) => byName.compare(a.name, b.name)],
    sure: ["surest first", (a, b) => confidence(b) - confidence(a)],
    unsure: ["least sure first", (a, b) => confidence(a) - confidence(b)],
    answer: [
      "by answer",
      (a, b) => byName.compare(answer(a), answer(b)) || confidence(b) - confidence(a),
    ],
    truth: ["true label least likely first", (a, b) => truthOrder(a) - truthOrder(b)],
  };
  const truthOrder = (picture) => (picture.truth < 0 ? 2 : picture.truthProbability);
  /** @type {Record<string, [string, (picture: any) => boolean]>} */
  const SHOWS = {
    all: ["all", () => true],
    right: ["right", isRight],
    wrong: ["wrong", (picture) => picture.truth >= 0 && !isRight(picture)],
  };

  function choose() {
    const wanted = state.find.trim().toLowerCase();
    const holds = (/** @type {string | undefined} */ text) => text?.toLowerCase().includes(wanted);
    const found = (picture) =>
      !wanted ||
      holds(picture.name) ||
      holds(answer(picture)) ||
      holds(setup.labels[picture.truth]);
    shown = pictures.filter((picture) => SHOWS[state.show][1](picture) && found(picture));
    shown.sort((a, b) => ORDERS[state.sort][1](a, b) || a.number - b.number);
    const right = shown.filter(isRight).length;
    const judged = shown.filter((picture) => picture.truth >= 0).length;
    const share = judged
      ? `, ${count(right)} of ${count(judged)} right (${percent(right / judged)})`
      : "";
    $("#count").textContent =
      `${count(shown.length)} of ${count(pictures.length)} pictures${share}`;
    $("#sheet").dataset.order = `${state.sort} ${state.show}`;
    layOut();
  }

  function change(/** @type {Record<string, string | number>} */ change) {
    Object.assign(state, change);
    const parts = new URLSearchParams(
      Object.entries(state).map(([key, value]) => [key, String(value)]),
    );
    history.replaceState(null, "", `#${parts}`);
    const { scrollY } = window;
    if ("map" in change) paintStrength();
    else {
      choose();
      const top = $("#controls").offsetTop;
      if (scrollY > top) window.scrollTo(0, top); // a new order is read from its beginning
    }
  }

  function paintStrength() {
    document.documentElement.style.setProperty("--strength", String(state.map / 100));
    document.documentElement.classList.toggle("mapped", state.map > 0);
  }

  function readAddress() {
    const given = new URLSearchParams(location.hash.slice(1));
    const sort = given.get("sort") ?? "";
    const show = given.get("show") ?? "";
    const map = Number(given.get("map") ?? state.map);
    if (Object.hasOwn(ORDERS, sort) && (sort !== "truth" || setup.judged)) state.sort = sort;
    if (Object.hasOwn(SHOWS, show) && setup.judged) state.show = show;
    if (map >= 0 && map <= 100) state.map = map;
    state.find = given.get("find") ?? "";
  }

  // One picture, large

  let opened = 0;

  function open(/** @type {number} */ place) {
    const picture = shown[place];
    opened = place;
    $("#large .view").replaceChildren(view(picture));
    $("#large-name").textContent = picture.name;
    const [kind, words] = verdict(picture);
    $("#large .verdict").className = `verdict ${kind}`;
    $("#large .verdict").textContent = setup.judged ? words : "";
    $("#large .top").replaceChildren(...topLines(picture, "li"));
    const number = (/** @type {number} */ value) =>
      setup.shares ? `${(100 * value).toPrecision(3)}\u202f%` : value.toPrecision(3);
    $("#large .scale").textContent =
      `${setup.map}, ${picture.rows} x ${picture.cols} patches: ${number(picture.low)} to ` +
      `${number(picture.high)} on a patch, ${number(picture.prefix)} on tokens that are no patch.`;
    const address = picture.address || picture.name.split("/").map(encodeURIComponent).join("/");
    $("#large a").href = setup.base + address;
    $("#large .file").hidden = !setup.base;
    $("#large [data-step='-1']").disabled = place === 0;
    $("#large [data-step='1']").disabled = place === shown.length - 1;
    if (!$("#large").open) $("#large").showModal();
  }

  function step(/** @type {number} */ by) {
    const place = opened + by;
    if (place >= 0 && place < shown.length) open(place);
  }

  // The page around it

  function describe() {
    const answers = setup.map === "rollout" ? "" : " for the answer";
    const of = setup.label ? ` for ${setup.label}` : answers;
    const accuracy = setup.judged
      ? ` Of ${count(setup.judged)} with a true label, ${percent(setup.right / setup.judged)} of the answers ` +
        `are right, ${percent(setup.rightInFive / setup.judged)} among the first five.`
      : "";
    const labels = setup.labels.length
      ? " and its most likely labels"
      : "; the model has no labels";
    $("#about").textContent =
      `Each picture as the model saw it (fit: ${setup.fit}), with its map (${setup.map}${of}, each on a ` +
      `scale of its own)${labels}.${accuracy}`;
    $("#low").textContent = setup.signed ? "against" : "least";
    $("#high").textContent = setup.signed ? "for" : "most";
    const legend = $("#legend canvas").getContext("2d");
    for (let x = 0; x < 128; x++) {
      legend.fillStyle = `rgb(${colours.subarray(6 * x, 6 * x + 3).join(" ")})`;
      legend.fillRect(x, 0, 1, 1);
    }
    for (const [name, [words]] of Object.entries(ORDERS)) {
      if (name === "truth" && !setup.judged) continue;
      if (["sure", "unsure", "answer"].includes(name) && !setup.labels.length) continue;
      $("#sort").add(new Option(words, name));
    }
    $("#show").hidden = !setup.judged;
    for (const [name, [words]] of Object.entries(SHOWS)) {
      const label = make("label");
      const input = document.createElement("input");
      Object.assign(input, {
        type: "radio",
        name: "show",
        value: name,
        checked: name === state.show,
      });
      label.append(input, make("span", "", words));
      $("#show").append(label);
    }
    if (!setup.errors.length) return;
    $("#errors").hidden = false;
    $("#errors").open = setup.errors.length <= 20;
    $("#errors summary").textContent =
      setup.errors.length === 1
        ? "1 file could not be used"
        : `${count(setup.errors.length)} files could not be used`;
    for (const [name, error] of setup.errors) {
      const line = make("li");
      line.append(make("b", "", name), `: ${error}`);
      $("#errors ul").append(line);
    }
  }

  readAddress();
  describe();
  $("#sort").value = state.sort;
  $("#find").value = state.find;
  $("#strength").value = state.map;
  $("#controls").addEventListener("submit", (event) => event.preventDefault());
  $("#sort").addEventListener("change", () => change({ sort: $("#sort").value }));
  $("#show").addEventListener("change", (event) => change({ show: event.target.value }));
  $("#find").addEventListener("input", () => change({ find: $("#find").value }));
  $("#strength").addEventListener("input", () => change({ map: Number($("#strength").value) }));
  $("#large").addEventListener("click", (event) => {
    const by = event.target.dataset.step;
    if (by === "0" || event.target === $("#large")) $("#large").close();
    else if (by) step(Number(by));
  });
  $("#large").addEventListener("keydown", (event) => {
    if (event.key === "ArrowLeft") step(-1);
    if (event.key === "ArrowRight") step(1);
  });
  const soon = (/** @type {() => void} */ act) => {
    let asked = 0;
    return () => {
      cancelAnimationFrame(asked);
      asked = requestAnimationFrame(act);
    };
  };
  window.addEventListener("scroll", soon(draw), { passive: true });
  window.addEventListener("resize", soon(layOut));
  paintStrength();
  choose();
  document.documentElement.dataset.ready = "true";
})();
