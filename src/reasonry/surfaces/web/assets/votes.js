// The vote: samples that agree stand together, the answer with the most first.

import { byId, element, heading, show } from "./dom.js";
import { mark } from "./marks.js";
import { nodeLabel } from "./record.js";
import { count } from "./wording.js";

/**
 * @param {import("./record.js").Recorded} record
 * @param {{ select(id: string): void }} page
 */
export function drawVotes(record, page) {
  const votes = record.page.votes ?? [];
  const cast = votes.reduce((sum, vote) => sum + vote.count, 0);
  const unasked = [...record.nodes.values()].filter(({ why }) => why?.code === "stopped_early").length;
  const rows = votes.map((vote) =>
    element(
      "li",
      { class: vote.leads ? "vote leads" : "vote" },
      element("p", { class: "text" }, vote.answer || "—", vote.leads && element("strong", {}, " leads")),
      element("p", { class: "number" }, `${vote.count} of ${cast}`),
      element(
        "div",
        { class: "bar" },
        element("span", { size: { width: `${(100 * vote.count) / cast}%` } }),
      ),
      element("div", { class: "voters" }, ...vote.nodes.flatMap((id) => voter(record, id, page))),
    ),
  );
  const early = unasked > 0 && `decided early: ${count(unasked, "sample was", "samples were")} not needed`;
  const head = heading("Votes", count(cast, "vote"), count(votes.length, "different answer"), early);
  show(byId("votes"), rows.length ? [head, element("ol", { class: "votes" }, ...rows)] : []);
}

function voter(record, id, page) {
  const node = record.nodes.get(id);
  if (!node) return [];
  const name = nodeLabel(node);
  const listeners = { click: () => page.select(id) };
  const properties = { type: "button", class: "voter", "data-node": id, title: name, "aria-label": name };
  return [element("button", { ...properties, on: listeners }, mark(node.state))];
}
