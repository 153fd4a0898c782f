// @ts-check
// Long questions: one at a time, with a bar and a way out.

import { el } from "../explorer/elements.js";
import { submitLong } from "../gradio.js";

/**
 * @param {Trust} trust
 * @param {string} kind */
export function jobBar(trust, kind) {
  const { ui, t } = trust;
  const bar = el("div", { class: "why-bar-box" }, el("i"));
  const words = el("span", { class: "why-job-words", role: "status" });
  const cancel = el(
    "button",
    { type: "button", class: "why-button", hidden: true, onclick: () => cancelJob(trust, true) },
    t("cancel"),
  );
  ui.jobs[kind] = el(
    "div",
    { class: "why-job", "data-job": kind, "data-state": "idle" },
    bar,
    words,
    cancel,
  );
  return ui.jobs[kind];
}

/**
 * @param {Trust} trust
 * @param {any} request
 * @param {(result: any) => void} done */
export function startJob(trust, request, done) {
  if (trust.job) return;
  const run = `${trust.id} ${++trust.runs}`;
  trust.job = { run, kind: request.kind, done, at: 0, of: 0, queue: "" };
  trust.showAll();
  showJob(trust);
  const { trigger, id, language } = trust;
  submitLong(trigger, { ...request, run, id, language }, () => loseJob(trust, run));
}

/** The server is gone: no answer comes.
 * @param {Trust} trust
 * @param {string} [run] */
export function loseJob(trust, run = trust.job?.run) {
  if (trust.job && trust.job.run === run) finishJob(trust, "failed", trust.t("lost"));
}

/** What the server says about the work: how far it is, what came out, what went wrong.
 * @param {Trust} trust
 * @param {any} news */
export function receiveNews(trust, news) {
  const { job } = trust;
  if (!job || !news || news.run !== job.run) return;
  if (news.total) Object.assign(job, { at: news.done, of: news.total });
  if (news.result) {
    finishJob(trust, "done", "");
    job.done(news.result);
  } else if ("error" in news) finishJob(trust, "failed", news.error || trust.t("failed"));
  else showJob(trust);
}

/**
 * @param {Trust} trust
 * @param {boolean} [wanted] */
export function cancelJob(trust, wanted = false) {
  if (!trust.job) return;
  trust.trigger("stop");
  finishJob(trust, "cancelled", wanted ? trust.t("cancelled") : "");
}

/**
 * @param {Trust} trust
 * @param {string} state
 * @param {string} words */
function finishJob(trust, state, words) {
  const { kind } = trust.job;
  trust.job = null;
  showOutcome(trust, kind, words, state);
  if (trust.ready) trust.showAll();
}

/**
 * @param {Trust} trust
 * @param {string} kind
 * @param {string} words
 * @param {string} state */
export function showOutcome({ ui }, kind, words, state) {
  const node = ui.jobs[kind],
    [, text, cancel] = node.children;
  node.dataset.state = state;
  text.textContent = words;
  cancel.hidden = true;
}

/** @param {Trust} trust */
export function showJob(trust) {
  const { job, ui, t } = trust,
    node = ui.jobs[job.kind],
    [bar, words, cancel] = node.children;
  const share = job.of ? job.at / job.of : 0;
  node.dataset.state = job.of ? "running" : "waiting";
  node.dataset.done = `${job.at}/${job.of}`;
  bar.firstChild.style.width = `${100 * share}%`;
  words.textContent = job.of
    ? t("running", { percent: Math.round(100 * share) })
    : `${t("waiting")} ${job.queue}`;
  cancel.hidden = false;
}

/** While it waits, the place in the queue stands beside the bar.
 * @param {Trust} trust
 * @param {string} place
 * @param {boolean} failed */
export function showQueue(trust, place, failed) {
  if (!trust.job) return;
  if (failed) return finishJob(trust, "failed", trust.t("failed"));
  if (trust.job.of) return;
  trust.job.queue = place;
  showJob(trust);
}
