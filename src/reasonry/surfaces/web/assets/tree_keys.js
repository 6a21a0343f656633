// What a key means in the tree, as trees are walked everywhere.

/**
 * @param {string} key
 * @param {string} id where the focus is
 * @param {{ shown: string[], record: import("./record.js").Recorded }} drawing
 * @param {string | null} expanded "true", "false", or null for a thought without children
 * @returns {{ to: string, open?: boolean } | { fold: boolean } | null} where to go, or whether to fold this one
 */
export function walkKey(key, id, { shown, record }, expanded) {
  const at = shown.indexOf(id);
  const to = (other) => (other !== undefined && other !== null && shown.includes(other) ? { to: other } : null);
  switch (key) {
    case "ArrowDown":
      return to(shown[at + 1]);
    case "ArrowUp":
      return to(shown[at - 1]);
    case "Home":
      return to(shown[0]);
    case "End":
      return to(shown[shown.length - 1]);
    case "ArrowRight":
      if (expanded === "false") return { fold: false };
      return to(record.children.get(id).find((child) => shown.includes(child)));
    case "ArrowLeft":
      return expanded === "true" ? { fold: true } : to(record.parents.get(id));
    case "Enter":
    case " ":
      return { to: id, open: true };
    default:
      return null;
  }
}
