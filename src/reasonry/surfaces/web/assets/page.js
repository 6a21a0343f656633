// The page: one record in, everything drawn; what the reader chose stays when a newer record comes.

import { drawAccount } from "./account.js";
import { drawDetail } from "./detail.js";
import { byId, isTyping, listen } from "./dom.js";
import { drawMasthead } from "./masthead.js";
import { drawPlans } from "./plans.js";
import { countThoughts, foldFar, nodeLabel, pathTo, readRecord } from "./record.js";
import { filterThoughts } from "./search.js";
import { laySkeleton } from "./skeleton.js";
import { drawSpend } from "./spend.js";
import { drawStages } from "./stages.js";
import { drawSteps } from "./steps.js";
import { drawTimeline, markBars } from "./timeline.js";
import { makeTree } from "./tree.js";
import { drawLegend, makeTreeTools } from "./tree_tools.js";
import { drawVotes } from "./votes.js";
import { drawWhy } from "./why.js";
import { count, stateWord } from "./wording.js";

// Thoughts drawn at first; the reader may unfold them all.
const MANY = 160;
const MANY_ON_A_PHONE = 40;

/**
 * @param {HTMLElement} host
 * @param {object} around what the page stands in
 * @param {Node[]} around.tools what stands at the end of the first line
 * @param {() => string} around.at the id of the thought or question that the address names
 * @param {(id: string) => void} around.move sets it
 * @param {(question: object) => Node[]} [around.questionTools] what can be done with a question
 * @param {(id: string) => string} [around.addressOf] of another run, where one can go there
 */
