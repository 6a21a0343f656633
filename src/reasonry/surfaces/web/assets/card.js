// One thought as it stands in the tree: its mark, its score, the beginning of its text, why it was dropped.

import { element } from "./dom.js";
import { mark } from "./marks.js";
import { nodeLabel } from "./record.js";
import { firstLine, plainName, scoreName, scoreOf, stateWord } from "./wording.js";

const SHOWN_CHARACTERS = 180;

/**
 * @param {import("./record.js").Recorded} record
 * @param {string} id
 * @param {{ level: number, place: number, siblings: number, folded: number | null, hit: boolean }} standing
 *   `folded`: null without children, 0 when they show, else how many thoughts are folded away
 */
export function card(record, id, { level, place, siblings, folded, hit }) {
  const node = record.nodes.get(id);
  const isScored = Number.isFinite(node.score);
  const score = scoreOf(node);
  const share = isScored ? Math.min(1, Math.max(0, node.score / record.best)) : 0;
  return element(
    "div",
    {
      role: "treeitem",
      id: `node-${id}`,
      class: hit ? "node hit" : "node",
      tabindex: "-1",
      "data-id": id,
      "data-state": node.state,
      "aria-level": level,
      "aria-posinset": place,
      "aria-setsize": siblings,
      "aria-selected": "false",
      "aria-expanded": folded === null ? null : String(folded === 0),
      "aria-label": spoken(node),
    },
    mark(node.state),
    element("span", { class: "label" }, nodeLabel(node), note(record, node)),
    score && element("span", { class: "score" }, score),
    element("span", { class: "text" }, firstLine(node.text).slice(0, SHOWN_CHARACTERS) || "—"),
    isScored && element("span", { class: "bar" }, element("span", { size: { width: `${share * 100}%` } })),
    folded !== null && element("span", { class: "fold", "aria-hidden": "true" }, folded === 0 ? "−" : `+${folded}`),
  );
}

function note(record, node) {
  if (node.state === "dropped") return element("span", { class: "why" }, plainName(node.why?.code ?? "dropped"));
  if (node.state === "answer") return element("span", { class: "why" }, "answer");
  const revised = record.nodes.get(node.revises);
  if (revised) return element("span", { class: "stage" }, `revises ${nodeLabel(revised)}`);
  const said = (record.page.kind === "session" && node.branch) || node.stage;
  return said ? element("span", { class: "stage" }, plainName(said)) : null;
}

/** What a screen reader says of it. */
function spoken(node) {
  const parts = [nodeLabel(node), firstLine(node.text).slice(0, SHOWN_CHARACTERS), stateWord(node.state)];
  if (node.state === "dropped" && node.why) parts.push(plainName(node.why.code));
  if (scoreOf(node)) parts.push(`${scoreName(node).toLowerCase()} ${scoreOf(node)}`);
  if (node.branch) parts.push(`branch ${node.branch}`);
  return parts.filter(Boolean).join(", ");
}
