// What stands above the tree: search, what to hide, which drawing, fold and unfold; and what the marks mean.

import { byId, element } from "./dom.js";
import { mark } from "./marks.js";
import { STATE_ORDER, stateWord } from "./wording.js";

const VIEWS = { rows: "Outline", cards: "Cards", stages: "By stage" };
const LEAST_MARKS = 3; // of two, one knows what they mean

/**
 * @param {{ query: string, hideDropped: boolean, layout: string }} view
 * @param {{ redraw(how?: { isMoved: boolean }): void, step(by: number): void, foldAll(folded: boolean): void }} page
 */
export function makeTreeTools(view, page) {
  const change = (name, value) => {
    view[name] = value;
    page.redraw();
  };
  const found = element("output", { class: "quiet", id: "found", for: "search" });
  const search = element("input", {
    type: "search",
    id: "search",
    placeholder: "Search",
    "aria-label": "Search thoughts and replies",
    on: {
      input: () => change("query", search.value),
      keydown: (event) => {
        if (event.key === "Enter") page.step(event.shiftKey ? -1 : 1);
        if (event.key === "Escape") change("query", (search.value = ""));
      },
    },
  });
  const hide = element("input", { type: "checkbox", on: { change: () => change("hideDropped", hide.checked) } });
  const folding = element("button", { on: { click: () => turnFold(!isFolded) } }, "Fold all");
  let isFolded = false;
  const turnFold = (folded) => {
    isFolded = folded;
    folding.textContent = folded ? "Unfold all" : "Fold all";
    page.foldAll(folded);
  };
  const fit = element("button", { id: "fit", "aria-pressed": "false", on: { click: () => {
    view.isFitted = !view.isFitted;
    fit.setAttribute("aria-pressed", String(view.isFitted));
    page.redraw({ isMoved: true });
  } } }, "Fit");
  byId("tree-tools").replaceChildren(
    search,
    found,
    element("label", { class: "check" }, hide, "Hide dropped"),
    folding,
    fit,
  );
  const views = new Map(
    Object.entries(VIEWS).map(([name, words]) => [name, element("button", { id: `view-${name}`, on: { click: () => turn(name) } }, words)]),
  );
  const turn = (name) => {
    for (const [other, button] of views) button.setAttribute("aria-pressed", String(other === name));
    view.isCollapsed = name === "stages";
    if (name !== "stages") view.layout = name;
    page.redraw({ isMoved: true });
  };
  for (const [name, button] of views) button.setAttribute("aria-pressed", String(name === view.layout));
  byId("views").replaceChildren(...views.values());

  /** Searches for these words, in the view as it ran. */
  return (words) => {
    search.value = view.query = words;
    turn(view.layout);
  };
}

/** The marks in use and what they mean; of the tools, those that do something here. */
export function drawLegend(record, view) {
  const isSession = record.page.kind === "session";
  for (const tool of byId("tree-tools").querySelectorAll("button")) tool.hidden = isSession;
  byId("fit").hidden = isSession || view.layout !== "cards";
  byId("tree-tools").hidden = record.nodes.size < 4 || view.isCollapsed;
  byId("views").hidden = isSession;
  byId("view-stages").hidden = !record.page.path?.length;
  const used = new Set([...record.nodes.values()].map(({ state }) => state));
  const known = STATE_ORDER.filter((state) => used.has(state));
  const isAnswered = Boolean(record.page.answer);
  const items = known.length < LEAST_MARKS ? [] : known.map((state) => element("span", {}, mark(state), stateWord(state, isAnswered)));
  byId("legend").replaceChildren(...items);
}
