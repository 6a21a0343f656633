// A comparison: how the strategies stand, what accuracy costs, and the table of problems × strategies as it fills.

import { drawn, element, heading, quietLine, table } from "./dom.js";
import { dotted, modelName } from "./wording.js";

const ROW_FILTERS = {
  all: ["All", () => true],
  differ: ["They differ", (trials) => new Set(trials.map(({ right }) => right === true)).size > 1],
  wrong: ["All wrong", (trials, isFull) => isFull && trials.every(({ right }) => right !== true)],
  failed: ["Failed", (trials) => trials.some(({ answer }) => answer === null)],
};
const STANDING_HEADS = ["Strategy", "Right", "Accuracy", "95 % interval", "Any", "Calls", "Rounds", "Tokens", "$", "Seconds", "Frontier"];
const STANDING_NOTES =
  "Accuracy has its 95 % interval (Wilson). Strategies are told apart by the problems that only one of them solved (sign test, 5 %). A run without an answer, and an answer that could not be judged, count as wrong. " +
  "Any also counts problems for which another candidate or vote was right. Calls, rounds, tokens, dollars and seconds are means " +
  "per run. The frontier has the strategies that no other beats in both accuracy and cost.";
const [PLOT_WIDTH, PLOT_HEIGHT, PLOT_LEFT, PLOT_BOTTOM] = [560, 240, 44, 34];
const SHOWN_CHARS = 90;

/**
 * @param {HTMLElement} host
 * @param {{ open?(runId: string): void, filter?: string, onFilter?(name: string): void }} acts a page that is a file opens no run
 */
export function makeComparison(host, { open, filter = "all", onFilter = () => {} }) {
  let last = null;
  let chosen = filter in ROW_FILTERS ? filter : "all";

  function update(comparison) {
    last = comparison;
    const { strategies, findings } = comparison;
    host.replaceChildren(
      element("h1", {}, `${comparison.dataset} × ${comparison.compared.join(", ")}`),
      quietLine(factsOf(comparison)),
      element("section", { class: "standings" }, heading("Standings"), element("div", { class: "scroll" }, standingTable(strategies)), ...findings.map((finding) => element("p", {}, `${finding}.`)), element("details", {}, element("summary", { class: "quiet" }, "The columns"), quietLine(STANDING_NOTES))),
      element("section", {}, heading("Accuracy and cost"), element("div", { class: "plots" }, ...costPlots(strategies))),
      element("section", {}, heading("Problem by problem"), filterButtons(comparison), problemTable(comparison)),
    );
  }

  function show(name) {
    chosen = name in ROW_FILTERS ? name : "all";
    if (last) update(last);
  }

  function filterButtons(comparison) {
    const rows = rowsOf(comparison);
    const buttons = Object.entries(ROW_FILTERS).map(([name, [words, isShown]]) => {
      const number = rows.filter(({ trials, isFull }) => isShown(trials, isFull)).length;
      const act = () => (show(name), onFilter(name));
      return element("button", { "aria-pressed": String(name === chosen), on: { click: act } }, `${words} ${number}`);
    });
    return element("div", { class: "choice", role: "group", "aria-label": "Problems shown" }, ...buttons);
  }

  function problemTable(comparison) {
    const names = comparison.compared;
    const [, isShown] = ROW_FILTERS[chosen];
    const rows = rowsOf(comparison).filter(({ trials, isFull }) => isShown(trials, isFull));
    if (!rows.length) return quietLine("No problem matches.");
    const heads = ["Problem", "Right answer", ...names];
    const body = rows.map(({ item, cells }) => [
      element("details", {}, element("summary", { title: item.id }, short(item.problem)), element("div", { class: "whole" }, item.problem)),
      short(String(item.answer ?? "–")),
      ...names.map((name) => placeOf(cells.get(name))),
    ]);
    const made = table("", heads, body);
    made.caption.remove();
    made.className = "problems";
    return element("div", { class: "scroll" }, made);
  }

  /** One strategy on one problem. */
  function placeOf(cell) {
    const { trial, running } = cell ?? {};
    const id = trial?.run_id ?? running?.run_id;
    const words = trial ? trialWords(trial) : running ? "… at work" : "–";
    const properties = { class: "place", "data-right": trial ? String(trial.right) : "none", title: trial && costWords(trial) };
    return open && id ? element("button", { ...properties, on: { click: () => open(id) } }, words) : element("span", properties, words);
  }

  return { update, show };
}

/** The rows of the table: a problem, and what there is of each strategy. */
function rowsOf({ items, trials, running = [], compared }) {
  const rows = new Map(items.map((item) => [String(item.id), { item, cells: new Map(), trials: [], isFull: false }]));
  const cellOf = ({ item, strategy }) => {
    const { cells } = rows.get(item);
    if (!cells.has(strategy)) cells.set(strategy, { trial: null, running: null });
    return cells.get(strategy);
  };
  for (const run of running) cellOf(run).running = run;
  for (const trial of trials) {
    cellOf(trial).trial = trial;
    rows.get(trial.item).trials.push(trial);
  }
  for (const row of rows.values()) row.isFull = row.trials.length === compared.length;
  return [...rows.values()];
}

