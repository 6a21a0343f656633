// The sign of a state: a shape of its own, so that colour is never the only difference.

import { drawn } from "./dom.js";

const SHAPES = {
  answer: () => [drawn("path", { d: "M8 1 15 8 8 15 1 8Z", class: "solid" })],
  on_path: () => [circle(5.5, "solid")],
  expanded: () => [circle(5, "ring"), circle(2, "solid")],
  open: () => [circle(5, "ring")],
  dropped: () => [drawn("path", { d: "M3.5 3.5 12.5 12.5M12.5 3.5 3.5 12.5", class: "stroke" })],
};

function circle(r, kind) {
  return drawn("circle", { cx: 8, cy: 8, r, class: kind });
}

/** @param {string} state */
export function mark(state) {
  const properties = { class: "mark", viewBox: "0 0 16 16", "aria-hidden": "true", "data-state": state };
  return drawn("svg", properties, ...(SHAPES[state] ?? SHAPES.open)());
}
