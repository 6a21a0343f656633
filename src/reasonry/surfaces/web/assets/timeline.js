// Every question and call as a bar from asked to answered: what ran side by side, what waited for what.

import { byId, element, heading, listen, putInOrder, show } from "./dom.js";
import { nodeLabel } from "./record.js";
import { spendLine } from "./spend_line.js";
import { makeAxis, packLanes } from "./time_axis.js";
import { callName, count, duration, plainName } from "./wording.js";

const drawings = new WeakMap(); // by section
const LANE = 1.5;
const MOST_LANES = 8; // drawn at first; of more, each round is one bar
const FEW_BARS = 4; // fewer are folded
const LEAST_BAR = 0.55; // rem of the middle bar; a long run is drawn wider than its panel and scrolls
const WIDEST = 260;
const OPEN_SHARE = 0.06; // of the run time: how long a question without an answer is drawn beyond the present

/**
 * @param {import("./record.js").Recorded} record
 * @param {{ select(node: string, how: { question: string | null, open: boolean }): void }} page
 */
export function drawTimeline(record, page) {
  const all = spansOf(record);
  if (!all.length) return show(byId("timeline"), []);
  const axis = makeAxis(all);
  const width = Math.min(WIDEST, (axis.busy / middle(all)) * LEAST_BAR);
  const least = (axis.busy * 0.2) / Math.max(40, width);
  const each = packLanes(all, least);
  const parts = keptParts(page);
  const isMany = Math.max(...each) >= MOST_LANES && roundsOf(record).length > 0;
  const spans = isMany && !parts.isOpen ? inRounds(all) : all;
  const lanes = spans === all ? each : packLanes(spans, least);
  parts.toggle = isMany && foldButton(parts, () => drawTimeline(record, page));
  const { room, field, bars } = parts;
  const before = new Map(bars);
  bars.clear();
  for (const [index, span] of spans.entries()) {
    const text = barText(record, span);
    const key = JSON.stringify(text);
    const known = before.get(span.one.id);
    const item = known?.key === key ? known.item : bar(text);
    const start = axis.at(span.from);
    const place = [`min(${percent(start)}, calc(100% - 0.3rem))`, percent(axis.at(span.to) - start), `${lanes[index] * LANE}rem`];
    if (known?.item !== item || String(known.place) !== String(place)) [item.style.left, item.style.width, item.style.top] = place;
    bars.set(span.one.id, { item, key, place });
  }
  const items = [...bars.values()].map(({ item }) => item);
  putInOrder(field, [...bands(record, axis), ...cutMarks(axis), ...items]);
  if (!field.querySelector("[tabindex='0']")) items[0].tabIndex = 0;
  field.style.height = `${(Math.max(...lanes) + 1) * LANE}rem`;
  room.style.minWidth = `${width}rem`;
  putInOrder(room, [ticks(axis), field, ...spendLine(record, axis)]);
  const section = byId("timeline");
  section.hidden = false;
  let drawn = [room.parentElement, barLegend(all, record)];
  if (all.length < FEW_BARS) {
    parts.few ??= element("details", {}, element("summary", { class: "quiet" }, "Show when each was asked"));
    putInOrder(parts.few, [parts.few.firstChild, ...drawn]);
    drawn = [parts.few];
  }
  putInOrder(section, [head(record, all, each, parts.toggle), ...drawn]);
}

/** What stays when the timeline is drawn anew: its field, and the bars that are as they were. */
function keptParts(page) {
  const section = byId("timeline");
  if (!drawings.has(section)) {
    const field = element("div", { class: "bars", role: "group", "aria-label": "Questions by time" });
    const room = element("div", { class: "stretch" });
    element("div", { class: "scroll" }, room);
    listenToBars(field, page);
    drawings.set(section, { room, field, bars: new Map(), isOpen: false });
  }
  return drawings.get(section);
}

function foldButton(parts, redraw) {
  const turn = () => {
    parts.isOpen = !parts.isOpen;
    redraw();
    byId("timeline").querySelector(".head button")?.focus();
  };
  return element("button", { "aria-expanded": String(parts.isOpen), on: { click: turn } }, parts.isOpen ? "A bar for each round" : "A bar for each question");
}

/** What colours mean. */
function barLegend(spans, { nodes }) {
  const states = new Set(spans.map(({ one, status }) => (["failed", "unusable"].includes(status) ? "failed" : nodes.get(one.node)?.state?.replace("on_path", "answer"))));
  const kinds = [["answer", "on the path"], ["dropped", "dropped"], ["failed", "not usable"]].filter(([kind]) => states.has(kind));
  return element("p", { class: "legend" }, ...kinds.map(([kind, word]) => element("span", {}, element("span", { class: "swatch", "data-state": kind }), word)));
}

/** Of each round one bar, from its first question to its last answer; what is of no round stays. */
function inRounds(spans) {
  const rounds = new Map();
  const others = spans.filter((span) => {
    const { round, stage } = span.one;
    if (!Number.isFinite(round)) return true;
    const known = rounds.get(round) ?? { one: { id: `round ${round}`, node: span.one.node, stage, size: 0 }, from: span.from, to: span.to, status: "answered" };
    rounds.set(round, { ...known, one: { ...known.one, size: known.one.size + 1 }, to: Math.max(known.to, span.to), status: span.status === "open" ? "open" : known.status });
    return false;
  });
  return [...rounds.values(), ...others].sort((a, b) => a.from - b.from);
}

