// Two trees as one list of rows: what stands at the same place in both beside one another.

/**
 * @param {import("../record.js").Recorded} a
 * @param {import("../record.js").Recorded} b
 * @returns {{ depth: number, a: object | null, b: object | null, isSame: boolean }[]} nodes of the same id below the
 *   same parent share a row; the others have one of their own
 */
export function alignTrees(a, b) {
  const rows = [];
  const waiting = matched(a.roots, b.roots, 0);
  while (waiting.length) {
    const { left, right, depth } = waiting.pop();
    const [one, other] = [a.nodes.get(left) ?? null, b.nodes.get(right) ?? null];
    rows.push({ depth, a: one, b: other, isSame: one !== null && other !== null && saying(one) === saying(other) });
    waiting.push(...matched(a.children.get(left) ?? [], b.children.get(right) ?? [], depth + 1));
  }
  return rows;
}

/** Those of both sides, the last first, as a stack wants them. */
function matched(left, right, depth) {
  const rights = new Set(right);
  const lefts = new Set(left);
  const both = left.map((id) => ({ left: id, right: rights.has(id) ? id : null, depth }));
  const rest = right.filter((id) => !lefts.has(id)).map((id) => ({ left: null, right: id, depth }));
  return [...both, ...rest].reverse();
}

/** What a node says; whether it was kept is known later and may differ without it. */
function saying({ text, score_text: score }) {
  return `${text}\n${score}`;
}
