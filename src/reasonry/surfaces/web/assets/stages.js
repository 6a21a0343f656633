// The strategy's table as arcs beside a list of its stages: leaps ahead on the left, ways back on the right.

import { byId, drawn, element, heading, show } from "./dom.js";
import { plainName } from "./wording.js";

const ROW = 2.7;
const MIDDLE = 4;
const REACH = 3.6;

/**
 * @param {import("./record.js").Recorded} record
 * @param {boolean} isShown the drawing is the same for every run of a strategy: it stands with the view by stages
 */
export function drawStages({ page }, isShown) {
  const stages = isShown ? (page.table ?? []) : [];
  const { visits, walked } = walk(stageRuns(page.path));
  if (!stages.length) return show(byId("stages"), []);
  const rank = new Map(stages.map((stage, index) => [stage.name, index]));
  const edges = stages.flatMap(({ name, next }) => next.map((to) => [name, to]));
  const known = edges.filter(([, to]) => rank.has(to));
  const arcs = known.map(([from, to]) => ({
    from: rank.get(from),
    to: rank.get(to),
    times: walked.get(`${from}\n${to}`) ?? 0,
  }));
  const drawing = drawArcs(stages.length, arcs, (index) => visits.has(stages[index].name));
  const rows = stages.map((stage) => stageRow(stage, visits.get(stage.name) ?? 0, page));
  const seen = stages.filter((stage) => visits.has(stage.name)).length;
  show(byId("stages"), [
    heading("Stages", `${seen} of ${stages.length} visited; solid lines were walked`),
    element("div", { class: "stages" }, drawing, element("ol", {}, ...rows)),
  ]);
}

/**
 * Arcs between rows; solid where they were walked.
 * @param {number} count of rows
 * @param {{ from: number, to: number, times: number }[]} arcs
 * @param {(index: number) => boolean} isWalked
 */
export function drawArcs(count, arcs, isWalked) {
  const lines = [...arcs]
    .sort((a, b) => a.times - b.times)
    .map(({ from, to, times }) => drawn("path", { d: arc(from, to), class: times ? "walked" : "unwalked" }));
  const dots = Array.from({ length: count }, (_, index) => {
    const kind = isWalked(index) ? "walked" : "unwalked";
    return drawn("circle", { cx: MIDDLE, cy: middleOf(index), r: 0.34, class: kind });
  });
  const [width, height] = [2 * MIDDLE, count * ROW];
  const size = { width: `${width}rem`, height: `${height}rem` };
  return drawn("svg", { class: "arcs", viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true", size }, ...lines, ...dots);
}

function stageRow(stage, times, page) {
  return element(
    "li",
    {
      class: times ? "walked" : "unwalked",
      "aria-current": stage.name === page.stage && "step",
      title: stage.description,
    },
    element("span", { class: "text" }, plainName(stage.name), often(times)),
    element("span", { class: "quiet" }, stage.description ?? ""),
  );
}

export function often(times) {
  if (times === 1) return null;
  return element("small", {}, times ? ` × ${times}` : " not visited");
}

/** The stages that were walked, each with how often in a row. */
export function stageRuns(path = []) {
  const rows = [];
  for (const stage of path.filter(Boolean)) {
    if (rows.at(-1)?.stage === stage) rows.at(-1).times += 1;
    else rows.push({ stage, times: 1 });
  }
  return rows;
}

function walk(path) {
  const visits = new Map();
  const walked = new Map();
  const add = (map, key, times) => map.set(key, (map.get(key) ?? 0) + times);
  path.forEach(({ stage, times }, index) => {
    add(visits, stage, times);
    if (times > 1) add(walked, `${stage}\n${stage}`, times - 1);
    if (index) add(walked, `${path[index - 1].stage}\n${stage}`, 1);
  });
  return { visits, walked };
}

function middleOf(index) {
  return (index + 0.5) * ROW;
}

function arc(from, to) {
  const [y1, y2] = [middleOf(from), middleOf(to)];
  if (from === to) return `M${MIDDLE} ${y1 - 0.3}c1.7 -1 1.7 1.6 0 0.6`;
  if (to === from + 1) return `M${MIDDLE} ${y1}V${y2}`;
  const side = to > from ? -1 : 1;
  const reach = MIDDLE + side * Math.min(REACH, 1 + 0.55 * Math.abs(to - from)) * 1.25;
  return `M${MIDDLE} ${y1}C${reach} ${y1} ${reach} ${y2} ${MIDDLE} ${y2}`;
}
