// The tree of thoughts: laid out, drawn, walked with the keyboard.

import { card, cardText } from "./card.js";
import { element, listen, putInOrder } from "./dom.js";
import { makeEdges } from "./edges.js";
import { layLayers } from "./layout_layers.js";
import { layLanes, layOutline, mergeEdges } from "./layout_rows.js";
import { inCards, layTree, parentEdges } from "./layout_tree.js";
import { countBelow, pathTo, visibleIn } from "./record.js";
import { isRolled, rollDropped, rolledParent } from "./rolled.js";
import { walkKey } from "./tree_keys.js";

const NARROW_REM = 44;
const LEAST_ZOOM = 0.4;
const LEAST_SEEN = 160; // px of a tree that begins near the end of the window

/**
 * @param {HTMLElement} host the element with role=tree
 * @param {{ select(id: string, how: { open: boolean }): void, fold(id: string, folded: boolean): void,
 *   unroll(id: string): void }} page
 * @param {string} prefix of the ids of its elements
 */
export function makeTree(host, page, prefix = "node-") {
  let drawing = null; // what is drawn now: { record, view, shown, items, kind }
  let selected = null;
  let cards = new Map(); // by id: { item, key, x, y } as last drawn; one that says the same is kept
  let fresh = []; // cards that were not in the drawing before
  const edges = makeEdges();
  const ground = element("div", { class: "ground", role: "none" }, edges.svg);
  const none = element("p", { class: "quiet", role: "none", hidden: true }, "No thought matches.");
  host.replaceChildren(ground, none);

  /** Draws what the view lets through; scroll, focus and selection stay, and what is new is marked as such. */
  function draw(record, view) {
    const again = drawing !== null && drawing.record.page.id === record.page.id;
    const kind = chosenLayout(record, view.layout);
    const folded = view.query ? new Set() : view.collapsed;
    const order = kind === "lanes" ? withoutEcho(record) : visibleIn(record, folded);
    const wanted = view.keep ? order.filter((id) => view.keep.has(id)) : order;
    const isWhole = kind !== "rows" || view.keep || view.isOnPaper;
    const { shown, rolled } = isWhole ? { shown: wanted, rolled: new Map() } : rollDropped(record, wanted, view.unrolled);
    const { parents, nodes } = withRolled(record, rolled);
    const layout = lay(kind, shown, { ...record, parents }, isNarrow());
    const known = again ? drawing.record.nodes : record.nodes;
    const focused = host.contains(document.activeElement) ? document.activeElement : null;
    const look = { view, layout, kind, prefix, rolled };
    cards = new Map(shown.map((id) => [id, place(record, id, look, cards.get(id))]));
    edges.draw(layout, nodes);
    const items = new Map([...cards].map(([id, { item }]) => [id, item]));
    putInOrder(ground, [edges.svg, ...items.values()]);
    for (const item of fresh) item.classList.remove("fresh");
    fresh = [...items].filter(([id]) => !known.has(id) && !isRolled(id)).map(([, item]) => item);
    for (const item of fresh) item.classList.add("fresh");
    ground.style.height = `${layout.height}rem`;
    ground.style.width = layout.width ? `${layout.width}rem` : "100%";
    ground.style.zoom = view.isFitted && layout.width ? zoomToFit(layout.width) : "";
    ground.hidden = shown.length === 0;
    none.hidden = shown.length > 0;
    host.dataset.form = layout.form;
    host.toggleAttribute("data-dense", layout.isDense === true);
    drawing = { record, view, shown, items, kind };
    choose(items.has(selected) ? selected : null, focused !== null && focused !== document.activeElement);
    return shown.filter((id) => !isRolled(id));
  }

  /** Marks one thought and the way to it; others are unmarked. */
  function choose(id, focus = false) {
    if (drawing === null) return;
    const before = drawing.items.get(selected);
    before?.setAttribute("aria-selected", "false");
    before?.setAttribute("tabindex", "-1");
    if (id !== null) selected = id;
    const item = drawing.items.get(id) ?? drawing.items.get(drawing.shown[0]);
    item?.setAttribute("tabindex", "0");
    edges.light(id !== null && drawing.items.has(id) ? pathTo(drawing.record, id) : []);
    if (id === null || !drawing.items.has(id)) return;
    item.setAttribute("aria-selected", "true");
    if (focus) item.focus({ preventScroll: true });
  }

  function reveal(id) {
    drawing?.items.get(id)?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  /** Brings a thought to the middle of what one sees of the tree, without moving the page. */
  function centre(id) {
    const item = drawing?.items.get(id);
    if (!item) return;
    const [at, tree] = [item.getBoundingClientRect(), host.getBoundingClientRect()];
    const seen = Math.min(host.clientHeight, Math.max(LEAST_SEEN, innerHeight - tree.top));
    host.scrollBy(at.right - tree.left - host.clientWidth + 24, at.top - tree.top + (at.height - seen) / 2);
  }

  /** Shows the branches that a row stands for, and goes to the first. */
  function unroll(id) {
    const at = drawing.shown.indexOf(id);
    page.unroll(rolledParent(id));
    stand(drawing.shown[at]);
  }

  /** Puts the focus on a row without choosing it. */
  function stand(id) {
    for (const item of ground.querySelectorAll("[tabindex='0']")) item.setAttribute("tabindex", "-1");
    const item = drawing.items.get(id);
    item?.setAttribute("tabindex", "0");
    item?.focus({ preventScroll: true });
    item?.scrollIntoView({ block: "nearest" });
  }

  listen(host, "click", (event) => {
    const item = event.target.closest("[role=treeitem]");
    if (!item) return;
    const id = item.dataset.id;
    if (isRolled(id)) return unroll(id);
    if (event.target.closest(".fold")) page.fold(id, item.getAttribute("aria-expanded") === "true");
    else page.select(id, { open: true });
    drawing.items.get(id)?.focus({ preventScroll: true });
  });

  listen(host, "keydown", (event) => {
    const item = event.target.closest("[role=treeitem]");
    if (!item || event.ctrlKey || event.metaKey || event.altKey) return;
    const move = walkKey(event.key, item.dataset.id, drawing, item.getAttribute("aria-expanded"));
    if (!move) return;
    event.preventDefault();
    const from = item.dataset.id;
    if (isRolled(from) && (move.fold === false || move.to === from)) return unroll(from);
    if (move.to && isRolled(move.to)) return stand(move.to);
    if (move.fold !== undefined) page.fold(item.dataset.id, move.fold);
    else {
      page.select(move.to, { open: move.open ?? false });
      reveal(move.to);
      if (!move.open) drawing.items.get(move.to)?.focus({ preventScroll: true });
    }
  });

  /** How small a drawing of so many rem must be to fit in; its text stays readable. */
  function zoomToFit(rem) {
    return Math.min(1, Math.max(LEAST_ZOOM, (widthInRem() - 1) / rem));
  }

  let width = 0; // asked of the browser when it has changed
  new ResizeObserver(() => (width = 0)).observe(host);
  function widthInRem() {
    width ||= host.clientWidth / parseFloat(getComputedStyle(document.documentElement).fontSize);
    return width;
  }

  function isNarrow() {
    return widthInRem() < NARROW_REM;
  }

  return { draw, choose, reveal, centre, isNarrow, has: (id) => drawing?.items.has(id) ?? false };
}

/** A session's thoughts in their order; its own row only where it says something else than the first of them. */
function withoutEcho({ nodes }) {
  const [first, second, ...rest] = nodes.keys();
  if (second === undefined || nodes.get(first).text !== nodes.get(second).text) return [...nodes.keys()];
  return [second, ...rest];
}

/** Which drawing is meant: a session's lanes, an outline, else cards. */
function chosenLayout(record, wish) {
  if (record.page.kind === "session") return "lanes";
  if (wish !== "cards") return "rows";
  return [...record.nodes.values()].some((node) => node.merges?.length) ? "layers" : "cards";
}

/** @returns {import("./layout_tree.js").Layout} */
function lay(kind, shown, record, isNarrow) {
  if (kind === "lanes") return layLanes(shown, record);
  if (kind === "rows") return layOutline(shown, record.parents, record.children, isNarrow);
  if (kind === "cards") return layTree(shown, record.parents);
  const edges = [...parentEdges(shown, record.parents), ...mergeEdges(shown, record)];
  const { columns, rows } = layLayers(shown, edges);
  return inCards(shown, columns, rows, edges);
}

/** The card of a thought where it belongs: the one there was, if it would say the same. */
function place(record, id, look, before) {
  const { view, layout, kind, prefix, rolled } = look;
  const { x, y } = layout.places.get(id);
  const said = isRolled(id) ? rolledCard(record, id, rolled.get(id)) : cardOf(record, id, view, kind, layout.clear ? layout.clear - x : 0);
  const key = JSON.stringify(said);
  const item = before?.key === key ? before.item : card(`${prefix}${id}`, id, said);
  if (before?.item !== item || before.x !== x || before.y !== y) {
    item.style.left = `${x}rem`;
    item.style.top = `${y}rem`;
  }
  return { item, key, x, y };
}

function cardOf(record, id, view, kind, clear) {
  const parent = record.parents.get(id);
  const siblings = parent === null ? record.roots : record.children.get(parent);
  const hasFold = kind !== "lanes" && !view.query && record.children.get(id).length > 0;
  const position = {
    level: kind === "lanes" ? 1 : record.depths.get(id) + 1,
    place: kind === "lanes" ? record.places.get(id) + 1 : record.ranks.get(id) + 1,
    siblings: kind === "lanes" ? record.order.length : siblings.length,
    folded: hasFold ? (view.collapsed.has(id) ? countBelow(record, id) : 0) : null,
    hit: view.hits?.has(id) ?? false,
    clear,
  };
  return { ...position, ...cardText(record, id) };
}

function rolledCard(record, id, words) {
  const parent = rolledParent(id);
  const number = record.children.get(parent).length;
  const position = { level: record.depths.get(parent) + 2, place: number, siblings: number, folded: Number.parseInt(words, 10), hit: false, clear: 0 };
  return { ...position, state: "dropped", label: "", note: null, score: "", text: words, spoken: `${words}, folded` };
}

/** The parents and the nodes of a record, with rows of rolled branches. */
function withRolled({ parents, nodes }, rolled) {
  if (!rolled.size) return { parents, nodes };
  const ids = [...rolled.keys()];
  return {
    parents: new Map([...parents, ...ids.map((id) => [id, rolledParent(id)])]),
    nodes: new Map([...nodes, ...ids.map((id) => [id, { state: "dropped" }])]),
  };
}
