// The keys of the list: from row to row, and out of the search.

import { isTyping, listen } from "../dom.js";

/**
 * @param {HTMLElement} rows
 * @param {HTMLInputElement} find the search above them
 * @param {() => void} filter called when the search was cleared
 * @returns {() => void} ends it
 */
export function walkWithKeys(rows, find, filter) {
  function onKey(event) {
    if (event.key === "Escape" && event.target === find) {
      if (find.value) {
        find.value = "";
        filter();
      } else find.blur();
      return;
    }
    const step = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 }[event.key];
    if (!step || (isTyping(event) && event.target !== find) || document.querySelector("dialog[open]")) return;
    if (event.target === find && !event.key.startsWith("Arrow")) return;
    const links = [...rows.querySelectorAll("a")];
    const at = links.findIndex((link) => link.closest("tr").contains(document.activeElement));
    const next = links[at + step] ?? (step < 0 ? find : null);
    if (!next) return;
    event.preventDefault();
    next.focus();
  }
  listen(document, "keydown", onKey);
  return () => document.removeEventListener("keydown", onKey);
}
