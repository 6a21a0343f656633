// An analysis: each iteration's plans with their scores, the chosen one, and its tasks with their verdicts.

import { byId, element, heading, show, table } from "./dom.js";
import { mark } from "./marks.js";
import { costWithBelow, nodeLabel } from "./record.js";
import { costLine, firstLine, plainName, scoreOf, stateWord } from "./wording.js";

/**
 * @param {import("./record.js").Recorded} record
 * @param {{ select(id: string): void }} page
 */
export function drawPlans(record, page) {
  const parts = [];
  for (const id of record.order) {
    const below = record.children.get(id).map((child) => record.nodes.get(child));
    for (const kind of ["plan", "task"]) {
      const found = below.filter((node) => node.kind === kind);
      if (found.length) parts.push(kindTable(record, record.nodes.get(id), kind, found, page));
    }
  }
  show(byId("plans"), parts.length ? [heading("Plans and tasks"), ...parts] : []);
}

function kindTable(record, above, kind, found, page) {
  const isPlan = kind === "plan";
  const rows = found.map((node) => [
    element("button", { class: "link", on: { click: () => page.select(node.id) } }, nodeLabel(node)),
    firstLine(node.text),
    ...(isPlan ? [scoreOf(node) || "—"] : []),
    element("span", { class: "verdict", "data-state": node.state }, mark(node.state), verdict(node, isPlan)),
    costLine(costWithBelow(record, node.id)) || "—",
  ]);
  const caption = `${isPlan ? "Plans" : "Tasks"} of ${nodeLabel(above)}`;
  const heads = isPlan ? ["Plan", "First task", "Score", "Verdict", "Cost"] : ["Task", "Query", "Verdict", "Cost"];
  return element("div", { class: "scroll" }, table(caption, heads, rows));
}

function verdict(node, isPlan) {
  if (node.state === "dropped") return isPlan ? "not chosen" : plainName(node.why?.code ?? "dropped");
  if (node.state === "on_path" || node.state === "answer") return isPlan ? "chosen" : "accepted";
  return stateWord(node.state);
}
