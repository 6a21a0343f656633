// One row a thought: an outline of a tree, or the lanes of a session as a version history draws them.

import { parentEdges } from "./layout_tree.js";

const INDENT = 1.15;
const LINE_ROW = 3.1; // a line of text and one of facts
const DENSE_ROW = 1.9; // both in one line

/** An outline. Only a fork indents: a chain stays in its lane, however long it is. */
export function layOutline(shown, parents, children, isNarrow) {
  const lanes = new Map();
  for (const id of shown) {
    const parent = parents.get(id);
    const above = lanes.get(parent);
    lanes.set(id, above === undefined ? 0 : above + (children.get(parent).length > 1 ? 1 : 0));
  }
  return inRows(shown, lanes, [...parentEdges(shown, parents)], isNarrow ? LINE_ROW : DENSE_ROW);
}

/** Lanes: the main line, then each branch as it appears; a lane is free again after its branch's last thought. */
export function layLanes(shown, record) {
  const branchOf = (id) => record.nodes.get(id).branch || "";
  const last = new Map(shown.map((id, row) => [branchOf(id), row]));
  for (const [row, id] of shown.entries()) {
    for (const merged of record.nodes.get(id).merges ?? []) {
      if (record.nodes.has(merged)) last.set(branchOf(merged), Math.max(last.get(branchOf(merged)), row));
    }
  }
  const rows = new Map(shown.map((id, row) => [id, row]));
  const lanes = new Map();
  const held = []; // per lane: the branch in it
  shown.forEach((id, row) => {
    const branch = branchOf(id);
    if (!held.includes(branch)) {
      const leaves = rows.get(record.parents.get(id)) ?? row;
      const free = held.findIndex((other, lane) => lane > 0 && last.get(other) < leaves);
      held[free === -1 ? held.length : free] = branch;
    }
    lanes.set(id, held.indexOf(branch));
  });
  const lines = [...parentEdges(shown, record.parents), ...mergeEdges(shown, record), ...revisions(shown, record)];
  const layout = inRows(shown, lanes, lines);
  return { ...layout, isLanes: true, clear: Math.max(0, ...[...layout.places.values()].map(({ x }) => x)) }; // no text under a lane
}

export function* mergeEdges(shown, record) {
  const visible = new Set(shown);
  for (const id of shown) {
    for (const from of record.nodes.get(id).merges ?? []) {
      if (visible.has(from) && from !== record.parents.get(id)) yield { from, to: id, kind: "merge" };
    }
  }
}

function* revisions(shown, record) {
  const visible = new Set(shown);
  for (const id of shown) {
    const from = record.nodes.get(id).revises;
    if (visible.has(from) && from !== id) yield { from, to: id, kind: "revision" };
  }
}

function inRows(shown, lanes, edges, height = LINE_ROW) {
  const deepest = Math.max(0, ...lanes.values());
  const lane = Math.min(INDENT, 9 / Math.max(1, deepest)); // a deep tree is indented less
  const places = new Map(shown.map((id, row) => [id, { x: lanes.get(id) * lane, y: row * height }]));
  return { places, box: { width: 0, height }, width: 0, height: shown.length * height, form: "rows", isDense: height === DENSE_ROW, edges };
}
