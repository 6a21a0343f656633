// Which thoughts show: those with the words in their text or replies, those that were not dropped.

import { pathTo } from "./record.js";
import { valueText } from "./wording.js";

const lowered = new WeakMap(); // a record's texts, lower case, made at the first search

/**
 * @param {import("./record.js").Recorded} record
 * @param {{ query: string, hideDropped: boolean }} view
 * @returns {{ hits: Set<string> | null, keep: Set<string> | null }} what matches, and what shows (null: everything)
 */
export function filterThoughts(record, view) {
  const words = view.query.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length && !view.hideDropped) return { hits: null, keep: null };
  const wanted = record.order.filter((id) => {
    if (view.hideDropped && record.nodes.get(id).state === "dropped") return false;
    const text = words.length ? textOf(record, id) : "";
    return words.every((word) => (word.startsWith("stage:") ? isOfStage(record, id, word.slice(6)) : text.includes(word)));
  });
  const keep = new Set();
  for (const id of wanted) {
    if (!keep.has(id)) for (const step of pathTo(record, id)) keep.add(step);
  }
  return { hits: words.length ? new Set(wanted) : null, keep };
}

/** Whether a thought is of a stage, or was asked for in it. */
function isOfStage(record, id, stage) {
  const all = [record.nodes.get(id), ...record.asked.get(id), ...record.called.get(id)];
  return all.some((one) => one.stage?.toLowerCase() === stage);
}

function textOf(record, id) {
  if (!lowered.has(record)) lowered.set(record, new Map());
  const known = lowered.get(record);
  if (!known.has(id)) {
    const node = record.nodes.get(id);
    const fields = Object.values(node.data ?? {}).map(valueText);
    const notes = record.noted.get(id).map(({ text }) => text);
    const replies = record.asked.get(id).map(({ reply }) => reply);
    const own = [id, node.label, node.text, node.branch, node.stage, node.why?.code, node.why?.text];
    const all = [...own, ...fields, ...notes, ...replies];
    known.set(id, all.filter(Boolean).join("\n").toLowerCase());
  }
  return known.get(id);
}
