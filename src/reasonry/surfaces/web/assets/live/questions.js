// What a coached run asks of the reader: each question with a field for its answer, refused answers with the reason.

import { element, listen } from "../dom.js";
import { plainName } from "../wording.js";
import { makeAnswerForm } from "./answer_form.js";
import { api } from "./api.js";

/**
 * @param {string} runId
 * @param {boolean} isNew whether the reader has just started it, and continues at its first question
 */
export function makeQuestions(runId, isNew) {
  const path = `/runs/${encodeURIComponent(runId)}`;
  const panel = element("section", { class: "asked", "aria-label": "Questions to you", hidden: true });
  const items = new Map(); // by question: what was typed stays
  let control = new AbortController();
  let known = "";
  let problem = "";

  /** Follows the run's record: when its open questions change, they are asked for with the form of their answers. */
  function update(page) {
    const open = page.mode === "coached" && page.status === "active" ? (page.questions ?? []).filter(({ status }) => status === "open") : [];
    const now = open.map(({ id }) => id).join(" ");
    if (now === known) return;
    known = now;
    problem = page.problem ?? "";
    if (open.length) void look();
    else draw([]);
  }

  async function look() {
    control.abort();
    const mine = (control = new AbortController());
    try {
      const { questions } = await api.get(path, { signal: mine.signal });
      if (!mine.signal.aborted) draw(questions ?? []);
    } catch (error) {
      if (mine.signal.aborted) return;
      known = "";
      if (error.status) panel.replaceChildren(element("p", { class: "wrong", role: "alert" }, api.say(error)));
    }
  }

  function draw(all) {
    // Of samples that ask the same, one at a time is answered.
    const questions = all.filter(({ prompt }, index) => all.findIndex((one) => one.prompt === prompt) === index);
    const alike = ({ prompt }) => all.filter((one) => one.prompt === prompt).length;
    const wanted = new Set(questions.map(({ id }) => id));
    for (const id of items.keys()) if (!wanted.has(id)) items.delete(id);
    const isAsked = questions.some(({ id }) => !items.has(id));
    for (const question of questions) if (!items.has(question.id)) items.set(question.id, item(question, alike(question)));
    const focused = panel.contains(document.activeElement);
    panel.hidden = !questions.length;
    if (!questions.length) return panel.replaceChildren();
    const number = questions.length === 1 ? "A question waits for your answer" : `${questions.length} questions wait for your answers`;
    const typed = panel.contains(document.activeElement) ? document.activeElement : null;
    panel.replaceChildren(element("h2", {}, number), element("p", { class: "problem" }, problem), ...questions.map(({ id }) => items.get(id)));
    if (typed?.isConnected) typed.focus();
    else if (focused || isNew) panel.querySelector("textarea, input, select").focus();
    isNew = false;
    if (isAsked) document.getElementById("live").textContent = number;
  }

  function item({ id, stage, prompt, answer_schema: schema }, samples) {
    const task = taskIn(prompt);
    const fields = makeAnswerForm(`field-${id}`, schema, task);
    const field = element("textarea", { id: `answer-${id}`, rows: 3 });
    const free = [element("label", { for: field.id }, "Your answer, in your own words"), field];
    const trouble = element("p", { class: "wrong", role: "alert", hidden: true });
    const send = element("button", { type: "submit", class: "main" }, "Answer");
    const form = element(
      "form",
      { class: "ask", novalidate: true },
      element("h3", {}, sayStage(stage), samples > 1 && element("small", {}, ` ${samples} samples ask this; each is answered by itself`)),
      element("p", { class: "task" }, task),
      ...(fields ? [...fields.parts, fold("Answer in your own words instead", ...free)] : free),
      fold("The whole question, as a model would get it", element("pre", { tabindex: "0", "aria-label": "The question" }, prompt)),
      trouble,
      element("div", { class: "tools" }, send),
    );
    const answer = () => {
      if (field.value.trim()) return field.value;
      const found = fields?.read();
      return found ? JSON.stringify(found) : "";
    };
    const tell = (text) => {
      trouble.hidden = !text;
      trouble.textContent = text;
    };
    listen(form, "submit", async (event) => {
      event.preventDefault();
      const said = answer();
      if (!said) return tell("Enter an answer first.");
      tell("");
      send.disabled = true;
      try {
        const { questions } = await api.post(`${path}/answers`, { answers: { [id]: said } });
        draw(questions ?? []);
      } catch (error) {
        const refused = error.details?.refused?.find((one) => one.id === id);
        tell(refused ? `Not taken: ${refused.reason}` : api.say(error));
        form.querySelector("textarea, input, select").focus();
        if (error.code === "conflict") void look();
      } finally {
        send.disabled = false;
      }
    });
    listen(form, "keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
    });
    return form;
  }

  return { panel, update, close: () => control.abort() };
}

/** What is to be done, without how a model is to write it: the last part of the prompt. */
function taskIn(prompt) {
  const parts = prompt.trim().split(/\n\s*\n/);
  return parts.at(-1).startsWith("Problem:") ? "Answer the problem." : parts.at(-1);
}

function sayStage(stage) {
  const words = plainName(stage ?? "question");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

function fold(title, ...content) {
  return element("details", {}, element("summary", {}, title), ...content);
}
