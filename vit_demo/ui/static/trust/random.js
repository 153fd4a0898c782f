// @ts-check
// The random-weights check: blocks become random from the top down; a map that stays was never about
// what the model has learnt.

import { fromBase64 } from "../explorer/blob.js";
import { el } from "../explorer/elements.js";
import { isSigned } from "../explorer/state.js";
import { question } from "../glossary.js";
import { mapCanvas, signed } from "./charts.js";
import { jobBar, startJob } from "./jobs.js";

/** @param {Trust} trust */
export function buildRandom(trust) {
  const { ui, t } = trust;
  ui.method = el(
    "select",
    {
      id: "why-method",
      onchange: () => {
        trust.method = ui.method.value;
        showRandom(trust);
      },
    },
    ...trust.methods.map((method) => el("option", { value: method }, t(`method_${method}`))),
  );
  ui.method.value = trust.method;
  ui.randomise = el(
    "button",
    { type: "button", class: "why-button why-main", onclick: () => randomise(trust) },
    t("randomise"),
  );
  ui.cascade = el("ol", { class: "why-cascade" });
  ui.passed = el("p", { class: "why-sentence", role: "status" });
  return el(
    "section",
    { class: "why-random", "aria-label": t("random_title") },
    el("h3", {}, t("random_title"), " ", question(trust.language, ["correlation"])),
    el("p", {}, t("random_about")),
    el(
      "div",
      { class: "why-row" },
      el(
        "span",
        { class: "why-field" },
        el("label", { for: "why-method", class: "why-muted" }, t("method")),
        ui.method,
      ),
      ui.randomise,
    ),
    jobBar(trust, "random"),
    ui.passed,
    ui.cascade,
  );
}

/** @param {Trust} trust */
function randomise(trust) {
  const { label, method } = trust;
  startJob(trust, { kind: "random", label, method }, (result) => {
    const all = new Float32Array(fromBase64(result.heats).buffer),
      size = all.length / result.correlations.length;
    const heats = result.correlations.map((_, k) => all.subarray(k * size, (k + 1) * size));
    trust.cascades.set(`${result.label} ${result.method}`, { ...result, heats });
    showRandom(trust);
  });
}

/** @param {Trust} trust */
export function showRandom(trust) {
  const { ui, t, label, method } = trust;
  if (!trust.ready) return;
  ui.method.value = method;
  ui.randomise.disabled = Boolean(trust.job);
  const known = trust.cascades.get(`${label} ${method}`);
  ui.passed.className = `why-sentence ${known ? (known.passed ? "better" : "chance") : "plain"}`;
  ui.passed.textContent = known
    ? t(known.passed ? "random_passed" : "random_failed", {
        correlation: signed(known.correlations.at(-1)),
      })
    : t("random_empty");
  if (known) ui.passed.dataset.passed = known.passed;
  else delete ui.passed.dataset.passed;
  const signedMap = isSigned({ map: method });
  const last = trust.explorer.data.layers; // as many maps as blocks, and the real one
  ui.cascade.replaceChildren(
    ...Array.from({ length: last + 1 }, (_, k) => {
      const name =
        k === 0 ? t("random_none") : k === last ? t("random_all") : t("random_some", { count: k });
      const same = known?.correlations[k],
        words = k === 0 ? t("random_real") : t("random_same", { correlation: signed(same) });
      return el(
        "li",
        { "data-correlation": same },
        known
          ? mapCanvas(trust, known.heats[k], 120, signedMap)
          : el("span", { class: "why-blank" }),
        el("strong", {}, name),
        el("span", {
          class: "why-same",
          style: `--same:${Math.max(0, same ?? 0)}`,
          "aria-hidden": "true",
        }),
        el("small", {}, known ? words : "\u00a0"),
      );
    }),
  );
}
