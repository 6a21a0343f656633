// One question as a talk: what was sent, what came back, what went wrong between, at what cost.

import { copyButton, element, listen, quietLine } from "./dom.js";
import { nodeLabel, promptOf } from "./record.js";
import { costLine, count, dotted, duration, firstLine, modelName, plainName, scoreOf } from "./wording.js";

/** Its texts are put in when it is open: a thought may have hundreds of questions. */
export function questionItem(record, question, open, page) {
  const body = element("div", { class: "talk" });
  const item = element("details", { class: "question", "data-id": question.id, open }, summary(question), body);
  const write = () => item.open && !body.firstChild && body.append(...turns(record, question), ...changes(record, question.id, page), ...(page.questionTools?.(question) ?? []));
  listen(item, "toggle", write);
  write();
  return item;
}

function summary(question) {
  const took = Number.isFinite(question.ended_at_ms) && question.ended_at_ms - question.begun_at_ms;
  const said = [
    plainName(question.stage ?? ""),
    question.sample > 0 && `sample ${question.sample + 1}`,
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
    ...(prompt ? [turn("sent", "Prompt", prompt, copyButton(prompt, "the prompt"))] : []),
    ...(question.tried ?? []).map((text, index) => turn("failed", `Try ${index + 1}, not usable`, text)),
    ...(question.error ? [turn("failed", `Error ${question.error.code ?? ""}`, question.error.text ?? "")] : []),
    ...(hasReply ? [turn("received", model ? `Reply of ${model}` : "Reply", question.reply)] : []),
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

/** @param {"sent" | "received" | "failed"} kind */
function turn(kind, title, text, ...tools) {
  return element("div", { class: `turn ${kind}` }, element("h4", {}, title, " ", ...tools), element("pre", { tabindex: "0", "aria-label": title }, text));
}
