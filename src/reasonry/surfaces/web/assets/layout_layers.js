// A graph in layers, for what has several parents: the longest way decides the column, neighbours the row.

/**
 * @param {string[]} ids
 * @param {{ from: string, to: string }[]} edges
 * @returns {{ columns: Map<string, number>, rows: Map<string, number> }} an edge that closes a circle decides nothing
 */
export function layLayers(ids, edges) {
  const leaving = new Map(ids.map((id) => [id, []]));
  for (const edge of edges) if (edge.from !== edge.to) leaving.get(edge.from)?.push(edge);
  const back = closingEdges(ids, leaving);
  const forward = edges.filter((edge) => edge.from !== edge.to && !back.has(edge));
  const columns = longestWays(ids, forward);
  return { columns, rows: settleRows(ids, forward, columns) };
}

function closingEdges(ids, leaving) {
  const back = new Set();
  const state = new Map(); // absent: unseen, 1: on the way here, 2: done
  for (const start of ids) {
    if (state.has(start)) continue;
    const stack = [{ id: start, next: 0 }];
    state.set(start, 1);
    while (stack.length) {
      const top = stack[stack.length - 1];
      const edge = leaving.get(top.id)[top.next++];
      if (!edge) {
        state.set(top.id, 2);
        stack.pop();
      } else if (state.get(edge.to) === 1) {
        back.add(edge);
      } else if (!state.has(edge.to)) {
        state.set(edge.to, 1);
        stack.push({ id: edge.to, next: 0 });
      }
    }
  }
  return back;
}

function longestWays(ids, edges) {
  const columns = new Map(ids.map((id) => [id, 0]));
  for (let moved = true; moved; ) {
    moved = false;
    for (const { from, to } of edges) {
      if (columns.get(to) > columns.get(from)) continue;
      columns.set(to, columns.get(from) + 1);
      moved = true;
    }
  }
  return columns;
}

function settleRows(ids, edges, columns) {
  const layers = [];
  for (const id of ids) (layers[columns.get(id)] ??= []).push(id);
  const rows = new Map();
  for (const layer of layers) layer.forEach((id, index) => rows.set(id, index));
  const neighbours = new Map(ids.map((id) => [id, { before: [], after: [] }]));
  for (const { from, to } of edges) {
    neighbours.get(from).after.push(to);
    neighbours.get(to).before.push(from);
  }
  for (let sweep = 0; sweep < 6; sweep++) {
    const side = sweep % 2 ? "after" : "before";
    for (const layer of side === "before" ? layers : [...layers].reverse()) settle(layer, rows, neighbours, side);
  }
  const least = Math.min(...rows.values());
  for (const [id, row] of rows) rows.set(id, row - least);
  return rows;
}

/** Puts each near the middle of its neighbours, one row apart at least, the layer as a whole balanced around them. */
function settle(layer, rows, neighbours, side) {
  const wish = new Map(
    layer.map((id) => {
      const near = neighbours.get(id)[side];
      return [id, near.length ? near.reduce((sum, other) => sum + rows.get(other), 0) / near.length : rows.get(id)];
    }),
  );
  layer.sort((a, b) => wish.get(a) - wish.get(b));
  let drift = 0;
  let last = -Infinity;
  for (const id of layer) {
    last = Math.max(wish.get(id), last + 1);
    rows.set(id, last);
    drift += last - wish.get(id);
  }
  for (const id of layer) rows.set(id, rows.get(id) - drift / layer.length);
}
