// Dropped branches beside the path, rolled into one row: what was tried and left shows when one asks for it.

import { countBelow } from "./record.js";
import { count, plainName } from "./wording.js";

const LEAST_NODES = 24; // of a tree that is worth rolling
const LEAST_ROLLED = 3;
const ROLLED = "dropped:";

/** @param {string} id */
export function isRolled(id) {
  return id.startsWith(ROLLED);
}

/** The thought that a row of rolled branches is below. */
export function rolledParent(id) {
  return id.slice(ROLLED.length);
}

/**
 * @param {import("./record.js").Recorded} record
 * @param {string[]} order
 * @param {Set<string>} unrolled parents whose dropped branches show
 * @returns {{ shown: string[], rolled: Map<string, string> }} `rolled`: by id of its row, what it says
 */
export function rollDropped(record, order, unrolled) {
  const rolled = new Map();
  if (record.nodes.size < LEAST_NODES || record.page.status === "active") return { shown: order, rolled };
  const isLost = new Map();
  for (const id of [...record.order].reverse()) {
    isLost.set(id, record.nodes.get(id).state === "dropped" && record.children.get(id).every((child) => isLost.get(child)));
  }
  const hidden = new Set();
  for (const [parent, children] of record.children) {
    const lost = children.filter((id) => isLost.get(id));
    const isBeside = lost.length < children.length && lost.every((id) => record.nodes.get(id).kind === "thought");
    if (unrolled.has(parent) || !isBeside || lost.reduce((sum, id) => sum + 1 + countBelow(record, id), 0) < LEAST_ROLLED) continue;
    rolled.set(ROLLED + parent, rolledWords(record, lost));
    for (const id of lost) hidden.add(id);
  }
  const shown = new Set(); // a row stands where the first of its branches stood
  for (const id of order) {
    const parent = record.parents.get(id);
    if (hidden.has(parent)) hidden.add(id);
    else shown.add(hidden.has(id) ? ROLLED + parent : id);
  }
  return { shown: [...shown], rolled };
}

/** `5 dropped: 4 beam, 1 score`. */
function rolledWords(record, lost) {
  const codes = new Map();
  for (const id of lost) {
    const code = record.nodes.get(id).why?.code ?? "dropped";
    codes.set(code, (codes.get(code) ?? 0) + 1);
  }
  const below = lost.reduce((sum, id) => sum + countBelow(record, id), 0);
  const reasons = [...codes].map(([code, number]) => `${number} ${plainName(code)}`).join(", ");
  const said = codes.has("verifier") && codes.size === 1 ? `${lost.length} refuted by the verifier` : `${lost.length} dropped: ${reasons}`;
  return `${said}${below ? `; ${count(below, "thought")} below` : ""}`;
}
