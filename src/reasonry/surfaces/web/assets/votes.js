// The vote: samples that agree stand together, the answer with the most first.

import { byId, element, heading, quietLine, show } from "./dom.js";
import { mark } from "./marks.js";
import { nodeLabel } from "./record.js";
import { count, duration } from "./wording.js";

const SHOWN = 300; // of the votes in the order they came in

/** The votes of a page, where samples voted: of drafts that a judge compared, each stands alone. */
function votesOf({ votes = [], confidence }) {
  return Number.isFinite(confidence) || votes.some((vote) => vote.count > 1) ? votes.filter((vote) => vote.count) : [];
}

/**
 * @param {import("./record.js").Recorded} record
 * @param {{ select(id: string): void }} page
 */
export function drawVotes(record, page) {
  const votes = votesOf(record.page);
  const cast = votes.reduce((sum, vote) => sum + vote.count, 0);
  const stop = votes.length ? earlyStop(record) : null;
  const rows = votes.map((vote, index) =>
    element(
      "li",
      { class: vote.leads ? "vote leads" : "vote" },
      element("p", { class: "text" }, votes.length > 1 && element("small", {}, `${letter(index)} `), vote.answer || "—", vote.leads && element("strong", {}, " leads")),
      element("p", { class: "number" }, `${vote.count} of ${cast}`),
      element(
        "div",
        { class: "bar" },
        element("span", { size: { width: `${(100 * vote.count) / cast}%` } }),
      ),
      element("div", { class: "voters" }, ...vote.nodes.flatMap((id) => voter(record, id, page))),
    ),
  );
  const early = stop && `stopped early: ${count(stop.spared, "sample was", "samples were")} not needed`;
  const head = heading("Votes", count(cast, "vote"), count(votes.length, "different answer"), early);
  show(byId("votes"), rows.length ? [head, element("ol", { class: "votes" }, ...rows), ...arrivals(record, votes, page)] : []);
}

/** The votes in the order they came in, the leader at each moment, and where enough were in. */
function arrivals(record, votes, page) {
  const vote = new Map(votes.flatMap(({ nodes }, index) => nodes.map((id) => [id, index])));
  const came = [...record.nodes.values()].filter(({ id, ended_at_ms: at }) => vote.has(id) && Number.isFinite(at));
  came.sort((a, b) => a.ended_at_ms - b.ended_at_ms);
  if (came.length < 2) return [];
  const counts = votes.map(() => 0);
  const items = came.slice(-SHOWN).map((node) => {
    const index = vote.get(node.id);
    counts[index] += 1;
    const name = letter(index);
    const stand = counts.map((number, other) => number && `${letter(other)} ${number}`).filter(Boolean).join(", ");
    const said = `${nodeLabel(node)}, after ${duration(node.ended_at_ms)}: ${name}; then ${stand}`;
    const properties = { type: "button", class: votes[index].leads ? "ballot leads" : "ballot", title: said, "aria-label": said };
    return element("li", {}, element("button", { ...properties, on: { click: () => page.select(node.id) } }, name));
  });
  const stop = earlyStop(record);
  if (stop) items.push(element("li", { class: "stop" }, stopWords(stop)));
  return [quietLine("As they came in"), element("ol", { class: "arrivals" }, ...items)];
}

/** When the votes that were in settled the vote; nothing where every sample was drawn. */
function earlyStop({ page, nodes }) {
  const ended = page.votes.flatMap((vote) => vote.nodes.map((id) => nodes.get(id)?.ended_at_ms)).filter(Number.isFinite);
  if (!page.samples_saved || !ended.length) return null;
  return { at: Math.max(...ended), counted: page.samples_used, spared: page.samples_saved, confidence: page.confidence ?? null };
}

function stopWords({ at, counted, spared, confidence }) {
  const sure = confidence === null || confidence >= 1 ? "the leader could not lose any more" : `the leader is the majority with ${(100 * confidence).toFixed(1)} % certainty`;
  return `stopped at ${duration(at)}, after ${count(counted, "sample")}: ${sure}; ${spared} spared`;
}

function letter(index) {
  return index < 26 ? String.fromCharCode(65 + index) : String(index + 1);
}

function voter(record, id, page) {
  const node = record.nodes.get(id);
  if (!node) return [];
  const name = nodeLabel(node);
  const listeners = { click: () => page.select(id) };
  const properties = { type: "button", class: "voter", "data-node": id, title: name, "aria-label": name };
  return [element("button", { ...properties, on: listeners }, mark(node.state))];
}
