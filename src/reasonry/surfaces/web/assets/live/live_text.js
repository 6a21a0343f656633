// What is being answered at this moment: the pieces of each answer as they come, and how long each has been waited for.

import { element, quietLine, show } from "../dom.js";
import { nodeLabel } from "../record.js";
import { count, dotted, duration, plainName } from "../wording.js";

const MOST_CARDS = 6; // questions at once; of the others it is said how many there are
const KEPT_CHARACTERS = 20_000; // of an answer while it comes; whole it is in the record
const TAIL_CHARACTERS = 400;

/** @param {{ select(node: string, how: { question: string, open: boolean }): void }} page */
export function makeLiveText(page) {
  const texts = new Map(); // by question
  const written = new Map(); // the elements that show a text, by question
  const said = new Map(); // what else there is to say of one, such as when it is asked again
  let waiting = []; // of the panel: { question, text, time, since }
  let last = null; // the record that was drawn
  let rest = ""; // why nothing new is asked, in a word
  let frame = 0;
  const list = element("div", { class: "waiting" });
  const clock = setInterval(tell, 1000);

  /** Takes a piece of an answer. */
  function add(id, piece) {
    texts.set(id, ((texts.get(id) ?? "") + piece).slice(-KEPT_CHARACTERS));
    said.delete(id);
    if (last && !last.questions.has(id) && waiting.length < MOST_CARDS && !waiting.some(({ question }) => question.id === id)) {
      waiting.push(card({ id }, last)); // until the document has it
      list.append(waiting.at(-1).item);
    }
    frame ||= requestAnimationFrame(paint);
  }

  /** Takes a word on a question that still waits. */
  function note(id, words) {
    texts.delete(id);
    said.set(id, words);
    frame ||= requestAnimationFrame(paint);
  }

  function paint() {
    frame = 0;
    for (const { question, text } of waiting) {
      text.textContent = (said.get(question.id) ?? texts.get(question.id) ?? "").slice(-TAIL_CHARACTERS);
      text.scrollTop = text.scrollHeight;
    }
    for (const [id, field] of written) {
      field.hidden = !texts.has(id);
      const isAtEnd = field.scrollTop + field.clientHeight > field.scrollHeight - 30;
      field.textContent = texts.get(id) ?? "";
      if (isAtEnd) field.scrollTop = field.scrollHeight;
    }
  }

  function tell() {
    for (const { time, since } of waiting) {
      const seconds = Math.floor((performance.now() - since) / 1000);
      time.textContent = seconds && !rest ? duration(1000 * seconds) : "";
    }
  }

  /** Draws the panel of what waits; while a run is at work it keeps its place, so that nothing below it jumps. */
  function draw(panel, record, isAtWork) {
    last = record;
    // What a coached run asks stands above, with the fields for its answers.
    const asked = record.page.mode === "driven" ? (record.page.questions ?? []) : [];
    const open = asked.filter(({ status }) => status === "open");
    // Of what the document does not have yet, pieces may have come already.
    const isOver = (id) => record.questions.has(id) && record.questions.get(id).status !== "open";
    for (const kept of [texts, written, said]) for (const id of kept.keys()) if (isOver(id)) kept.delete(id);
    const before = new Map(waiting.filter(({ question }) => question.node).map((one) => [one.question.id, one]));
    waiting = open.slice(0, MOST_CARDS).map((question) => before.get(question.id) ?? card(question, record));
    const more = open.length - waiting.length;
    rest = record.page.paused ? "Paused" : record.page.resumable ? "Left" : "";
    const head = quietLine(words(open.length, more));
    list.replaceChildren(...waiting.map(({ item }) => item));
    show(panel, isAtWork || open.length ? [head, list] : []);
    paint();
    tell();
  }

  function words(open, more) {
    if (rest) return `${rest} with ${count(open, "question")} open: no new question is asked until the run resumes`;
    if (!open) return "Nothing is asked at this moment";
    return `Waiting for ${count(open, "answer")}${more > 0 ? `; ${more} of them not shown` : ""}`;
  }

  function card(question, record) {
    const node = record.nodes.get(question.node);
    const text = element("span", { class: "piece" });
    const time = element("span", { class: "time" });
    const name = [plainName(question.stage ?? ""), node && nodeLabel(node), question.sample > 0 && `sample ${question.sample + 1}`];
    const select = () => page.select(question.node, { question: question.id, open: true });
    const label = element("span", { class: "label" }, dotted(name), time);
    const item = element("button", { on: { click: select } }, label, text);
    const asked = record.page.duration_ms - (question.begun_at_ms ?? record.page.duration_ms);
    return { question, text, time, item, since: performance.now() - Math.max(0, asked) };
  }

  /** The element of an answer that comes, for the detail; the same each time. */
  function field(id) {
    if (!written.has(id)) written.set(id, element("pre", { class: "coming", "aria-label": "The answer as it comes", hidden: true }));
    frame ||= requestAnimationFrame(paint);
    return written.get(id);
  }

  return { add, note, draw, field, close: () => (clearInterval(clock), cancelAnimationFrame(frame)) };
}