export function makePage(host, around) {
  laySkeleton(host, around.tools);
  /** @type {import("./record.js").Recorded | null} */
  let record = null;
  const view = { layout: "rows", query: "", hideDropped: false, isCollapsed: false, collapsed: new Set(), unrolled: new Set() };
  let selected = null;
  let question = null;
  let isChosen = false; // by the reader
  let narrow = false; // as it was last drawn
  const detail = byId("detail");
  const tree = makeTree(byId("tree"), { select, fold, unroll });
  const search = makeTreeTools(view, { redraw: drawTree, step, foldAll });

  /** Draws a page document; called again with a newer one of the same run it keeps selection, folding and scrolling. */
  function render(page) {
    const first = record === null || record.page.id !== page.id;
    const known = record?.nodes;
    record = readRecord(page);
    byId("thoughts").hidden = record.nodes.size === 0;
    const far = foldFar(record, tree.isNarrow() ? MANY_ON_A_PHONE : MANY);
    if (first) Object.assign(view, { collapsed: far, unrolled: new Set() });
    else for (const id of far) if (!known.has(id)) view.collapsed.add(id);
    drawMasthead(record, around);
    drawWhy(record, { select: (id) => select(id, { open: true }) });
    drawSpend(record, around);
    drawVotes(record, { select: (id) => select(id, { open: true }) });
    drawPlans(record, { select: (id) => select(id, { open: true }) });
    drawTimeline(record, { select });
    drawAccount(record);
    if (first || !record.nodes.has(selected)) openFirst();
    else drawTree();
    // Who has chosen nothing is shown the answer when it comes.
    const goal = isChosen ? {} : goalOf(record);
    if (goal.id !== undefined && goal.id !== selected) select(goal.id, { ...goal, quiet: true });
    if (!first && known.size !== record.nodes.size) say(`${count(countThoughts(record, record.order), "thought")} now`);
  }

  function openFirst() {
    const linked = nodeAt(around.at());
    const goal = linked === null ? goalOf(record) : { id: linked };
    selected = null;
    drawTree();
    const id = goal.id ?? record.roots[0];
    isChosen = linked !== null;
    if (id !== undefined) select(id, { ...goal, open: isChosen, quiet: true });
    if (isChosen) tree.reveal(id);
  }

  /** The node of an id of a node or a question; notes the question. */
  function nodeAt(id) {
    question = record.questions.has(id) ? id : null;
    const node = record.questions.get(id)?.node ?? id;
    return record.nodes.has(node) ? node : null;
  }

  function drawTree({ isMoved = false } = {}) {
    drawLegend(record, view);
    byId("steps").hidden = !view.isCollapsed;
    byId("tree").hidden = byId("legend").hidden = view.isCollapsed;
    if (view.isCollapsed) drawSteps(byId("steps"), record, { search });
    drawStages(record, view.isCollapsed);
    narrow = tree.isNarrow();
    Object.assign(view, filterThoughts(record, view));
    const shown = tree.draw(record, view);
    const all = countThoughts(record, record.order);
    const some = countThoughts(record, shown);
    const part = some < all ? `${some} of ` : "";
    byId("counts").textContent = part + count(all, "thought");
    byId("found").textContent = view.hits ? `${view.hits.size} found` : "";
    if (selected !== null) {
      tree.choose(selected);
      showDetail();
      if (isMoved) tree.centre(selected);
    }
  }

  /**
   * Selects a thought: the tree, the detail, the timeline and the address follow.
   * @param {string} id
   * @param {{ open?: boolean, question?: string | null, quiet?: boolean }} how `open` brings the detail forward
   */
  function select(id, { open = false, question: asked = null, quiet = false } = {}) {
    if (!record.nodes.has(id)) return;
    selected = id;
    question = asked ?? (quiet ? question : null);
    const folded = pathTo(record, id).slice(0, -1).filter((step) => view.collapsed.has(step));
    const isHidden = !view.isCollapsed && !view.keep && !tree.has(id);
    if (folded.length || isHidden) {
      for (const step of folded) view.collapsed.delete(step);
      if (isHidden) for (const step of pathTo(record, id)) view.unrolled.add(step);
      drawTree();
    } else {
      tree.choose(id);
      showDetail();
    }
    if (quiet) tree.centre(id);
    else {
      isChosen = true;
      tree.reveal(id);
      around.move(question ?? id);
      const node = record.nodes.get(id);
      say(`${nodeLabel(node)}, ${stateWord(node.state, Boolean(record.page.answer))}`);
    }
    if (!open) return;
    detail.dataset.open = "true";
    if (!quiet && !isPointer()) detail.focus({ preventScroll: true });
  }

  /** Enter moves on into the detail; a pointer leaves the focus where it pointed. */
  function isPointer() {
    return !(document.activeElement?.matches(":focus-visible") ?? false);
  }

  function showDetail() {
    const page = { ...around, select: (id) => select(id, { open: true }), close: back };
    drawDetail(detail, record, selected, question, page);
    markBars(selected);
  }

  function fold(id, folded) {
    if (folded) view.collapsed.add(id);
    else view.collapsed.delete(id);
    drawTree();
    say(`${nodeLabel(record.nodes.get(id))} ${folded ? "folded" : "unfolded"}`);
  }

  function unroll(id) {
    view.unrolled.add(id);
    drawTree();
  }

  function foldAll(folded) {
    view.unrolled = new Set(folded ? [] : record.nodes.keys());
    view.collapsed = folded ? foldFar(record, 1) : new Set();
    drawTree();
    if (selected !== null) tree.reveal(selected);
  }

  /** The next match, counted from the selected thought. */
  function step(by) {
    const hits = record.order.filter((id) => view.hits?.has(id));
    if (!hits.length) return;
    const at = hits.indexOf(selected);
    select(hits[(Math.max(at, by > 0 ? -1 : 0) + by + hits.length) % hits.length]);
  }

  function back() {
    delete detail.dataset.open;
    byId("tree").querySelector("[tabindex='0']")?.focus({ preventScroll: true });
  }

  function say(text) {
    byId("live").textContent = text;
  }

  /** Shows what an address names. */
  function goTo(id) {
    const node = record && nodeAt(id);
    if (node) select(node, { open: true, question });
  }

  const ended = new AbortController();
  const { signal } = ended;
  listen(
    document,
    "keydown",
    (event) => {
      if (isTyping(event) || document.querySelector("dialog[open]")) return;
      if (event.key === "Escape") back();
      if (event.key !== "/") return;
      event.preventDefault();
      byId("search").focus();
    },
    { signal },
  );
  // Paper is narrow: there the tree is an outline, whatever the reader looks at.
  let onScreen = view.layout;
  addEventListener("beforeprint", () => printAs("rows"), { signal });
  addEventListener("afterprint", () => printAs(null), { signal });
  function printAs(layout) {
    if (layout) onScreen = view.layout;
    view.layout = layout ?? onScreen;
    view.isOnPaper = layout !== null;
    if (record) drawTree();
  }

  const sizes = new ResizeObserver(() => {
    if (record !== null && !view.isCollapsed && narrow !== tree.isNarrow()) drawTree();
  });
  sizes.observe(byId("tree"));

  function close() {
    ended.abort();
    sizes.disconnect();
    host.replaceChildren();
  }

  return { render, select, goTo, close };
}

/** Where to look first: at the failed question, the first refuted claim, the winner's row, the answer, or the end of the best path. */
function goalOf({ page, nodes, order, questions }) {
  const listed = order.map((id) => nodes.get(id));
  const failed = page.outcome === "error" && [...questions.values()].findLast(({ status }) => status === "failed");
  if (failed) return { id: failed.node, question: failed.id };
  const answer = listed.findLast(({ state }) => state === "answer");
  const refuted = answer?.data?.verdict && listed.find(({ data }) => data?.verdict === "refuted");
  if (answer || page.status === "active") return { id: (refuted || answer)?.id };
  const winner = page.votes?.find(({ leads }) => leads)?.nodes.find((id) => nodes.has(id));
  const best = listed.filter(({ state }) => state === "on_path");
  return { id: winner ?? (page.kind === "run" ? best.at(-1)?.id : undefined) };
}
