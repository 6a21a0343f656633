// What was asked, what came of it, who thought, and what to beware of.

import { byId, copyButton, element, show } from "./dom.js";
import { duration, modelName, plainName } from "./wording.js";

/** @param {import("./record.js").Recorded} record */
export function drawMasthead({ page }) {
  byId("facts").replaceChildren(...runFacts(page));
  byId("problem").replaceChildren(page.problem || page.title || plainName(page.kind));
  byId("problem").classList.toggle("long", (page.problem ?? "").length > 160);
  show(byId("outcome"), outcome(page));
  show(byId("warnings"), [...(page.warnings ?? []), ...leftOut(page.cuts ?? {})].map((text) => element("li", {}, text)));
}

function leftOut(cuts) {
  const parts = Object.entries(cuts).filter(([name, number]) => number > 0 && name !== "characters");
  const said = parts.map(([name, number]) => (name === "texts" ? `${number} texts shortened` : `${number} ${name} left out`));
  return said.length ? [`To keep the page small: ${said.join(", ")}.`] : [];
}

function runFacts(page) {
  const begun = page.begun_at_ms ? new Date(page.begun_at_ms) : null;
  const said = [
    element("strong", {}, page.strategy_title || plainName(page.strategy || page.kind)),
    page.mode,
    modelName(page.model),
    Number.isFinite(page.duration_ms) && duration(page.duration_ms),
    begun && element("time", { datetime: begun.toISOString() }, begun.toLocaleString()),
  ];
  const copy = copyButton(page.id ?? "", `the ${page.kind}'s id`);
  const id = element("span", { class: "identity" }, element("code", {}, page.id), copy);
  return [...said.filter(Boolean).map((fact) => element("span", {}, fact)), id];
}

function outcome(page) {
  const word = page.outcome ?? page.status;
  const made = [element("span", { class: "status", "data-status": word }, plainName(page.paused ? "paused" : word))];
  if (page.answer) {
    const size = page.answer.length > 160 ? "answer long" : "answer";
    made.push(element("p", { class: size }, page.answer), copyButton(page.answer, "the answer"));
  } else if (page.status === "active" && page.kind === "run") {
    made.push(element("p", { class: "answer yet" }, "No answer yet"));
  } else if (page.kind === "run") {
    made.push(element("p", { class: "answer none" }, "No answer"));
  }
  const said = page.status === "active" ? plainName(page.detail ?? "") : page.detail || plainName(page.reason ?? "");
  const why = said === "success" ? "" : said;
  const code = page.code && !why.includes(page.code) ? ` (${page.code})` : "";
  if (why || code) made.push(element("p", { class: "reason" }, `${why}${code}`));
  if (page.best_answer && page.best_answer !== page.answer) {
    made.push(element("p", { class: "reason" }, "Best so far, not an answer: ", element("q", {}, page.best_answer)));
  }
  return made;
}
