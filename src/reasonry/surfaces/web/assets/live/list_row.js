// One row of the list: what was asked, what came of it, who thought, what it cost, when.

import { element } from "../dom.js";
import { count, dollars, dotted, firstLine, isAnswered, modelName, plainName } from "../wording.js";

const ROW_CHARACTERS = 300;

/** A run or session as a row shows it. */
export function entryOf(of, found) {
  const id = of === "runs" ? found.run_id : found.session_id;
  const address = `/${of}/${encodeURIComponent(id)}`;
  if (of === "sessions") {
    const thoughts = found.thought_history_length ?? 0;
    const at_ms = Date.parse(found.used_at) || 0;
    return { of, id, address, at_ms, title: found.purpose, status: found.ended ? "ended" : found.status, strategy: found.strategy, mode: "guided", said: count(thoughts, "thought") };
  }
  const { usd, calls, tokens } = { ...found.usage, ...found };
  const still = found.paused ? "paused" : found.resumable ? "resumable" : "active";
  const spent = [calls > 0 && count(calls, "call"), usd > 0 ? dollars(usd) : tokens > 0 && count(tokens, "token")];
  return {
    of, id, address,
    at_ms: found.created_at_ms ?? 0,
    title: found.problem,
    status: found.outcome ?? (found.status === "active" ? still : found.status),
    strategy: found.strategy,
    mode: found.mode === "coached" ? "coached" : (modelName(found.model) ?? ""),
    answer: isAnswered(found.outcome) ? found.answer : "",
    reason: isAnswered(found.outcome) ? "" : found.detail || found.reason,
    said: dotted(spent),
  };
}

/** @param {(id: string, isChosen: boolean) => void} choose called where a run is taken to be compared */
export function listRow(entry, isChosen, choose) {
  const { of, id, address, status } = entry;
  const title = firstLine(entry.title).slice(0, ROW_CHARACTERS) || id;
  const answer = firstLine(entry.answer).slice(0, ROW_CHARACTERS);
  const box = of === "runs" && !entry.isDemo && element("input", {
    type: "checkbox", "aria-label": `Compare ${title}`, title: "Compare", checked: isChosen,
    on: { change: (event) => choose(id, event.target.checked) },
  });
  return element(
    "li",
    { "data-address": address, "data-status": status },
    element(
      "a",
      { href: `#${address}` },
      element("span", { class: "title" }, title),
      element("span", { class: "status", "data-status": status }, entry.isDemo ? "example" : plainName(status ?? "")),
      element("span", { class: "came" }, answer ? element("span", { class: "is" }, answer) : firstLine(entry.reason).slice(0, ROW_CHARACTERS)),
    ),
    element("span", { class: "who" }, dotted([plainName(entry.strategy ?? ""), entry.mode])),
    element("span", { class: "spent" }, entry.said),
    when(entry.at_ms),
    box || element("span", {}),
  );
}

function when(at_ms) {
  if (!at_ms) return element("span", {});
  const at = new Date(at_ms);
  const isToday = at.toDateString() === new Date().toDateString();
  const options = isToday ? { hour: "2-digit", minute: "2-digit" } : { day: "numeric", month: "short", year: "numeric" };
  return element("time", { datetime: at.toISOString(), title: at.toLocaleString() }, at.toLocaleString(undefined, options));
}
