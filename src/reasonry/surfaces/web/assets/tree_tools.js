// What stands above the tree: search, what to hide, which drawing, fold and unfold; and what the marks mean.

import { byId, element } from "./dom.js";
import { mark } from "./marks.js";
import { STATE_ORDER, stateWord } from "./wording.js";

/**
 * @param {{ query: string, hideDropped: boolean, layout: string }} view
 * @param {{ redraw(): void, step(by: number): void, foldAll(folded: boolean): void }} page
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
    placeholder: "Search thoughts and replies",
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
  const layouts = { auto: "Drawing: automatic", cards: "Drawing: tree", rows: "Drawing: outline" };
  const choice = element(
    "select",
    { id: "drawing", "aria-label": "Drawing", on: { change: () => change("layout", choice.value) } },
    ...Object.entries(layouts).map(([value, name]) => element("option", { value }, name)),
  );
  const folding = (name, folded) =>
    element("button", { on: { click: () => page.foldAll(folded) } }, name);
  byId("tree-tools").replaceChildren(
    search,
    found,
    element("label", { class: "check" }, hide, "Hide dropped"),
    choice,
    folding("Unfold all", false),
    folding("Fold", true),
  );
  const views = [
    ["As it ran", false],
    ["Collapsed", true],
  ].map(([name, value]) =>
    element("button", { "aria-pressed": String(value === view.isCollapsed), on: { click: () => turn(value) } }, name),
  );
  const turn = (value) => {
    views.forEach((button, index) => button.setAttribute("aria-pressed", String(value === (index === 1))));
    change("isCollapsed", value);
  };
  byId("views").replaceChildren(...views);

  /** Searches for these words, in the view as it ran. */
  return (words) => {
    search.value = view.query = words;
    turn(false);
  };
}

/** The marks in use and what they mean; of the tools, those that do something here. */
export function drawLegend(record, view) {
  const isSession = record.page.kind === "session";
  for (const tool of byId("tree-tools").querySelectorAll("button, select")) tool.hidden = isSession;
  byId("tree-tools").hidden = record.nodes.size < 4 || view.isCollapsed;
  byId("views").hidden = !record.page.path?.length;
  const used = new Set([...record.nodes.values()].map(({ state }) => state));
  const known = STATE_ORDER.filter((state) => used.has(state));
  byId("legend").replaceChildren(...known.map((state) => element("span", {}, mark(state), stateWord(state))));
}
