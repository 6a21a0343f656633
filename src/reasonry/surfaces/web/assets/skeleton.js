// The parts of the page, still empty: where what is drawn of a run or a session will stand.

import { element } from "./dom.js";

/**
 * @param {HTMLElement} host
 * @param {Node[]} tools what stands at the end of the first line
 */
export function laySkeleton(host, tools) {
  const panel = (id) => element("section", { id, class: "panel", hidden: true });
  const masthead = element(
    "header",
    { class: "masthead" },
    element(
      "div",
      { class: "bar" },
      element("p", { id: "facts", class: "facts" }),
      element("div", { id: "page-tools", class: "tools" }, ...tools),
    ),
    element("h1", { id: "problem" }, "Reading …"),
    element(
      "div",
      { class: "result" },
      element("div", { id: "outcome", class: "outcome" }),
      element("p", { id: "why", class: "reasons", hidden: true }),
    ),
    element("p", { id: "spend", class: "spend", "aria-label": "Usage", hidden: true }),
    element("ul", { id: "warnings", class: "warnings", hidden: true }),
  );
  const thoughts = element(
    "section",
    { id: "thoughts", class: "panel", hidden: true },
    element(
      "div",
      { class: "head" },
      element("h2", {}, "Thoughts"),
      element("div", { id: "views", class: "choice", role: "group", "aria-label": "View" }),
      element("p", { id: "counts", class: "quiet" }),
      element("div", { id: "tree-tools", class: "tools" }),
    ),
    element("div", { id: "steps", hidden: true }),
    element("div", { class: "ground-plan" }, element("div", { id: "tree", class: "tree", role: "tree", "aria-label": "Thoughts" })),
    element("div", { id: "legend", class: "legend" }),
  );
  const views = ["waiting", "votes", thoughts, "stages", "plans", "timeline", "account"];
  host.replaceChildren(
    masthead,
    element(
      "div",
      { class: "work" },
      element(host.closest("main") ? "div" : "main", { class: "views" }, ...views.map((part) => (typeof part === "string" ? panel(part) : part))),
      element("aside", { id: "detail", class: "detail", "aria-label": "Selected", tabindex: "-1" }),
    ),
  );
}
