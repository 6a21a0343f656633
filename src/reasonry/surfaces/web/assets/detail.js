// All there is about one thought: text, score, why it was dropped, what it cost, what was asked for it.

import { element, quietLine } from "./dom.js";
import { mark } from "./marks.js";
import { changes, questionItem } from "./question.js";
import { costWithBelow, nodeLabel, pathTo } from "./record.js";
import { callName, costLine, count, dotted, duration, plainName, scoreName, scoreOf, stateWord, valueText } from "./wording.js";

const OPENED = 3; // questions, and calls, of a thought that are open at first
const written = new WeakMap(); // what is drawn in a host, as data: the same is not drawn again

/**
 * @param {HTMLElement} host
 * @param {import("./record.js").Recorded} record
 * @param {string} id
 * @param {string | null} opened the question to show opened; others the reader opened stay so while the thought does
 * @param {{ select(id: string): void, close(): void }} page with `questionTools`: what can be done with one
 */
export function drawDetail(host, record, id, opened, page) {
  const node = record.nodes.get(id);
  const [asked, called, noted] = [record.asked.get(id), record.called.get(id), record.noted.get(id)];
  const again = host.dataset.node === id;
  const said = JSON.stringify([node, asked, called, noted, pathTo(record, id)]);
  if (!again || written.get(host) !== said) {
    const before = new Map(again ? [...host.querySelectorAll("details")].map((item) => [item.dataset.id, item.open]) : []);
    const isOpen = (one, index) => before.get(one.id) ?? index < OPENED;
    const [top, focused] = [host.scrollTop, host.contains(document.activeElement) ? document.activeElement : null];
    host.dataset.node = id;
    written.set(host, said);
    host.replaceChildren(
      element("button", { class: "close", on: { click: page.close } }, "Close"),
      breadcrumbs(record, id, page),
      title(record, node),
      ...dropped(node),
      ...(node.kind === "problem" || (node.why && !node.text) ? [] : [element("div", { class: "prose" }, node.text || "—")]),
      brief(record, node),
      ...questions(record, asked, isOpen, page),
      ...calls(record, called, isOpen, page),
      ...fields(node),
      ...notes(noted),
      facts(record, node, page, before.get("facts")),
    );
    host.scrollTop = again ? top : 0;
    if (focused) (host.contains(focused) ? focused : host).focus({ preventScroll: true });
  }
  const wanted = opened && host.querySelector(`details[data-id="${CSS.escape(opened)}"]`);
  if (!wanted || wanted.open) return;
  wanted.open = true;
  if (!again) wanted.scrollIntoView({ block: "nearest" });
}

function title(record, node) {
  return element("h2", {}, mark(node.state), nodeLabel(node), element("small", {}, stateWord(node.state, Boolean(record.page.answer))));
}

function breadcrumbs(record, id, page) {
  const steps = pathTo(record, id);
  const shown = steps.length > 6 ? [steps[0], null, ...steps.slice(-4)] : steps;
  return element(
    "nav",
    { class: "path", "aria-label": "From the problem to this thought" },
    ...shown.map((step) => (step === null ? element("span", {}, "…") : nodeLink(record, step, page, step === id))),
  );
}

function nodeLink(record, id, page, here = false) {
  const listeners = { click: () => page.select(id) };
  const properties = { type: "button", class: "link", "aria-current": here ? "true" : null, on: listeners };
  return element("button", properties, nodeLabel(record.nodes.get(id)));
}

function dropped(node) {
  if (!node.why) return [];
  const code = element("strong", {}, plainName(node.why.code));
  return [element("p", { class: "because", "data-state": node.state }, code, node.why.text ? ` ${node.why.text}` : "")];
}

/** What one asks first of a thought: how good, how long, how dear. */
function brief(record, node) {
  const took = Number.isFinite(node.ended_at_ms) && Number.isFinite(node.begun_at_ms) && duration(node.ended_at_ms - node.begun_at_ms);
  const score = scoreOf(node) && `${scoreName(node).toLowerCase()} ${scoreOf(node)}`;
  const own = costLine(node.cost);
  const below = costLine(costWithBelow(record, node.id));
  return quietLine(dotted([score, took, own]), below !== own && below ? ` (with all below: ${below})` : "");
}

function facts(record, node, page, isOpen = false) {
  const known = (ids) => ids.filter((id) => record.nodes.has(id));
  const links = (ids) => element("span", {}, ...known(ids).map((id) => nodeLink(record, id, page)));
  const took = Number.isFinite(node.ended_at_ms) && Number.isFinite(node.begun_at_ms);
  const rows = [
    ["Kind", node.kind !== "thought" && plainName(node.kind ?? "")],
    ["Stage", node.stage && plainName(node.stage)],
    ["Round", node.round],
    ["Branch", node.branch],
    ["Revises", node.revises && links([node.revises])],
    ["Also from", node.merges?.length > 0 && links(node.merges)],
    ["Time", took && `${duration(node.begun_at_ms)} to ${duration(node.ended_at_ms)}`],
    ["Id", element("code", {}, node.id)],
  ];
  const title = element("summary", { class: "quiet" }, "More facts");
  return element("details", { "data-id": "facts", open: isOpen }, title, pairs(rows.filter(([, value]) => value)));
}

function pairs(rows) {
  const pair = ([name, value]) => [
    element("dt", {}, name),
    element("dd", {}, value instanceof Node ? value : String(value)),
  ];
  return element("dl", { class: "facts" }, ...rows.flatMap(pair));
}

function fields(node) {
  const known = Object.entries(node.data ?? {}).map(([name, value]) => [plainName(name), valueText(value)]).filter(([, text]) => text);
  return known.length ? [element("h3", {}, "Data"), pairs(known)] : [];
}

function notes(found) {
  if (!found.length) return [];
  const item = ({ id, stage, text }) => element("li", {}, element("small", {}, dotted([`Thought ${id.slice(1)}`, plainName(stage ?? "")])), ` ${text}`);
  return [element("h3", {}, "Notes"), element("ul", { class: "notes" }, ...found.map(item))];
}

function calls(record, found, isOpen, page) {
  if (!found.length) return [];
  const items = found.map((call, index) =>
    element(
      "details",
      { class: "question", "data-id": call.id, open: isOpen(call, index) },
      element("summary", {}, callName(call), call.error && element("strong", {}, " failed")),
      element("pre", {}, call.text ?? ""),
      element("h4", {}, "Result"),
      element("pre", {}, call.error?.text ?? call.error ?? call.result ?? "—"),
      ...changes(record, call.id, page),
    ),
  );
  return [element("h3", {}, count(found.length, "call of a tool or verifier", "calls of tools and verifiers")), ...items];
}

function questions(record, found, isOpen, page) {
  if (!found.length) return [];
  const items = found.map((one, index) => questionItem(record, one, isOpen(one, index), page));
  return [element("h3", {}, count(found.length, "question")), ...items];
}
