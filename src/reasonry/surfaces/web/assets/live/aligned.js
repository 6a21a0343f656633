// Two trees as one list of rows: what says the same beside one another, else what has the same id.

/**
 * @param {import("../record.js").Recorded} a
 * @param {import("../record.js").Recorded} b
 * @returns {{ depth: number, a: object | null, b: object | null, isSame: boolean }[]} below the same parents, nodes that
 *   say the same share a row, then those of the same id; the others have one of their own
 */
export function alignTrees(a, b) {
  const rows = [];
  const waiting = matched(a, b, a.roots, b.roots, 0);
  while (waiting.length) {
    const { left, right, depth } = waiting.pop();
    const [one, other] = [a.nodes.get(left) ?? null, b.nodes.get(right) ?? null];
    rows.push({ depth, a: one, b: other, isSame: one !== null && other !== null && saying(one) === saying(other) });
    waiting.push(...matched(a, b, a.children.get(left) ?? [], b.children.get(right) ?? [], depth + 1));
  }
  return rows;
}

/** Those of both sides, the last first, as a stack wants them. */
function matched(a, b, lefts, rights, depth) {
  const partners = new Map();
  const free = new Set(rights);
  const pair = (isPartner) => {
    for (const left of lefts) {
      if (partners.has(left)) continue;
      const right = [...free].find((id) => isPartner(a.nodes.get(left), b.nodes.get(id)));
      if (right === undefined) continue;
      partners.set(left, right);
      free.delete(right);
    }
  };
  pair((one, other) => one.kind === "problem" && other.kind === "problem");
  pair((one, other) => one.id === other.id && one.text === other.text);
  pair((one, other) => one.text === other.text);
  pair((one, other) => one.id === other.id);
  const both = lefts.map((left) => ({ left, right: partners.get(left) ?? null, depth }));
  const rest = [...free].map((right) => ({ left: null, right, depth }));
  return [...both, ...rest].reverse();
}

/** What a node says; whether it was kept is known later and may differ without it. */
function saying({ text, score_text: score }) {
  return `${text}\n${score}`;
}
