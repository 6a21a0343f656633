// The document, indexed: who is whose child, where a node stands, what was asked for it.

/**
 * @typedef {object} Thought a node of the document
 * @property {string} id
 * @property {string | null} parent
 * @property {string} state
 * @property {string[]} merges
 */

/** @typedef {ReturnType<typeof readRecord>} Recorded */

import { isDraft } from "./wording.js";

/** Indexes a page document. A lost parent or a circle of parents makes a root: a damaged record is still shown. */
export function readRecord(page) {
  const nodes = new Map((page.nodes ?? []).map((node) => [node.id, node]));
  const parents = new Map();
  for (const id of nodes.keys()) parents.set(id, soundParent(nodes, id));
  const children = new Map([...nodes.keys()].map((id) => [id, []]));
  const roots = [];
  for (const [id, parent] of parents) (parent === null ? roots : children.get(parent)).push(id);
  if (page.status !== "active") for (const below of children.values()) putPathFirst(nodes, below);
  const order = inOrder(roots, children);
  const places = new Map(order.map((id, place) => [id, place]));
  const ranks = new Map(); // among siblings
  for (const siblings of [roots, ...children.values()]) siblings.forEach((id, rank) => ranks.set(id, rank));
  const depths = new Map();
  for (const id of order) depths.set(id, parents.get(id) === null ? 0 : depths.get(parents.get(id)) + 1);
  const questions = new Map((page.questions ?? []).map((question) => [question.id, question]));
  return {
    page,
    nodes,
    parents,
    children,
    roots,
    order,
    places,
    ranks,
    depths,
    questions,
    calls: new Map((page.calls ?? []).map((call) => [call.id, call])),
    asked: byNode(nodes, [...questions.values()]),
    called: byNode(nodes, page.calls ?? []),
    noted: byNode(nodes, page.notes ?? []),
    came: byOrigin([...nodes.values(), ...(page.notes ?? [])]),
    spend: spendOf(page),
  };
}

/** Of thoughts, those that lead to the answer come first; drafts stay in the order of their numbers. */
function putPathFirst(nodes, ids) {
  const isLater = (id) => !["answer", "on_path"].includes(nodes.get(id).state);
  if (ids.some((id) => isDraft(nodes.get(id)))) return;
  ids.sort((a, b) => isLater(a) - isLater(b));
}

function soundParent(nodes, id) {
  const parent = nodes.get(id).parent;
  const seen = new Set([id]);
  for (let above = parent; above !== null && above !== undefined; above = nodes.get(above).parent) {
    if (!nodes.has(above) || seen.has(above)) return null;
    seen.add(above);
  }
  return parent ?? null;
}

function inOrder(roots, children) {
  const order = [];
  const waiting = [...roots].reverse();
  while (waiting.length) {
    const id = waiting.pop();
    order.push(id);
    waiting.push(...[...children.get(id)].reverse());
  }
  return order;
}

function byNode(nodes, things) {
  const sorted = new Map([...nodes.keys()].map((id) => [id, []]));
  for (const thing of things) sorted.get(thing.node)?.push(thing);
  return sorted;
}

/**
 * What was used of each thing that a budget limits, with its limit and what of it went to dropped branches.
 * @returns {{ name: string, used: number | null, limit?: number, on_dropped?: number }[]}
 */
export function spendOf({ used = {}, budget = {}, cost_of_dropped: dropped = {} }) {
  const names = ["calls", "samples", "tokens", "usd", "seconds", "thoughts", "nodes"].filter((name) => name in used);
  return names.map((name) => ({ name, used: used[name], limit: budget[name], on_dropped: dropped[name] }));
}

/** Thoughts by the question or call that they came of. */
function byOrigin(thoughts) {
  const sorted = new Map();
  for (const one of thoughts.filter(({ origin }) => origin)) sorted.set(one.origin, [...(sorted.get(one.origin) ?? []), one]);
  return sorted;
}

/** From the root to the node itself. */
export function pathTo(record, id) {
  const path = [];
  for (let at = id; at !== null; at = record.parents.get(at)) path.unshift(at);
  return path;
}

/** What a node's card says above its text. */
export function nodeLabel(node) {
  return node.label || String(node.id);
}

/** The whole prompt of a question, whose paragraphs stand among the page's texts. */
export function promptOf({ page }, question) {
  return (question.prompt ?? []).map((place) => page.texts?.[place] ?? "").join("\n\n");
}

/** Preorder without what is folded away. */
export function visibleIn(record, collapsed) {
  const shown = [];
  const waiting = [...record.roots].reverse();
  while (waiting.length) {
    const id = waiting.pop();
    shown.push(id);
    if (!collapsed.has(id)) waiting.push(...[...record.children.get(id)].reverse());
  }
  return shown;
}

/** Which nodes to fold so that at most about `limit` show: the way to the answer stays, then what is near the root. */
export function foldFar(record, limit) {
  if (record.order.length <= limit) return new Set();
  const wanted = new Set();
  for (const [id, node] of record.nodes) {
    if (node.state === "answer" || node.state === "on_path") for (const step of pathTo(record, id)) wanted.add(step);
  }
  const byNearness = [...record.order].sort(
    (a, b) => Number(wanted.has(b)) - Number(wanted.has(a)) || record.depths.get(a) - record.depths.get(b),
  );
  const open = new Set();
  let shown = record.roots.length;
  for (const id of byNearness) {
    const gain = record.children.get(id).length;
    const parent = record.parents.get(id);
    if (gain === 0 || (parent !== null && !open.has(parent))) continue;
    if (shown + gain > limit && !wanted.has(id)) continue;
    open.add(id);
    shown += gain;
  }
  return new Set(record.order.filter((id) => record.children.get(id).length > 0 && !open.has(id)));
}

/** How many of these nodes are thoughts; the problem is none. */
export function countThoughts(record, ids) {
  return ids.filter((id) => record.nodes.get(id).kind !== "problem").length;
}

/** What a node took with all that hangs below it; null where no dollars are known. */
export function costWithBelow(record, id) {
  const whole = { calls: 0, tokens: 0, usd: null };
  const waiting = [id];
  while (waiting.length) {
    const at = waiting.pop();
    const { calls, tokens, usd } = record.nodes.get(at).cost ?? whole;
    whole.calls += calls;
    whole.tokens += tokens;
    if (Number.isFinite(usd)) whole.usd = (whole.usd ?? 0) + usd;
    waiting.push(...record.children.get(at));
  }
  return whole;
}

/** How many nodes hang below. */
export function countBelow(record, id) {
  let below = 0;
  const waiting = [...record.children.get(id)];
  while (waiting.length) {
    below += 1;
    waiting.push(...record.children.get(waiting.pop()));
  }
  return below;
}
