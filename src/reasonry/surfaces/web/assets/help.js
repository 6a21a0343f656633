// The keys, on one sheet, and the two that work everywhere.

import { byId, element } from "./dom.js";

const KEYS = [
  ["/", "search"],
  ["?", "this help"],
  ["↑ ↓", "the thought above, below; in the timeline the question before, after"],
  ["→", "unfold, then the first thought below it"],
  ["←", "fold, then the thought it came from"],
  ["Home, End", "first, last thought"],
  ["Enter", "read the thought; in the search: the next match, with Shift the one before"],
  ["Escape", "back to the tree; in the search: clear it"],
];

/** @param {{ back(): void }} page */
export function makeHelp(page) {
  const dialog = /** @type {HTMLDialogElement} */ (byId("help"));
  const rows = KEYS.flatMap(([keys, means]) => [element("dt", {}, element("kbd", {}, keys)), element("dd", {}, means)]);
  dialog.replaceChildren(
    element("h2", { id: "help-title" }, "Keys"),
    element("dl", { class: "facts" }, ...rows),
    element("button", { type: "button", on: { click: () => dialog.close() } }, "Close"),
  );
  byId("ask-help").addEventListener("click", () => dialog.showModal());
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || dialog.open) return;
    const typing = event.target.closest?.("input, textarea, select");
    if (event.key === "Escape" && !typing) page.back();
    if (typing || (event.key !== "/" && event.key !== "?")) return;
    event.preventDefault();
    if (event.key === "?") dialog.showModal();
    else byId("search")?.focus();
  });
}
