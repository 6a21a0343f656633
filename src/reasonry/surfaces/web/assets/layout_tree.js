// A tidy tree from left to right: a subtree is as tall as it must be, a parent in the middle of its children.

/**
 * Lengths are in rem, so that the drawing grows with the reader's text.
 * @typedef {{ x: number, y: number }} Place the upper left corner of a card or row
 * @typedef {{ from: string, to: string, kind: "parent" | "merge" | "revision" }} Edge
 * @typedef {{ places: Map<string, Place>, box: { width: number, height: number }, width: number, height: number,
 *   form: "cards" | "rows", isDense?: boolean, clear?: number, edges: Edge[] }} Layout `isDense`: a row is one line;
 *   `clear`: the room for lanes before any text
 */

export const CARD = { width: 15.5, height: 4.1 };
const COLUMN = CARD.width + 3.2;
const TREE_ROW = CARD.height + 0.55;

/**
 * @param {string[]} shown ids in preorder
 * @param {Map<string, string | null>} parents
 * @returns {Layout}
 */
export function layTree(shown, parents) {
  const visible = new Set(shown);
  const children = new Map(shown.map((id) => [id, []]));
  for (const id of shown) if (visible.has(parents.get(id))) children.get(parents.get(id)).push(id);

  const offsets = new Map(); // of a node from its parent, in rows
  const outlines = new Map(); // of a subtree: its highest and lowest row in each column
  for (const id of [...shown].reverse()) outlines.set(id, join(children.get(id), outlines, offsets));

  const rows = new Map();
  const columns = new Map();
  let bottom = -1;
  for (const id of shown) {
    const parent = parents.get(id);
    if (visible.has(parent)) {
      rows.set(id, rows.get(parent) + offsets.get(id));
      columns.set(id, columns.get(parent) + 1);
    } else {
      const { top, low } = outlines.get(id);
      rows.set(id, bottom + 1 - Math.min(...top));
      columns.set(id, 0);
      bottom = rows.get(id) + Math.max(...low);
    }
  }
  return inCards(shown, columns, rows, [...parentEdges(shown, parents)]);
}

/** Sets subtrees under one another as close as they go; their places are noted from the parent's row. */
function join(children, outlines, offsets) {
  if (!children.length) return { top: [0], low: [0] };
  const top = [];
  const low = [];
  const places = [];
  for (const child of children) {
    const other = outlines.get(child);
    let shift = 0;
    for (let i = 0; i < Math.min(low.length, other.top.length); i++) {
      shift = Math.max(shift, low[i] + 1 - other.top[i]);
    }
    places.push(shift);
    for (let i = 0; i < other.top.length; i++) {
      if (i >= top.length) top[i] = other.top[i] + shift;
      low[i] = other.low[i] + shift;
    }
  }
  const middle = (places[0] + places[places.length - 1]) / 2;
  children.forEach((child, index) => offsets.set(child, places[index] - middle));
  return { top: [0, ...top.map((row) => row - middle)], low: [0, ...low.map((row) => row - middle)] };
}

export function* parentEdges(shown, parents) {
  const visible = new Set(shown);
  for (const id of shown) {
    if (visible.has(parents.get(id))) yield { from: parents.get(id), to: id, kind: "parent" };
  }
}

/** Columns and rows as places of cards. */
export function inCards(shown, columns, rows, edges) {
  const places = new Map(shown.map((id) => [id, { x: columns.get(id) * COLUMN, y: rows.get(id) * TREE_ROW }]));
  const width = Math.max(0, ...columns.values()) * COLUMN + CARD.width;
  const height = Math.max(0, ...rows.values()) * TREE_ROW + CARD.height;
  return { places, box: CARD, width, height, form: "cards", edges };
}
