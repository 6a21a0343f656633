// The answer by its kind: code, verdicts on claims, a list, a few words that stand large, or a text.

import { element } from "./dom.js";

export const LONG = 160; // characters
const SHORT = 24;
const VERDICT = /^(refuted|confirmed|undecided): /;
const ITEM = /^\s*(?:[-*•]|\d{1,3}[.)])\s+/;

export function answerOfKind({ answer, answer_is_code: isCode, nodes = [] }) {
  const lines = answer.trim().split("\n");
  const isAll = (form) => lines.every((line) => form.test(line));
  if (isCode) return element("pre", { class: "answer code", tabindex: "0" }, answer.trim().replace(/^```.*\n|\n```$/g, ""));
  if (isAll(VERDICT) && nodes.some(({ data }) => data?.verdict)) return answerList("ul", lines.map(claimItem), "verdicts");
  if (lines.length > 1 && isAll(ITEM)) return answerList(/^\s*\d/.test(answer) ? "ol" : "ul", lines.map((line) => [{}, line.replace(ITEM, "")]));
  const size = answer.length > LONG ? "answer long" : answer.length <= SHORT && lines.length === 1 ? "answer word" : "answer";
  return element("p", { class: size }, answer);
}

function claimItem(line) {
  const [said, name] = VERDICT.exec(line);
  const mark = { refuted: "×", confirmed: "✓" }[name] ?? "?";
  return [{ class: name }, element("strong", {}, `${mark} ${name} `), line.slice(said.length)];
}

function answerList(tag, items, kind = "") {
  return element(tag, { class: `answer long list ${kind}` }, ...items.map(([properties, ...parts]) => element("li", properties, ...parts)));
}
