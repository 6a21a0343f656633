// The sign of a state: a shape of its own, so that colour is never the only difference.

import { drawn } from "./dom.js";

const SHAPES = {
  answer: () => [drawn("path", { d: "M8 1 15 8 8 15 1 8Z", class: "solid" })],
  on_path: () => [drawn("circle", { cx: 8, cy: 8, r: 5.5, class: "solid" })],
  expanded: () => [drawn("circle", { cx: 8, cy: 8, r: 5, class: "ring" }), drawn("circle", { cx: 8, cy: 8, r: 2, class: "solid" })],
  open: () => [drawn("circle", { cx: 8, cy: 8, r: 5, class: "ring" })],
  dropped: () => [drawn("path", { d: "M3.5 3.5 12.5 12.5M12.5 3.5 3.5 12.5", class: "stroke" })],
};

/** @param {string} state */
export function mark(state) {
  return drawn("svg", { class: "mark", viewBox: "0 0 16 16", "aria-hidden": "true", "data-state": state }, ...(SHAPES[state] ?? SHAPES.open)());
}