function trialWords({ right, any_right: found, answer, why }) {
  const sign = right === null ? "?" : right ? "✓" : "✗";
  const more = found && !right ? " (found, not given)" : "";
  return `${sign} ${answer === null ? `no answer: ${short(why)}` : short(answer)}${more}`;
}

function costWords({ run_id: id, calls, rounds, seconds }) {
  return dotted([`run ${id}`, `${calls} calls`, `${rounds} rounds`, `${seconds.toFixed(2)} s`]);
}

function standingTable(rows) {
  const body = rows.map((row) => [
    row.strategy,
    `${row.right} of ${row.runs}${row.unjudged ? ` (${row.unjudged} not judged)` : ""}`,
    share(row.accuracy),
    `${share(row.low)} – ${share(row.high)}`,
    row.any_accuracy === null ? "–" : share(row.any_accuracy),
    row.calls.toFixed(1),
    row.rounds.toFixed(1),
    Math.round(row.tokens).toLocaleString("en"),
    row.usd === null ? "unknown" : row.usd.toFixed(4),
    row.seconds === null ? "–" : row.seconds.toFixed(2),
    row.front ? "★" : "",
  ]);
  const made = table("", STANDING_HEADS, body);
  made.caption.remove();
  return made;
}

function factsOf({ model, judge, verifier, runs, budget, at, reasonry }) {
  const limits = Object.entries(budget ?? {}).filter(([, limit]) => limit !== null);
  const equal = limits.length ? `each run at most ${limits.map(([name, limit]) => `${limit} ${name}`).join(", ")}` : "no limit on a run";
  return dotted([`model ${modelName(model)}`, `judge ${judge}`, verifier && `verifier ${verifier}`, `${runs.there} of ${runs.wanted} runs`, equal, new Date(at).toLocaleString(), `reasonry ${reasonry}`]);
}

/** Accuracy over dollars, where all prices are known, and over calls. */
function costPlots(rows) {
  const axes = [["calls", "calls a run"]];
  if (rows.some(({ usd }) => usd > 0) && rows.every(({ usd }) => usd !== null)) axes.unshift(["usd", "dollars a run"]);
  return axes.map(([cost, axis], index) => costPlot(rows, cost, axis, index === 0));
}

function costPlot(rows, cost, axis, hasFront) {
  const most = Math.max(...rows.map((row) => row[cost]), 0) || 1;
  const x = (value) => PLOT_LEFT + ((PLOT_WIDTH - PLOT_LEFT - 16) * value) / most;
  const y = (value) => 20 + (PLOT_HEIGHT - 20 - PLOT_BOTTOM) * (1 - value);
  const words = (text, at, anchor = "start") => drawn("text", { x: at[0], y: at[1], "text-anchor": anchor }, text);
  const grid = [0, 0.25, 0.5, 0.75, 1].flatMap((value) => [
    drawn("line", { class: "grid", x1: PLOT_LEFT, x2: PLOT_WIDTH - 16, y1: y(value), y2: y(value) }),
    words(share(value), [PLOT_LEFT - 6, y(value) + 4], "end"),
  ]);
  // A name stands on the side of its point that has room; of points that lie close, under the name of the one before, or
  // above it where there is no room below.
  const sorted = [...rows].sort((a, b) => a[cost] - b[cost]);
  const isClose = (a, b) => Math.abs(x(a[cost]) - x(b[cost])) < 180 && Math.abs(y(a.accuracy) - y(b.accuracy)) < 14;
  const names = sorted.map((row, index) => {
    const isOnLeft = row[cost] > most / 2;
    const before = sorted.slice(0, index).filter((other) => isClose(row, other)).length;
    const place = [x(row[cost]) + (isOnLeft ? -8 : 8), y(row.accuracy) - 6 + (row.accuracy < 0.5 ? -14 : 14) * before];
    return words(row.strategy, place, isOnLeft ? "end" : "start");
  });
  const front = sorted.filter((row) => hasFront && row.front);
  const marks = rows.flatMap((row) => [
    drawn("line", { class: "interval", x1: x(row[cost]), x2: x(row[cost]), y1: y(row.low), y2: y(row.high) }),
    drawn("circle", { cx: x(row[cost]), cy: y(row.accuracy), r: 5 }),
  ]);
  const line = drawn("polyline", { class: "front", points: front.map((row) => `${x(row[cost])},${y(row.accuracy)}`).join(" ") });
  const ends = [words("0", [PLOT_LEFT, PLOT_HEIGHT - 18], "middle"), words(most.toPrecision(2), [x(most), PLOT_HEIGHT - 18], "middle")];
  const title = words(axis, [(PLOT_LEFT + x(most)) / 2, PLOT_HEIGHT - 4], "middle");
  return drawn("svg", { class: "cost", viewBox: `0 0 ${PLOT_WIDTH} ${PLOT_HEIGHT}`, role: "img", "aria-label": `Accuracy over ${axis}` }, ...grid, line, ...marks, ...names, ...ends, title);
}

function share(part) {
  return `${Math.round(100 * part)} %`;
}

function short(text) {
  const line = text.trim().replaceAll(/\s+/g, " ");
  return line.length <= SHOWN_CHARS ? line : `${line.slice(0, SHOWN_CHARS - 1)}…`;
}
