// Why the answer is what it is, in a line: the vote, the path with its scores, the verdict, what came second.

import { byId, element, show } from "./dom.js";
import { nodeLabel } from "./record.js";
import { votesOf } from "./votes.js";
import { count, firstLine, isAnswered, scoreOf } from "./wording.js";

const STEP_CHARACTERS = 36;
const SENTENCE_CHARACTERS = 180;
const MOST_STEPS = 4;
const MOST_CALLS = 3;

/**
 * @param {import("./record.js").Recorded} record
 * @param {{ select(id: string): void }} page
 */
export function drawWhy(record, page) {
  const { kind, status, outcome, termination } = record.page;
  if (kind !== "run" || status === "active") return show(byId("why"), []);
  const found = votesOf(record.page).length ? ofVotes(record.page) : [pathSteps(record, page), ...verdictWords(record), ...runnerUp(record, page)];
  const plans = ofPlans(record, page);
  const parts = [...found, ...(plans.length ? plans : ofTools(record)), isAnswered(outcome) && termination?.detail].filter(Boolean);
  show(byId("why"), parts.length ? [element("strong", {}, isAnswered(outcome) ? "Why" : "So far"), ...parts.map((part) => element("span", {}, part))] : []);
}

function ofVotes({ votes, samples_saved: spared, confidence }) {
  const cast = votes.reduce((sum, vote) => sum + vote.count, 0);
  const first = votes.find(({ leads }) => leads) ?? votes[0];
  const next = votes.find((vote) => vote !== first);
  return [
    `${clipTo(first.answer, STEP_CHARACTERS)}: ${first.count} of ${count(cast, "vote")}`,
    next && `second: ${clipTo(next.answer, STEP_CHARACTERS)} (${next.count})`,
    spared > 0 && `stopped early${Number.isFinite(confidence) ? `, ${Math.round(100 * confidence)} % sure` : ""}`,
  ];
}

/** The steps of a tree that led to the answer; of a chain the outline says as much. */
function pathSteps(record, page) {
  const steps = record.order.map((id) => record.nodes.get(id)).filter(({ state, kind }) => kind === "thought" && ["answer", "on_path"].includes(state));
  const forks = [...record.children.values()].some((below) => below.length > 1);
  if (!forks || !steps.length) return null;
  const shown = steps.length > MOST_STEPS ? [steps[0], null, ...steps.slice(1 - MOST_STEPS)] : steps;
  const parts = shown.flatMap((node, index) => [index > 0 && " → ", node ? stepLink(node, page) : "…"]);
  return element("span", {}, ...parts.filter(Boolean));
}

function stepLink(node, page) {
  const score = scoreOf(node) && ` (${scoreOf(node)})`;
  const text = clipTo(firstLine(node.text).replace(/ \(left: [^)]*\)$/, ""), STEP_CHARACTERS);
  return element("button", { class: "link", on: { click: () => page.select(node.id) } }, (text || nodeLabel(node)) + score);
}

/** What a verifier said of the answer. */
function verdictWords(record) {
  const answer = [...record.nodes.values()].find(({ state }) => state === "answer");
  const said = record.called.get(answer?.id)?.findLast(({ kind }) => kind === "verifier")?.result;
  const proved = /^right: (?:it arrives: )?/;
  return said ? [`${proved.test(said) ? "verified" : "checked"}: ${clipTo(firstLine(said.replace(proved, "")), STEP_CHARACTERS * 2)}`] : [];
}

/** The best of those that were not taken. */
function runnerUp(record, page) {
  const others = [...record.nodes.values()].filter(({ kind, state, score }) => kind === "thought" && state === "dropped" && score > 0);
  const best = others.sort((a, b) => b.score - a.score)[0];
  if (!best) return [];
  const link = element("button", { class: "link", title: firstLine(best.text), on: { click: () => page.select(best.id) } }, nodeLabel(best));
  return [element("span", {}, "second: ", link, ` (${scoreOf(best)})`)];
}

function ofPlans(record, page) {
  const nodes = [...record.nodes.values()];
  const plan = nodes.findLast(({ kind, state }) => kind === "plan" && state === "on_path");
  const tasks = nodes.filter(({ kind }) => kind === "task");
  if (!plan && !tasks.length) return [];
  const accepted = tasks.filter(({ state }) => state !== "dropped").length;
  const chosen = plan && element("button", { class: "link", on: { click: () => page.select(plan.id) } }, `${nodeLabel(plan)} (${scoreOf(plan)})`);
  const said = (record.page.outline ?? []).findLast(({ kind, text }) => kind === "prose" && text && text !== record.page.answer)?.text;
  return [chosen, tasks.length > 0 && `${accepted} of ${count(tasks.length, "task")} accepted`, said && clipTo(firstLine(said), SENTENCE_CHARACTERS)];
}

/** What tools said that the answer was made from. */
function ofTools({ page }) {
  const used = (page.calls ?? []).filter(({ kind, result, error }) => kind === "tool" && result && !error);
  return used.slice(-MOST_CALLS).map(({ name, result }) => `${name}: ${clipTo(firstLine(result), STEP_CHARACTERS)}`);
}

function clipTo(text, most) {
  const said = text ?? "";
  return said.length > most ? `${said.slice(0, most - 1)}…` : said;
}
