// The tree of thoughts: laid out, drawn, walked with the keyboard.

import { card, cardText } from "./card.js";
import { element, listen, putInOrder } from "./dom.js";
import { makeEdges } from "./edges.js";
import { layLayers } from "./layout_layers.js";
import { layLanes, layOutline, mergeEdges } from "./layout_rows.js";
import { inCards, layTree, parentEdges } from "./layout_tree.js";
import { countBelow, pathTo, visibleIn } from "./record.js";
import { walkKey } from "./tree_keys.js";

const NARROW_REM = 44;

/**
 * @param {HTMLElement} host the element with role=tree
 * @param {{ select(id: string, how: { open: boolean }): void, fold(id: string, folded: boolean): void }} page
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
    const kind = chosenLayout(record, view.layout, isNarrow);
    const folded = view.query ? new Set() : view.collapsed;
    const order = kind === "lanes" ? [...record.nodes.keys()] : visibleIn(record, folded);
    const shown = view.keep ? order.filter((id) => view.keep.has(id)) : order;
    const layout = lay(kind, shown, record);
    const known = again ? drawing.record.nodes : record.nodes;
    const focused = host.contains(document.activeElement) ? document.activeElement : null;
    cards = new Map(shown.map((id) => [id, place(record, view, id, layout, kind, cards.get(id), prefix)]));
    edges.draw(layout, record.nodes);
    const items = new Map([...cards].map(([id, { item }]) => [id, item]));
    putInOrder(ground, [edges.svg, ...items.values()]);
    for (const item of fresh) item.classList.remove("fresh");
    fresh = [...items].filter(([id]) => !known.has(id)).map(([, item]) => item);
    for (const item of fresh) item.classList.add("fresh");
    ground.style.height = `${layout.height}rem`;
    ground.style.width = layout.width ? `${layout.width}rem` : "100%";
    ground.hidden = shown.length === 0;
    none.hidden = shown.length > 0;
    host.dataset.form = layout.form;
    drawing = { record, view, shown, items, kind };
    choose(items.has(selected) ? selected : null, focused !== null && focused !== document.activeElement);
    return shown;
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

  /** Brings a thought to the middle of the tree without moving the page. */
  function centre(id) {
    const item = drawing?.items.get(id);
    if (!item) return;
    const left = item.offsetLeft + item.offsetWidth - host.clientWidth + 24;
    host.scrollTo(left, item.offsetTop + (item.offsetHeight - host.clientHeight) / 2);
  }

  listen(host, "click", (event) => {
    const item = event.target.closest("[role=treeitem]");
    if (!item) return;
    const id = item.dataset.id;
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
    if (move.fold !== undefined) page.fold(item.dataset.id, move.fold);
    else {
      page.select(move.to, { open: move.open ?? false });
      reveal(move.to);
      if (!move.open) drawing.items.get(move.to)?.focus({ preventScroll: true });
    }
  });

  let width = 0; // asked of the browser when it has changed
  new ResizeObserver(() => (width = 0)).observe(host);
  function isNarrow() {
    width ||= host.clientWidth / parseFloat(getComputedStyle(document.documentElement).fontSize);
    return width < NARROW_REM;
  }

  return { draw, choose, reveal, centre, isNarrow };
}

/** Which drawing suits: a session's lanes, a chain's or a phone's rows, else cards. */
function chosenLayout(record, wish, isNarrow) {
  if (record.page.kind === "session") return "lanes";
  const forks = [...record.children.values()].some((below) => below.length > 1) || record.roots.length > 1;
  if (wish === "rows" || (wish === "auto" && (!forks || isNarrow()))) return "rows";
  return [...record.nodes.values()].some((node) => node.merges?.length) ? "layers" : "cards";
}

/** @returns {import("./layout_tree.js").Layout} */
function lay(kind, shown, record) {
  if (kind === "lanes") return layLanes(shown, record);
  if (kind === "rows") return layOutline(shown, record.parents, record.children);
  if (kind === "cards") return layTree(shown, record.parents);
  const edges = [...parentEdges(shown, record.parents), ...mergeEdges(shown, record)];
  const { columns, rows } = layLayers(shown, edges);
  return inCards(shown, columns, rows, edges);
}

/** The card of a thought where it belongs: the one there was, if it would say the same. */
function place(record, view, id, layout, kind, before, prefix) {
  const parent = record.parents.get(id);
  const siblings = parent === null ? record.roots : record.children.get(parent);
  const hasFold = kind !== "lanes" && !view.query && record.children.get(id).length > 0;
  const { x, y } = layout.places.get(id);
  const standing = {
    level: kind === "lanes" ? 1 : record.depths.get(id) + 1,
    place: kind === "lanes" ? record.places.get(id) + 1 : record.ranks.get(id) + 1,
    siblings: kind === "lanes" ? record.order.length : siblings.length,
    folded: hasFold ? (view.collapsed.has(id) ? countBelow(record, id) : 0) : null,
    hit: view.hits?.has(id) ?? false,
    clear: layout.clear ? layout.clear - x : 0,
  };
  const said = { ...standing, ...cardText(record, id) };
  const key = JSON.stringify(said);
  const item = before?.key === key ? before.item : card(`${prefix}${id}`, id, said);
  if (before?.item !== item || before.x !== x || before.y !== y) {
    item.style.left = `${x}rem`;
    item.style.top = `${y}rem`;
  }
  return { item, key, x, y };
}
