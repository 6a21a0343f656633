// The lines between thoughts, drawn in rem like the layout they belong to.

import { drawn, setChanged } from "./dom.js";

const MARK = { x: 0.75, y: 0.95 }; // where a row's mark is, from the row's corner
const STUB = 0.55;

/** A drawing of lines; a line that was there is moved, not made anew. */
export function makeEdges() {
  const svg = drawn("svg", { class: "edges", "aria-hidden": "true" });
  let paths = new Map();
  let lit = [];

  /**
   * @param {import("./layout_tree.js").Layout} layout
   * @param {Map<string, { state: string }>} nodes
   */
  function draw(layout, nodes) {
    const width = Math.max(layout.width, 12);
    const before = paths;
    paths = new Map();
    for (const edge of layout.edges) {
      const key = edge.kind === "parent" ? edge.to : `${edge.kind}\n${edge.from}\n${edge.to}`;
      const path = before.get(key) ?? svg.appendChild(drawn("path", { class: `edge ${edge.kind}` }));
      before.delete(key);
      setChanged(path, "d", layout.form === "cards" ? acrossCards(layout, edge) : downRows(layout, edge));
      setChanged(path, "data-state", nodes.get(edge.to).state);
      paths.set(key, path);
    }
    for (const gone of before.values()) gone.remove();
    svg.setAttribute("viewBox", `0 0 ${width} ${layout.height}`);
    svg.style.width = `${width}rem`;
    svg.style.height = `${layout.height}rem`;
  }

  /** Marks the lines that lead to these from their parents; others are unmarked. */
  function light(ids) {
    for (const path of lit) path.classList.remove("lit");
    lit = ids.flatMap((id) => paths.get(id) ?? []);
    for (const path of lit) path.classList.add("lit");
  }

  return { svg, draw, light };
}

function acrossCards({ places, box }, { from, to }) {
  const start = places.get(from);
  const end = places.get(to);
  const [x1, y1] = [start.x + box.width, start.y + box.height / 2];
  const [x2, y2] = [end.x, end.y + box.height / 2];
  const bend = Math.max(STUB, (x2 - x1) / 2);
  return `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`;
}

function downRows({ places, isLanes }, { from, to, kind }) {
  const start = places.get(from);
  const end = places.get(to);
  const [x1, y1] = [start.x + MARK.x, start.y + MARK.y];
  const [x2, y2] = [end.x + MARK.x, end.y + MARK.y];
  if (kind === "revision") {
    const out = Math.min(x1, x2) - Math.min(1.3, 0.5 + 0.12 * Math.abs(y2 - y1));
    return `M${x1} ${y1}C${out} ${y1} ${out} ${y2} ${x2} ${y2}`;
  }
  if (x1 === x2) return `M${x1} ${y1}V${y2}`;
  const r = Math.min(STUB, Math.abs(y2 - y1) / 2);
  if (kind === "merge") return `M${x1} ${y1}V${y2 - 2 * r}C${x1} ${y2 - r / 2} ${x2} ${y2 - 1.5 * r} ${x2} ${y2}`;
  if (x2 > x1 && !isLanes) return `M${x1} ${y1}V${y2 - r}Q${x1} ${y2} ${Math.min(x1 + r, x2)} ${y2}H${x2}`;
  return `M${x1} ${y1}C${x1} ${y1 + r} ${x2} ${y1 + r} ${x2} ${y1 + 2 * r}V${y2}`;
}
