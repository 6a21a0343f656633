// The keys, on one sheet.

import { byId, element, isTyping, listen } from "./dom.js";

const KEYS = [
  ["/", "search"],
  ["?", "this help"],
  ["↑ ↓", "the thought above, below; in the timeline the previous, next question"],
  ["→", "unfold, then the first thought below it"],
  ["←", "fold, then the thought it came from"],
  ["Home, End", "first, last thought"],
  ["Enter", "read the thought; in the search: the next match, with Shift the previous match"],
  ["Escape", "back to the tree; in the search: clear it"],
];

/**
 * @param {HTMLElement} button shows the sheet, as `?` does
 * @param {[string, string][]} more keys of the surroundings
 */
export function makeHelp(button, more = []) {
  const dialog = /** @type {HTMLDialogElement} */ (byId("help"));
  const pair = ([keys, means]) => [element("dt", {}, element("kbd", {}, keys)), element("dd", {}, means)];
  dialog.replaceChildren(
    element("h2", { id: "help-title" }, "Keys"),
    element("dl", { class: "facts" }, ...[...KEYS, ...more].flatMap(pair)),
    element("button", { on: { click: () => dialog.close() } }, "Close"),
  );
  listen(button, "click", () => dialog.showModal());
  listen(document, "keydown", (event) => {
    if (event.key !== "?" || isTyping(event) || document.querySelector("dialog[open]")) return;
    event.preventDefault();
    dialog.showModal();
  });
}
