// A fork: a run begun anew from a question of another, with what is to be different.

import { element, listen, quietLine } from "../dom.js";
import { nodeLabel, promptOf } from "../record.js";
import { count, costLine, firstLine, modelName, plainName } from "../wording.js";
import { makeDialog, row } from "./dialog_parts.js";
import { changedLimits, limitFields } from "./limits_dialog.js";

/**
 * @param {{ api: import("./api.js").api, path: string, onNavigate(path: string): void }} run
 */
export function makeForkDialog({ api, path, onNavigate }) {
  let dialog = null;

  /** Opens it at a thought's first question, or at the one that is named. */
  async function open(page, nodeId, questionId = null) {
    const node = page.nodes.find(({ id }) => id === nodeId);
    const asked = page.questions.filter((question) => question.node === nodeId && question.status !== "open");
    if (!node || !asked.length) return;
    const [run, { models = [] }, { strategies = [] }] = await Promise.all(
      [path, "/models", "/strategies"].map((part) => api.get(part).catch(() => ({}))),
    );
    const key = api.newKey(); // pressed twice, it is one fork
    const choice = select(
      "fork-question",
      asked.map((one) => [one.id, `${plainName(one.stage)}${one.sample ? `, sample ${one.sample + 1}` : ""} (${one.id})`]),
      questionId ?? asked[0].id,
    );
    const prompt = element("textarea", { id: "fork-prompt", rows: "9", spellcheck: "false" });
    const kept = element("p", { class: "kept" });
    const model = select("fork-model", [["", `as it was: ${modelName(page.model)}`], ...models.map(({ name }) => [name, modelName(name)])], "");
    const strategy = strategies.find(({ name }) => name === page.strategy);
    const options = optionFields(strategy?.options ?? {}, run.options ?? {});
    const limits = limitFields(page);
    const show = () => {
      const question = asked.find(({ id }) => id === choice.value);
      prompt.value = promptOf({ page }, question);
      prompt.defaultValue = prompt.value;
      kept.textContent = keptWords(page, question);
    };
    listen(choice, "change", show);
    show();
    const fold = (title, rows) =>
      rows.length ? element("details", {}, element("summary", {}, title), ...rows) : null;
    const parts = [
      quietLine(`${nodeLabel(node)}: ${firstLine(node.text).slice(0, 120)}`),
      asked.length > 1 && row(label(choice, "Ask again from"), choice),
      kept,
      row(label(prompt, "The question"), prompt, "If you change this prompt, the fork asks it instead."),
      row(label(model, "Model"), model),
      fold("Options", options.map(({ input, name, about }) => row(label(input, plainName(name)), input, about))),
      fold("Limits", [
        quietLine("Calls, tokens and dollars count from zero; seconds, thoughts and nodes count what is reused."),
        ...[...limits.values()].map((one) => row(one.label, one.input)),
      ]),
    ];
    dialog?.remove();
    dialog = makeDialog(
      "Fork",
      parts.filter(Boolean),
      "Start the fork",
      async () => {
        const body = { at: choice.value };
        if (prompt.value !== prompt.defaultValue) body.prompt = prompt.value;
        if (model.value) body.model = model.value;
        const changed = Object.fromEntries(options.filter(isChanged).map((one) => [one.name, one.read()]));
        if (Object.keys(changed).length) body.options = changed;
        const budget = changedLimits(limits);
        if (Object.keys(budget).length) body.budget = budget;
        const made = await api.post(`${path}/fork`, body, { key });
        onNavigate(`/runs/${made.run_id}`);
      },
      api.say,
    );
    document.body.append(dialog);
    listen(dialog, "close", () => dialog.remove());
    dialog.showModal();
  }

  return { open, close: () => dialog?.remove() };
}

/** What was answered before a question was asked is reused. */
function keptWords(page, question) {
  const before = page.questions.filter(
    (one) => one.id !== question.id && one.ended_at_ms !== null && one.ended_at_ms <= question.begun_at_ms,
  );
  if (!before.length) return "It begins at the first question: nothing is reused.";
  const sum = { calls: 0, tokens: 0, usd: 0 };
  for (const { cost } of before) for (const name of Object.keys(sum)) sum[name] += cost?.[name] ?? 0;
  return `${count(before.length, "answer is", "answers are")} reused and cost $0 (${costLine(sum) || "nothing"} the first time).`;
}

function label(field, words) {
  return element("label", { for: field.id }, words);
}

function select(id, choices, chosen) {
  const made = element("select", { id }, ...choices.map(([value, words]) => element("option", { value }, words)));
  made.value = chosen;
  return made;
}

/** A field for each option that is a number, a word or a choice, with what the run has. */
function optionFields(schema, values) {
  const fields = [];
  for (const [name, about] of Object.entries(schema.properties ?? schema)) {
    const value = values[name] ?? about.default ?? "";
    if (typeof value === "object" && value !== null) continue;
    const id = `fork-option-${name}`;
    const kind = typeof (values[name] ?? about.default);
    let input;
    if (kind === "boolean") input = select(id, [["true", "yes"], ["false", "no"]], String(value));
    else if (about.enum ?? about.choices) input = select(id, (about.enum ?? about.choices).map((one) => [String(one), String(one)]), String(value));
    else input = element("input", { id, value: String(value), type: kind === "number" ? "number" : "text", step: "any" });
    fields.push({
      name,
      input,
      about: about.description ?? "",
      before: input.value,
      read: () => (kind === "boolean" ? input.value === "true" : kind === "number" ? Number(input.value) : input.value),
    });
  }
  return fields;
}

function isChanged({ input, before }) {
  return input.value !== before;
}
