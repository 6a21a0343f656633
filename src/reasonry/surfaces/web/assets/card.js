// One thought as it stands in the tree: its mark, its score, the beginning of its text, why it was dropped.

import { element } from "./dom.js";
import { mark } from "./marks.js";
import { nodeLabel } from "./record.js";
import { oneLine, plainName, scoreName, scoreOf, stateWord } from "./wording.js";

const SHOWN_CHARACTERS = 180;

/** What a card says of a thought, as data: two that are alike make the same card. */
export function cardText(record, id) {
  const node = record.nodes.get(id);
  return {
    state: node.state,
    label: nodeLabel(node),
    note: note(record, node),
    score: node.state === "dropped" && !node.score ? "" : scoreOf(node),
    text: oneLine(node.text || node.why?.text).slice(0, SHOWN_CHARACTERS),
    spoken: spoken(record, node),
  };
}

/**
 * @param {string} name the element's id
 * @param {string} id
 * @param {ReturnType<typeof cardText> & { level: number, place: number, siblings: number, folded: number | null,
 *   hit: boolean, clear: number }} said `folded`: null without children, 0 when they show, else how many thoughts are
 *   folded away; `clear`: the room for lanes before its text, in rem
 */
export function card(name, id, said) {
  const { state, folded } = said;
  const sign = mark(state);
  if (said.clear) sign.style.marginInlineEnd = `${said.clear}rem`;
  return element(
    "div",
    {
      role: "treeitem",
      id: name,
      class: said.hit ? "node hit" : "node",
      tabindex: "-1",
      "data-id": id,
      "data-state": state,
      "aria-level": said.level,
      "aria-posinset": said.place,
      "aria-setsize": said.siblings,
      "aria-selected": "false",
      "aria-expanded": folded === null ? null : String(folded === 0),
      "aria-label": said.spoken,
    },
    sign,
    element(
      "span",
      { class: "label" },
      element("span", { class: "name" }, said.label),
      said.note && element("span", { class: `remark ${said.note[0]}` }, said.note[1]),
    ),
    said.score && element("span", { class: "score" }, said.score),
    element("span", { class: "text" }, said.text || "—"),
    folded !== null && element("span", { class: "fold", "aria-hidden": "true" }, folded === 0 ? "−" : `+${folded}`),
  );
}

function note(record, node) {
  if (node.state === "dropped") return ["why", plainName(node.why?.code ?? "dropped")];
  if (node.state === "answer") return ["why", "answer"];
  const revised = record.nodes.get(node.revises);
  if (revised) return ["stage", `revises ${nodeLabel(revised)}`];
  if (record.page.kind === "session" && node.branch) return ["branch", node.branch];
  return node.stage ? ["stage", plainName(node.stage)] : null;
}

/** What a screen reader says of it. */
function spoken(record, node) {
  const state = stateWord(node.state, Boolean(record.page.answer));
  const parts = [nodeLabel(node), oneLine(node.text).slice(0, SHOWN_CHARACTERS), state];
  if (node.state === "dropped" && node.why) parts.push(plainName(node.why.code));
  if (scoreOf(node)) parts.push(`${scoreName(node).toLowerCase()} ${scoreOf(node)}`);
  if (node.branch) parts.push(`branch ${node.branch}`);
  return parts.filter(Boolean).join(", ");
}
