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

/** What a server function answers. Of a server that has stopped null arrives (what goes wrong on the server
 * comes as `error`): that is said as `lost`, the page's one sentence about it.
 * @param {(request: object) => Promise<any>} ask
 * @param {object} request
 * @param {string} lost
 * @returns {Promise<any>} */
export async function answerOf(ask, request, lost) {
  const answer = await ask(request);
  if (!answer || answer.error) throw new Error(answer?.error || lost);
  return answer;
}

/** Does the server answer at all? */
export async function serverAnswers() {
  try {
    return (await fetch(new URL("gradio_api/app_id", document.baseURI))).ok;
  } catch {
    return false;
  }
}

/** A long question: the event `submit`, whose answers arrive in a property. Gradio tells nobody but its own
 * toasts that the server is gone, and while it is it sends nothing: so somebody has to look, now and later.
 * @param {GradioComponent["trigger"]} trigger
 * @param {object} request
 * @param {() => void} lost */
export async function submitLong(trigger, request, lost) {
  trigger("submit", request);
  if (!(await serverAnswers())) lost();
}

/** Call with a component's element; Gradio mounts components in any order.
 * @param {string} id
 * @param {(element: HTMLElement) => void} then */
export function whenMounted(id, then) {
  const element = document.getElementById(id);
  if (element) then(element);
  else requestAnimationFrame(() => whenMounted(id, then));
}

/** Send a file to the server; where it lies there. Throws the server's own words, if it has any.
 * @param {File} file
 * @returns {Promise<string>} */
export async function uploadFile(file) {
  const body = new FormData();
  body.append("files", file);
  const address = new URL("gradio_api/upload", document.baseURI);
  const response = await fetch(address, { method: "POST", body });
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.detail);
  return answer[0];
}

/** Gradio writes into the component that `show_progress_on` names whether an event is under way, which
 * place it has in the queue ("queue: 2/3"), and whether it failed. Call whenever that changes.
 * @param {string} id
 * @param {(news: { pending: boolean; place: string; failed: boolean }) => void} then */
export function mirrorProgress(id, then) {
  whenMounted(id, (status) => {
    const read = () => {
      const tracker = status.querySelector("[data-testid=status-tracker]"),
        words = status.querySelector(".meta-text, .meta-text-center")?.textContent ?? "";
      then({
        pending: Boolean(tracker && !tracker.classList.contains("hide")),
        place: words.match(/queue: *(\d+\/\d+)/)?.[1] ?? "",
        failed: status.querySelector(".error") !== null,
      });
    };
    const changes = { childList: true, characterData: true, subtree: true, attributes: true };
    new MutationObserver(read).observe(status, changes);
  });
}

/** Gradio says what goes wrong in toasts, which page.css hides: the page says it in one place, in the
 * visitor's language. Call with the words of the newest one ("" when it is gone), and whether the
 * server cannot be reached.
 * @param {(words: string, lost: boolean) => void} then */
export function mirrorToasts(then) {
  let last = "";
  const read = () => {
    const toast = [...document.querySelectorAll("[data-testid=toast-text]")].at(-1),
      words = toast?.textContent.trim() ?? "";
    if (words === last) return;
    last = words;
    then(last, /connection/i.test(last));
  };
  new MutationObserver(read).observe(document.body, {
    childList: true,
    characterData: true,
    subtree: true,
  });
}

/** Let Gradio's own words (the footer, the API page) be in the page's language. Its module `core` is
 * loaded already, under a name with a hash; without it (another build of Gradio) they stay as they are.
 * @param {string} language */
export async function speakGradio(language) {
  const loaded = performance.getEntriesByType("resource").map(({ name }) => name);
  const core = loaded.find((name) => /\/assets\/core-[\w-]+\.js$/.test(name));
  if (core) (await import(core)).changeLocale?.(language);
}

/** Call when Gradio changes between light and dark: the class `dark` of the body.
 * @param {() => void} then */
export function onTheme(then) {
  for (const element of [document.documentElement, document.body]) {
    new MutationObserver(then).observe(element, { attributeFilter: ["class"] });
  }
}

/** Will Gradio be dark? It goes by the address, then by what the browser prefers. */
export function isDark() {
  const asked = new URLSearchParams(location.search).get("__theme");
  if (asked === "dark" || asked === "light") return asked === "dark";
  return matchMedia("(prefers-color-scheme: dark)").matches;
}
