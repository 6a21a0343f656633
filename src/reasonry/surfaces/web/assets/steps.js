// The run with like folded into one: each stage once, with how much of what it asked has come in; loops as arcs.

import { element } from "./dom.js";
import { drawArcs, stageRuns, often } from "./stages.js";
import { costLine, count, dotted, duration, plainName, STATE_ORDER, stateWord } from "./wording.js";

/**
 * @param {HTMLElement} host
 * @param {import("./record.js").Recorded} record
 * @param {{ search(words: string): void }} page
 */
export function drawSteps(host, record, page) {
  const steps = stepsOf(record);
  const names = [...steps.keys()];
  const rank = new Map(names.map((name, index) => [name, index]));
  const arcs = [...walked(stageRuns(record.page.path), rank)].map(([key, times]) => {
    const [from, to] = key.split("\n");
    return { from: rank.get(from), to: rank.get(to), times };
  });
  const drawing = drawArcs(names.length, arcs, () => true);
  const rows = names.map((name) => stepRow(name, steps.get(name), record, page));
  host.replaceChildren(element("div", { class: "stages" }, drawing, element("ol", {}, ...rows)));
}

/** What each stage did, in the order walked: its questions and calls, the thoughts that came of it. */
function stepsOf({ page, nodes }) {
  const steps = new Map();
  const at = (name) => {
    if (!steps.has(name)) steps.set(name, { visits: 0, asked: 0, settled: 0, nodes: [], cost: { calls: 0, tokens: 0, usd: 0 }, ms: 0 });
    return steps.get(name);
  };
  for (const stage of (page.path ?? []).filter(Boolean)) at(stage).visits += 1;
  const take = (stage, from, to, isOpen) => {
    const step = at(stage);
    step.asked += 1;
    step.settled += isOpen ? 0 : 1;
    if (Number.isFinite(from) && Number.isFinite(to)) step.ms += to - from;
    return step;
  };
  for (const one of page.questions ?? []) {
    const { cost } = take(one.stage, one.begun_at_ms, one.ended_at_ms, one.status === "open");
    for (const name of Object.keys(cost)) cost[name] += one.cost?.[name] ?? 0;
  }
  for (const one of page.calls ?? []) take(one.stage, one.begun_at_ms, one.ended_at_ms, !one.error && one.ended_at_ms === null);
  for (const node of nodes.values()) if (node.kind !== "problem" && node.stage) at(node.stage).nodes.push(node);
  for (const [name, step] of steps) {
    const isHere = page.status === "active" && name === page.stage;
    if (!step.asked && !step.nodes.length && !isHere) steps.delete(name);
  }
  return steps;
}

/** How often each way from one step to the next was taken; stages that did nothing are passed over. */
function walked(path, rank) {
  const found = new Map();
  let last = null;
  const go = (from, to, times) => found.set(`${from}\n${to}`, (found.get(`${from}\n${to}`) ?? 0) + times);
  for (const { stage, times } of path) {
    if (!rank.has(stage)) continue;
    if (last !== null) go(last, stage, 1);
    if (times > 1) go(stage, stage, times - 1);
    last = stage;
  }
  return found;
}

function stepRow(name, step, { page }, { search }) {
  const isHere = page.status === "active" && page.stage === name;
  const counter = step.asked > 0 && `${step.settled}/${step.asked}`;
  const said = [step.nodes.length > 0 && count(step.nodes.length, "thought"), costLine(step.cost), step.ms > 0 && duration(step.ms)];
  const label = element(
    "button",
    { class: "link text", title: "Show its questions and thoughts", on: { click: () => search(`stage:${name}`) } },
    plainName(name),
    step.visits > 1 && often(step.visits),
  );
  return element(
    "li",
    { class: "walked step", "aria-current": isHere && "step" },
    element("span", {}, label, counter && element("span", { class: step.settled < step.asked ? "counter partly" : "counter" }, counter)),
    element("span", { class: "quiet" }, dotted(said) || "—"),
    step.nodes.length > 0 && shares(step.nodes),
  );
}

/** What became of the thoughts, as shares of a bar. */
function shares(nodes) {
  const counts = STATE_ORDER.map((state) => [state, nodes.filter((node) => node.state === state).length]);
  const known = counts.filter(([, number]) => number);
  const said = known.map(([state, number]) => `${number} ${stateWord(state)}`).join(", ");
  const parts = known.map(([state, number]) => element("span", { "data-state": state, size: { flexGrow: number } }));
  return element("span", { class: "shares", role: "img", "aria-label": said, title: said }, ...parts);
}
