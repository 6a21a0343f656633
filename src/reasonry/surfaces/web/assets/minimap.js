// A large drawing of cards in small: where the thoughts are, and which part of them is in view.

import { drawn, listen } from "./dom.js";

export const LEAST_CARDS = 60;

/**
 * @param {HTMLElement} host what scrolls
 */
export function makeMinimap(host) {
  const frame = drawn("rect", { class: "frame" });
  const svg = drawn("svg", { class: "minimap", "aria-hidden": "true", preserveAspectRatio: "none" });
  svg.style.display = "none";
  host.after(svg);
  let size = null; // of the drawing, in rem

  /** @param {import("./layout_tree.js").Layout | null} layout null: the drawing is not one of many cards */
  function draw(layout, nodes) {
    size = layout;
    svg.style.display = layout ? "" : "none";
    if (!layout) return;
    svg.setAttribute("viewBox", `0 0 ${layout.width} ${layout.height}`);
    const { width, height } = layout.box;
    const cards = [...layout.places].map(([id, { x, y }]) => drawn("rect", { x, y, width, height, "data-state": nodes.get(id)?.state }));
    svg.replaceChildren(...cards, frame);
    follow();
  }

  function follow() {
    if (!size || !host.scrollWidth) return;
    const [x, y] = [size.width / host.scrollWidth, size.height / host.scrollHeight];
    const seen = { x: host.scrollLeft * x, y: host.scrollTop * y, width: host.clientWidth * x, height: host.clientHeight * y };
    for (const [name, value] of Object.entries(seen)) frame.setAttribute(name, value);
  }

  function go({ clientX, clientY, buttons }) {
    if (!buttons) return;
    const at = svg.getBoundingClientRect();
    const [x, y] = [(clientX - at.left) / at.width, (clientY - at.top) / at.height];
    host.scrollTo(x * host.scrollWidth - host.clientWidth / 2, y * host.scrollHeight - host.clientHeight / 2);
  }

  listen(host, "scroll", follow);
  listen(svg, "pointerdown", go);
  listen(svg, "pointermove", go);
  return { draw };
}