function head(record, spans, lanes, toggle) {
  const rounds = roundsOf(record).length;
  const side = Math.max(...lanes) + 1;
  const made = heading(
    "Timeline",
    count(spans.length, "question or call", "questions and calls"),
    rounds > 0 && count(rounds, "round"),
    side > 1 && `up to ${side} side by side`,
  );
  if (toggle) made.append(toggle);
  return made;
}

function ticks(axis) {
  const marks = axis.ticks.map(({ share, ms }) => element("span", { size: { left: percent(share) } }, duration(ms)));
  return element("div", { class: "ticks", "aria-hidden": "true" }, ...marks);
}

function percent(share) {
  return `${share * 100}%`;
}

function spansOf(record) {
  const end = record.page.duration_ms ?? 0;
  const still = Math.max(1, end * OPEN_SHARE);
  const span = (one, from, to, status) => {
    const present = Math.max(end, from) + (status === "open" ? still : 0);
    return { one, from, to: Math.max(from, to ?? present), status };
  };
  const questions = (record.page.questions ?? []).map((one) =>
    span(one, one.begun_at_ms, one.ended_at_ms, one.status),
  );
  const calls = (record.page.calls ?? []).map((one) =>
    span(one, one.begun_at_ms, one.ended_at_ms, one.error ? "failed" : "answered"),
  );
  const timed = [...questions, ...calls].filter(({ from }) => Number.isFinite(from));
  return timed.sort((a, b) => a.from - b.from);
}

function middle(spans) {
  const lengths = spans.map(({ from, to }) => Math.max(1, to - from)).sort((a, b) => a - b);
  return lengths[Math.floor(lengths.length / 2)];
}

/** What a bar says, as data: two that are alike make the same bar. */
function barText(record, { one, from, to, status }) {
  const node = record.nodes.get(one.node);
  const name = one.kind ? callName(one) : plainName(one.stage ?? "");
  const tries = one.tried?.length ?? 0;
  const again = tries && `asked ${tries + 1} times`;
  const took = duration(to - from);
  const whole = one.size && count(one.size, "question");
  const parts = [name, whole || (node && nodeLabel(node)), took, plainName(status ?? ""), again, one.reused && "reused for $0"];
  const said = parts.filter(Boolean).join(", ");
  return {
    class: one.kind ? "span call" : "span",
    "data-id": one.id,
    "data-node": one.node,
    "data-question": one.kind || one.size ? null : one.id,
    "data-size": one.size ?? null,
    "data-status": status,
    "data-state": node?.state,
    "data-tries": tries || null,
    "data-reused": one.reused,
    "aria-label": said,
    title: said,
  };
}

function bar(text) {
  const { "data-status": status, "data-tries": tries, "data-size": size } = text;
  const sign = ["failed", "unusable"].includes(status) ? "!" : tries ? `↻${tries}` : size > 1 ? `×${size}` : null;
  return element("button", { tabindex: "-1", ...text }, sign);
}

/** Questions that waited for the same answers, and so went out side by side. */
function roundsOf(record) {
  const rounds = new Map();
  for (const { round: number, begun_at_ms: from, ended_at_ms: to } of record.page.questions ?? []) {
    if (!Number.isFinite(number)) continue;
    const before = rounds.get(number) ?? { number, from: Infinity, to: -Infinity };
    rounds.set(number, { number, from: Math.min(before.from, from ?? Infinity), to: Math.max(before.to, to ?? -Infinity) });
  }
  return [...rounds.values()].sort((a, b) => a.number - b.number);
}

function bands(record, axis) {
  const timed = roundsOf(record).filter(({ from, to }) => Number.isFinite(from) && Number.isFinite(to));
  return timed.map(({ number, from, to }) => {
    const start = axis.at(from);
    const share = axis.at(to) - start;
    const size = { left: percent(start), width: percent(share) };
    const kind = number % 2 ? "band" : "band even";
    return element("div", { class: kind, "aria-hidden": "true", size }, share > 0.03 && String(number));
  });
}

function cutMarks(axis) {
  const about = (ms) => duration(ms).split(" ", 2).join(" "); // its largest unit
  return axis.cuts.map(({ share, ms }) => element("div", { class: "cut", size: { left: percent(share) } }, about(ms)));
}

function listenToBars(field, page) {
  listen(field, "click", (event) => {
    const { node, question } = event.target.closest("button")?.dataset ?? {};
    if (node) page.select(node, { question: question ?? null, open: true });
  });
  listen(field, "keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    const at = event.target.closest("button");
    if (!step || !at) return;
    const all = [...field.querySelectorAll("button")];
    const next = all[all.indexOf(at) + step];
    if (!next) return;
    event.preventDefault();
    at.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  });
}

/** Marks the bars of one thought. */
export function markBars(id) {
  const field = byId("timeline");
  for (const old of field.querySelectorAll(".chosen")) old.classList.remove("chosen");
  for (const found of field.querySelectorAll(`[data-node="${CSS.escape(id)}"]`)) found.classList.add("chosen");
}
