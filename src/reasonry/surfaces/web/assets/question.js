// One question as a talk: sent, received, failed between, and its cost.

import { copyButton, element, listen, quietLine } from "./dom.js";
import { nodeLabel, promptOf } from "./record.js";
import { costLine, count, dotted, duration, firstLine, isDraft, modelName, plainName, scoreOf, valueText } from "./wording.js";

/** Its texts are put in when it is open: a thought may have hundreds of questions. */
export function questionItem(record, question, open, page) {
  const body = element("div", { class: "talk" });
  const item = element("details", { class: "question", "data-id": question.id, open }, summary(record, question), body);
  const write = () => item.open && !body.firstChild && body.append(...turns(record, question), ...changes(record, question.id, page), ...(page.questionTools?.(question) ?? []));
  listen(item, "toggle", write);
  write();
  return item;
}

function summary(record, question) {
  const took = Number.isFinite(question.ended_at_ms) && question.ended_at_ms - question.begun_at_ms;
  const said = [
    plainName(question.stage ?? ""),
    question.sample > 0 && !isDraft(record.nodes.get(question.node)) && `sample ${question.sample + 1}`,
    Number.isFinite(took) && took !== false && duration(took),
    question.reworded && "in other words",
    question.reused && "reused, $0",
    question.tried?.length > 0 && `asked ${question.tried.length + 1} times`,
  ];
  const status = question.status === "answered" ? null : element("strong", {}, plainName(question.status));
  return element("summary", {}, dotted(said), status && " ", status);
}

function turns(record, question) {
  const prompt = promptOf(record, question);
  const told = dotted([costLine(question.cost), question.read && `read as ${question.read}`]);
  const model = modelName(question.model);
  const hasReply = question.reply !== null && question.reply !== undefined;
  return [
    ...(prompt ? [turn("sent", "Question", [ownText(record, question)], copyButton(prompt, "the prompt")), wholeText("The whole prompt", prompt)] : []),
    ...(question.tried ?? []).map((text, index) => turn("failed", `Try ${index + 1}, not usable`, [text])),
    ...(question.error ? [turn("failed", `Error ${question.error.code ?? ""}`, [question.error.text ?? ""])] : []),
    ...(hasReply ? [turn("received", model ? `Reply of ${model}` : "Reply", replyParts(question.reply)), wholeText("Raw reply", question.reply)] : []),
    ...(told ? [quietLine(told)] : []),
  ];
}

/** What came of a question or call, on demand: the thoughts that were recorded for it. */
export function changes(record, id, page) {
  const found = record.came.get(id) ?? [];
  if (!found.length) return [];
  const items = found.map((one) => {
    const name = one.node ? plainName(one.stage ?? "") : nodeLabel(one);
    const open = element("button", { class: "link", on: { click: () => page.select(one.node ?? one.id) } }, name);
    return element("li", {}, open, ` ${firstLine(one.text) || "—"}`, scoreOf(one) && element("small", {}, ` ${scoreOf(one)}`));
  });
  const words = element("summary", { class: "quiet" }, `Changes: ${count(found.length, "thought")}`);
  return [element("details", { class: "changed", "data-id": `changed ${id}` }, words, element("ul", { class: "notes" }, ...items))];
}

/** What no earlier question asked, without the problem; else the end, which says what to do. */
function ownText({ page }, { id, prompt }) {
  const before = page.questions.slice(0, page.questions.findIndex((one) => one.id === id));
  const earlier = new Set(before.flatMap((one) => one.prompt ?? []));
  const own = before.length ? prompt.filter((place) => !earlier.has(place) && page.texts[place] !== page.problem) : [];
  return (own.length ? own : prompt.slice(-1)).map((place) => page.texts[place]).join("\n\n");
}

/** A reply as its fields; of a text, the marked answer stands out. */
function replyParts(reply) {
  if (!/^\s*\{[^]*\}\s*$/.test(reply)) return reply.split(/<\/?answer>/).map((part, index) => (index === 1 ? element("strong", {}, part) : part));
  try {
    return Object.entries(JSON.parse(reply)).filter(([, value]) => valueText(value) !== "").map(([name, value]) => {
      const list = Array.isArray(value) && value.length > 1 && element("ol", {}, ...value.map((one) => element("li", {}, valueText(one))));
      return element("div", {}, element("small", {}, `${plainName(name)} `), list || element(name === "answer" ? "strong" : "span", {}, valueText(value)));
    });
  } catch {
    return [reply];
  }
}

function wholeText(title, text) {
  return element("details", { class: "whole", "data-id": title }, element("summary", { class: "quiet" }, title), element("pre", { tabindex: "0", "aria-label": title }, text));
}

/** @param {"sent" | "received" | "failed"} kind */
function turn(kind, title, parts, tool) {
  return element("div", { class: `turn ${kind}` }, element("h4", {}, title, " ", tool), element("div", { class: "saying", tabindex: "0", "aria-label": title }, ...parts));
}
