// A form for the answer to a question, made from the schema of its answer: fields for people, JSON for the run.

import { element } from "../dom.js";
import { plainName } from "../wording.js";

const MOST_ROWS = 12;
const USUAL_ROWS = 3;

/**
 * @param {string} id the ids of its fields begin with it
 * @param {object} schema
 * @param {string} task what is asked; a number in it says how many entries are wanted
 * @returns {{ parts: Node[], read(): object | null } | null} null: the schema is not one of plain fields; `read` gives
 *   null where nothing was filled in
 */
export function makeAnswerForm(id, schema, task) {
  const fields = Object.entries(schema?.properties ?? {}).map(([name, about]) => answerField(`${id}-${name}`, name, about, task));
  if (!fields.length || fields.some((one) => one === null)) return null;
  return {
    parts: fields.map(({ part }) => part),
    read() {
      const found = fields.map(({ name, read }) => [name, read()]).filter(([, value]) => value !== null);
      return found.length ? Object.fromEntries(found) : null;
    },
  };
}

function answerField(id, name, about, task) {
  const schema = (about.anyOf ?? [about]).find(({ type }) => type !== "null") ?? {};
  if (schema.type === "array") return entries(id, name, schema.items ?? {}, task);
  const input = inputOf(id, schema, 2);
  if (!input) return null;
  const label = element("label", { for: id }, sentence(name));
  return { name, part: element("div", { class: "field" }, label, input.made), read: input.read };
}

/** Rows for a list: of texts, or of things with plain fields of their own. */
function entries(id, name, items, task) {
  const columns = items.type === "object" ? Object.entries(items.properties ?? {}) : [["", items]];
  if (!columns.length || columns.some(([, schema]) => !inputOf("", schema, 1))) return null;
  const rows = [];
  const list = element("div", { class: "entries" });
  const add = () => {
    const number = rows.length + 1;
    const cells = columns.map(([column, schema]) => {
      const said = `${sentence(column || name)} ${number}`;
      const { made, read } = inputOf(`${id}-${number}${column && `-${column}`}`, schema, 1);
      made.setAttribute("aria-label", said);
      made.setAttribute("placeholder", schema.type === "number" ? `${plainName(column)}, 0 to 1` : said);
      return { column, made, read };
    });
    rows.push(cells);
    list.append(element("div", { class: "entry" }, ...cells.map(({ made }) => made)));
  };
  const wanted = Number(/\b(\d{1,2})\b/.exec(task)?.[1] ?? USUAL_ROWS);
  for (let number = 0; number < Math.min(MOST_ROWS, Math.max(1, wanted)); number++) add();
  const more = element("button", { on: { click: add } }, "Add another");
  const part = element("fieldset", {}, element("legend", {}, sentence(name)), list, more);
  const read = () => {
    const found = rows.map((cells) => cells.map(({ column, read: value }) => [column, value()])).filter(([[, first]]) => first !== null);
    if (!found.length) return null;
    return found.map((cells) => (cells[0][0] === "" ? cells[0][1] : Object.fromEntries(cells.filter(([, value]) => value !== null))));
  };
  return { name, part, read };
}

/** A field of one value; null where it is none that one would type. */
function inputOf(id, { type, enum: choices, minimum, maximum }, rows) {
  if (choices || type === "boolean") {
    const words = choices ?? ["yes", "no"];
    const made = element("select", { id }, element("option", { value: "" }, "—"), ...words.map((word) => element("option", { value: String(word) }, plainName(word))));
    return { made, read: () => (made.value === "" ? null : choices ? made.value : made.value === "yes") };
  }
  if (type === "number" || type === "integer") {
    const made = element("input", { id, type: "number", min: minimum, max: maximum, step: type === "integer" ? 1 : "any" });
    return { made, read: () => (made.value === "" ? null : Number(made.value)) };
  }
  if (type !== "string") return null;
  const made = element("textarea", { id, rows });
  return { made, read: () => made.value.trim() || null };
}

function sentence(name) {
  const words = plainName(name);
  return words.charAt(0).toUpperCase() + words.slice(1);
}
