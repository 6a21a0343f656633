// Why the answer is what it is: the reason of the record, with the number of each thought that it rests on as a link.

import { byId, element, show } from "./dom.js";
import { nodeLabel } from "./record.js";

/**
 * @param {import("./record.js").Recorded} record
 * @param {{ select(id: string): void }} page
 */
export function drawWhy({ page: { why }, nodes }, page) {
  if (!why) return show(byId("why"), []);
  const link = (said) => {
    const node = nodes.get(why.nodes[why.thoughts.map(String).indexOf(said)]);
    // A line may end beside a button, and part it from its bracket.
    return node ? element("a", { class: "link", href: `#${node.id}`, title: nodeLabel(node), on: { click: (event) => (event.preventDefault(), page.select(node.id)) } }, said) : said;
  };
  const parts = why.text.split(/\b(thoughts? \d+(?:(?:, | and )\d+)*)/i);
  const linked = parts.flatMap((part, place) => (place % 2 ? part.split(/(\d+)/).map(link) : part));
  show(byId("why"), [element("strong", {}, "Why"), ...linked]);
}
