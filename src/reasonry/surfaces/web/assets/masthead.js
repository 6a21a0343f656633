// The problem, the answer, the strategy and model, and the warnings.

import { LONG, answerOfKind } from "./answer.js";
import { byId, copyButton, element, show } from "./dom.js";
import { count, duration, firstLine, isAnswered, modelName, outcomeWord, plainName, scoreOf, whenWords } from "./wording.js";

/**
 * @param {import("./record.js").Recorded} record
 * @param {{ addressOf?(id: string): string }} around
 */
export function drawMasthead({ page }, { addressOf }) {
  byId("facts").replaceChildren(...runFacts(page, addressOf));
  byId("problem").replaceChildren(page.problem || page.title || plainName(page.kind));
  byId("problem").classList.toggle("long", (page.problem ?? "").length > LONG);
  show(byId("outcome"), outcome(page));
  show(byId("warnings"), [...(page.warnings ?? []), ...leftOut(page.cuts ?? {})].map((text) => element("li", {}, text)));
}

function leftOut(cuts) {
  const parts = Object.entries(cuts).filter(([, number]) => number > 0);
  const said = parts.map(([name, number]) => (name === "texts" ? `${number} texts shortened` : `${number} ${name} left out`));
  return said.length ? [`To keep the page small: ${said.join(", ")}.`] : [];
}

function runFacts(page, addressOf) {
  const begun = page.created_at_ms ? new Date(page.created_at_ms) : null;
  const parent = page.forked_from && (addressOf ? element("a", { href: addressOf(page.forked_from) }, "fork of another run") : "fork of another run");
  const said = [
    element("strong", {}, page.strategy_title || plainName(page.strategy || page.kind)),
    page.mode !== "driven" && page.mode,
    page.model !== "caller" && modelName(page.model),
    Number.isFinite(page.duration_ms) && duration(page.duration_ms),
    begun && element("time", { datetime: begun.toISOString(), title: begun.toLocaleString() }, whenWords(begun)),
    parent,
  ];
  const id = element("span", { class: "identity" }, element("code", {}, page.id));
  return [...said.filter(Boolean).map((fact) => element("span", {}, fact)), id];
}

/** What leads while a run is at work: the answer with the most votes, or the thought with the best score. */
function bestSoFar({ status, votes, nodes }) {
  if (status !== "active") return "";
  const vote = votes?.find(({ leads }) => leads);
  if (vote) return `${vote.answer} (${count(vote.count, "vote")})`;
  const scored = (nodes ?? []).filter(({ kind, score, state }) => kind === "thought" && Number.isFinite(score) && state !== "dropped");
  const best = scored.sort((a, b) => b.score - a.score)[0];
  return best ? `${firstLine(best.text).slice(0, LONG)} (${scoreOf(best)})` : "";
}

function outcome(page) {
  const word = page.paused ? "paused" : page.resumable ? "resumable" : (page.outcome ?? page.status);
  const isRun = page.kind === "run";
  const made = [element("span", { class: "status", "data-status": page.paused ? "active" : word }, outcomeWord(word))];
  if (page.answer) {
    made.push(answerOfKind(page), copyButton(page.answer, "the answer"));
  } else if (isRun && (page.best_answer || bestSoFar(page))) {
    const said = page.status === "active" ? "Best so far: " : "Best so far, not an answer: ";
    made.push(element("p", { class: "answer partial" }, element("small", {}, said), page.best_answer || bestSoFar(page)));
  } else if (isRun) {
    made.push(element("p", { class: page.status === "active" ? "answer yet" : "answer none" }, page.status === "active" ? "No answer yet" : "No answer"));
  }
  const { reason = "", detail = "", code: fault } = page.termination ?? {};
  const said = page.status === "active" ? plainName(detail) : detail || plainName(reason);
  const why = said === "success" ? "" : said;
  const code = fault && !why.includes(fault) ? ` (${fault})` : "";
  if ((why || code) && !isAnswered(page.outcome)) made.push(element("p", { class: "reason" }, `${why}${code}`));
  return made;
}
