// One question: what was sent, what came back, at what cost.

import { copyButton, element, listen, quietLine } from "./dom.js";
import { promptOf } from "./record.js";
import { costLine, dotted, duration, modelName, plainName } from "./wording.js";

/** Its texts are put in when it is opened: a thought may have hundreds of questions. */
export function questionItem(record, question, open, page) {
  const body = element("div", {});
  const item = element("details", { class: "question", "data-id": question.id, open }, summary(question), body);
  const write = () => item.open && !body.firstChild && body.append(...texts(record, question), ...(page.questionTools?.(question) ?? []));
  listen(item, "toggle", write);
  write();
  return item;
}

function summary(question) {
  const took = Number.isFinite(question.answered_at_ms) && question.answered_at_ms - question.asked_at_ms;
  const said = [
    plainName(question.stage ?? ""),
    question.sample > 0 && `sample ${question.sample + 1}`,
    Number.isFinite(took) && took !== false && duration(took),
    question.reworded && "in other words",
    question.reused && "taken over, $0",
    question.tries?.length > 0 && `asked ${question.tries.length + 1} times`,
  ];
  const status = question.status === "answered" ? null : element("strong", {}, plainName(question.status));
  return element("summary", {}, dotted(said), status && " ", status);
}

function texts(record, question) {
  const prompt = promptOf(record, question);
  const told = [modelName(question.model), costLine(question.cost), question.read && `read as ${question.read}`].filter(Boolean);
  const part = (title, text) => [
    element("h4", {}, title, " ", copyButton(text, title.toLowerCase())),
    element("pre", {}, text),
  ];
  return [
    quietLine(told.join(" · ")),
    ...(prompt ? part("Prompt", prompt) : []),
    ...(question.tries ?? []).flatMap((text, index) => part(`Try ${index + 1}, not usable`, text)),
    ...(question.error ? part(`Error ${question.error.code ?? ""}`, question.error.text ?? "") : []),
    ...(question.reply === null || question.reply === undefined ? [] : part("Reply", question.reply)),
  ];
}
