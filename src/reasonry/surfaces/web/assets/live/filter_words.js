// What is said of the filters of the list: which are set, and what to do where nothing is found.

import { element, listen } from "../dom.js";
import { count, dollars, dotted, duration, modelName } from "../wording.js";
import { api } from "./api.js";

const EXAMPLE = { problem: "Use 4, 9, 10 and 13 to make 24", strategy: "tree_of_thoughts", model: "offline", mode: "driven" };
const ABOUT = "Each run and each session of your agents is kept here, with every thought, its cost and why the answer was chosen.";

/**
 * @param {Record<string, HTMLInputElement | HTMLSelectElement>} fields by their names in the address
 * @param {() => void} filter called when they were changed
 * @param {(path: string) => void} onNavigate
 */
export function makeFilterWords(fields, filter, onNavigate) {
  const chips = element("p", { class: "chips", hidden: true });
  const nothing = element("div", { class: "nothing", hidden: true });

  function set(names) {
    for (const name of names) fields[name].value = "";
    filter();
  }

  function chip(name) {
    const words = fields[name].selectedOptions[0]?.textContent ?? "";
    return element("button", { class: "chip", "aria-label": `Remove the filter ${words}`, on: { click: () => set([name]) } }, words, " ×");
  }

  /** Draws each filter that is set, to be taken off, and what there is to say of an empty list. */
  function draw({ wish, isEmpty }) {
    const names = Object.keys(fields).filter((name) => wish[name] && name !== "query");
    chips.hidden = !names.length;
    chips.replaceChildren(...names.map(chip));
    nothing.hidden = !isEmpty;
    if (!isEmpty) return;
    if (names.length || wish.query) {
      const said = wish.query ? `Nothing matches “${wish.query}”${names.length ? " with these filters." : "."}` : "Nothing matches these filters.";
      const clear = element("button", { on: { click: () => set(Object.keys(fields)) } }, "Clear the search and filters");
      return nothing.replaceChildren(element("p", {}, said), clear);
    }
    const trouble = element("span", { class: "wrong", role: "alert" });
    const example = element("button", { title: EXAMPLE.problem, on: { click: () => api.post("/runs", EXAMPLE, { key: api.newKey() }).then(
      ({ run_id: id }) => onNavigate(`/runs/${encodeURIComponent(id)}`), (error) => (trouble.textContent = api.say(error))) } }, "Try an example");
    const start = element("a", { class: "button main", href: "#/new" }, "New run");
    nothing.replaceChildren(
      element("p", {}, "Nothing here yet. ", ABOUT),
      element("p", { class: "tools" }, start, example, trouble),
      element("p", {}, "Or let an agent think in steps: ", element("code", {}, "reasonry setup")),
    );
  }

  return { chips, nothing, draw };
}

export function choice(label, options, value = "") {
  const made = element("select", { "aria-label": label }, ...options.map(([name, text]) => element("option", { value: name }, text)));
  pick(made, value);
  return made;
}

export function pick(field, value = "") {
  field.value = value;
  if (field.selectedIndex < 0) field.selectedIndex = 0;
}

/** Who works off the queue and what waits in it; nothing where the server does so alone, and at once. */
export function queueLine(queue) {
  if (queue.workers === 1 && !queue.depth) return "";
  const { workers, depth, oldest_s } = queue;
  return dotted([count(workers, "worker"), depth && `${count(depth, "queued", "queued")}, oldest ${duration(oldest_s * 1000)}`]);
}

/** Filters in a line; on a phone folded. */
export function foldable(...filters) {
  const wide = matchMedia("(width >= 40rem)");
  const box = element("details", { class: "filters", open: wide.matches }, element("summary", {}, "Filters"), element("div", { class: "tools" }, ...filters));
  listen(wide, "change", () => (box.open = wide.matches));
  return box;
}

/** Returns how many runs there are in all; writes beside each strategy, model and outcome how many are its own. */
export async function countRuns(fields) {
  const read = await Promise.all(["strategy", "model", "outcome"].map((by) => api.get(`/usage?by=${by}&days=366`)));
  for (const { by, groups } of read) {
    for (const { group } of groups) if (by === "model") offer(fields.model, group, modelName(group));
    const counts = new Map(groups.map((one) => [one.group, one.runs]));
    for (const option of fields[by].options) {
      option.dataset.title ??= option.textContent;
      const number = counts.get(option.value);
      option.textContent = number ? `${option.dataset.title} (${number.toLocaleString("en")})` : option.dataset.title;
    }
  }
  const [{ total }] = read;
  return dotted([count(total.runs, "run"), total.usd > 0 && dollars(total.usd)]);
}

/** Adds a choice that is not there yet. */
export function offer(field, name, title) {
  if (![...field.options].some(({ value }) => value === name)) field.append(element("option", { value: name }, title));
}
