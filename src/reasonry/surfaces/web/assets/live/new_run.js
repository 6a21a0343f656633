// The form that begins a run: a problem, a strategy with its options, who thinks, what it may spend.

import { element, listen } from "../dom.js";
import { count, modelName, plainName } from "../wording.js";
import { api } from "./api.js";

const LAST_KEY = "reasonry.new-run";
const COACHED = "coached"; // no model has a name without a colon but `offline`
const USUAL_CALLS = 30;
const COMMON = 4; // options that show at first
const EXAMPLES = [
  "Use 4, 9, 10 and 13 to make 24",
  "Which is larger, 9.11 or 9.9, and why?",
  "Plan a three-day trip to Rome for a family with two small children",
];
const LIMITS = [
  ["calls", "Calls", "1"],
  ["tokens", "Tokens", "1"],
  ["usd", "Dollars", "any"],
  ["seconds", "Seconds", "any"],
];

/** @param {HTMLElement} main */
export function mountNewRun(main, { query, onNavigate }) {
  document.title = "New run · Reasonry";
  const wish = Object.fromEntries(new URLSearchParams(query));
  let key = api.newKey(); // the same order sent twice is one run
  let strategies = [];

  const problem = element("textarea", { id: "problem", required: true, rows: 5, maxlength: 200_000, spellcheck: "true" });
  problem.value = wish.problem ?? "";
  const strategy = element("select", { id: "strategy" }, element("option", { value: "auto" }, "Chosen for the problem"));
  const about = element("p", { class: "quiet", id: "about" }, "A rule chooses the strategy that suits the problem.");
  strategy.setAttribute("aria-describedby", "about");
  const model = element("select", { id: "model", "aria-describedby": "power" });
  const power = element("p", { class: "quiet", id: "power" });
  const options = element("div", { class: "fields" });
  const box = element("details", { hidden: true }, element("summary", {}, "Options"), options);
  const parts = element("fieldset", { hidden: true }, element("legend", {}, "With"));
  const limits = LIMITS.map(([name, label, step]) =>
    field(label, element("input", { type: "number", min: 0, step, id: `limit-${name}`, "data-limit": name, placeholder: "no limit", value: name === "calls" ? USUAL_CALLS : null })),
  );
  const examples = EXAMPLES.map((text) => element("button", { class: "chip", on: { click: () => {
    problem.value = text;
    problem.focus();
  } } }, text));
  const trouble = element("p", { class: "wrong", role: "alert", hidden: true });
  const start = element("button", { type: "submit", class: "main" }, "Start");
  const form = element(
    "form",
    { class: "order", novalidate: true },
    element("h1", {}, "New run"),
    field("Problem", problem),
    element("div", { class: "chips", role: "group", "aria-label": "Examples" }, element("span", { class: "quiet" }, "For example"), ...examples),
    element("div", { class: "pair" },
      element("div", {}, field("Strategy", strategy), about),
      element("div", {}, field("Model", model), power)),
    box,
    parts,
    element("fieldset", {}, element("legend", {}, "Limits"), element("div", { class: "fields" }, ...limits)),
    trouble,
    element("div", { class: "tools" }, start, element("span", { class: "quiet" }, element("kbd", {}, "Ctrl"), " ", element("kbd", {}, "Enter"))),
  );
  main.append(form);
  problem.focus({ preventScroll: true });

  async function describe() {
    const name = strategy.value;
    const found = strategies.find((one) => one.name === name);
    about.textContent = found ? `${found.summary} Source: ${found.source}. Usually about ${count(found.calls, "call")}.` : "A rule chooses the strategy that suits the problem.";
    options.replaceChildren();
    box.hidden = true;
    if (!found) return;
    const { options: cards = [] } = found.options ? found : await api.get(`/strategies/${encodeURIComponent(name)}`);
    if (strategy.value !== name) return;
    const made = cards.map(optionField).filter(Boolean);
    const rest = made.length > COMMON + 2 ? made.splice(COMMON) : [];
    const all = element("details", {}, element("summary", {}, `All ${made.length + rest.length} options`), element("div", { class: "fields" }, ...rest));
    options.replaceChildren(...made, ...(rest.length ? [all] : []));
    box.hidden = !options.children.length;
  }

  function describeModel() {
    power.textContent = model.value === "offline" ? `It solves number puzzles only, such as “${EXAMPLES[0]}”. For another problem, answer each question yourself, or start the server with --model.` : "";
  }

  function order() {
    const made = { problem: problem.value, strategy: strategy.value, mode: "driven" };
    if (model.value === COACHED) made.mode = "coached";
    else if (model.value) made.model = model.value;
    const chosen = [...options.querySelectorAll("[data-option]")].filter(({ value }) => value !== "");
    if (chosen.length) made.options = Object.fromEntries(chosen.map((input) => [input.dataset.option, valueOf(input)]));
    const bounds = [...form.querySelectorAll("[data-limit]")].filter(({ value }) => value !== "");
    for (const name of ["tools", "documents"]) {
      const named = [...parts.querySelectorAll(`[name="${name}"]:checked`)].map(({ value }) => value);
      if (named.length) made[name] = named;
    }
    if (parts.querySelector("#verifier")?.value) made.verifier = parts.querySelector("#verifier").value;
    if (bounds.length) made.budget = Object.fromEntries(bounds.map((input) => [input.dataset.limit, Number(input.value)]));
    return made;
  }

  async function send() {
    const wrong = [...form.querySelectorAll("input, textarea")].find((input) => !input.checkValidity() || (input === problem && !problem.value.trim()));
    if (wrong) return tell(wrong === problem ? "Enter a problem." : `${labelOf(wrong)}: ${wrong.validationMessage}`, wrong);
    start.disabled = true;
    tell("");
    try {
      const { run_id: id } = await api.post("/runs", order(), { key });
      remember({ strategy: strategy.value, model: model.value });
      onNavigate(`/runs/${encodeURIComponent(id)}`);
    } catch (error) {
      const { field: at, option } = error.details ?? {};
      tell(api.say(error), [at, option, `option-${option}`, `limit-${option}`].map((id) => document.getElementById(id)).find(Boolean));
    } finally {
      start.disabled = false;
    }
  }

  function tell(text, at = null) {
    trouble.hidden = !text;
    trouble.textContent = text;
    for (const old of form.querySelectorAll("[aria-invalid]")) old.removeAttribute("aria-invalid");
    if (!at) return;
    for (let box = at.closest("details"); box; box = box.parentElement.closest("details")) box.open = true;
    at.setAttribute("aria-invalid", "true");
    at.focus();
  }

  listen(form, "input", () => (key = api.newKey()));
  listen(form, "submit", (event) => {
    event.preventDefault();
    void send();
  });
  listen(form, "keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !start.disabled) void send();
  });
  listen(model, "change", describeModel);
  listen(strategy, "change", () => describe().catch((error) => tell(api.say(error))));

  Promise.all([api.get("/strategies"), api.get("/models")]).then(([known, { models, default: usual, ...listed }]) => {
    parts.append(...partFields(listed));
    parts.hidden = parts.children.length === 1;
    strategies = known.strategies.filter((one) => one.driven !== false);
    strategy.append(...strategies.map(({ name, title }) => element("option", { value: name }, title || plainName(name))));
    const names = models.map((one) => one.name ?? one);
    if (names.every((name) => name === "offline")) for (const other of examples.slice(1)) other.remove();
    model.append(
      ...names.map((name) => element("option", { value: name }, modelName(name))),
      element("option", { value: COACHED }, "none: you answer each question"),
    );
    const last = remembered();
    const wanted = [wish.model, last.model, usual].find((name) => name === COACHED || names.includes(name));
    if (wanted) model.value = wanted;
    describeModel();
    const chosen = [wish.strategy, last.strategy].find((one) => strategies.some(({ name }) => name === one));
    if (chosen) strategy.value = chosen;
    return describe();
  }).catch((error) => tell(api.say(error)));
  return { close() {} };
}

/** What the server's operator has listed for runs: a verifier, tools, documents. */
function partFields({ verifiers = [], tools = [], documents = [] }) {
  const made = verifiers.length ? [field("Verifier", element("select", { id: "verifier" }, ...["", ...verifiers].map((name) => element("option", { value: name }, name || "none"))))] : [];
  for (const [name, listed] of Object.entries({ tools, documents })) {
    if (!listed.length) continue;
    const boxes = listed.map((value) => element("label", { class: "check" }, element("input", { type: "checkbox", name, value }), value));
    made.push(element("div", { class: "tools", role: "group", "aria-label": plainName(name) }, element("span", { class: "quiet" }, `${plainName(name)}: `), ...boxes));
  }
  return made;
}

function field(label, input) {
  return element("div", { class: "field" }, element("label", { for: input.id }, label), input);
}

function labelOf(input) {
  return input.labels?.[0]?.textContent ?? "";
}

/** A field for an option, empty where the default is to hold; null: what it takes is no value one would type. */
function optionField({ name, description, default: usual, ...schema }) {
  const kinds = (schema.anyOf ?? [schema]).filter(({ type }) => type !== "null");
  const { type, enum: choices, minimum, maximum } = kinds[0] ?? {};
  if (kinds.length !== 1 || (!choices && !["integer", "number", "boolean", "string"].includes(type))) return null;
  const id = `option-${name}`;
  const said = usual === null || usual === undefined ? "none" : String(usual);
  const properties = { id, "data-option": name, "data-type": type ?? "choice", "aria-describedby": `${id}-about` };
  const listed = choices ?? (type === "boolean" ? [true, false] : null);
  const input = listed
    ? element("select", properties, element("option", { value: "" }, `${plainWord(usual)} (default)`),
        ...listed.filter((one) => one !== usual).map((one) => element("option", { value: String(one) }, plainWord(one))))
    : type === "string"
      ? element("textarea", { ...properties, rows: 1, placeholder: said.slice(0, 80) })
      : element("input", { ...properties, type: "number", min: minimum, max: maximum, step: type === "integer" ? 1 : "any", placeholder: said });
  const made = field(plainName(name), input);
  made.append(element("p", { class: "quiet", id: `${id}-about` }, description ?? ""));
  return made;
}

function plainWord(value) {
  return value === true ? "yes" : value === false ? "no" : value === null || value === undefined ? "none" : plainName(value);
}

function valueOf(input) {
  const { type } = input.dataset;
  if (type === "boolean") return input.value === "true";
  return type === "integer" || type === "number" ? Number(input.value) : input.value;
}

/** The strategy and the model of the run that was begun last in this browser. */
function remembered() {
  try {
    return JSON.parse(localStorage.getItem(LAST_KEY) ?? "{}") ?? {};
  } catch {
    return {};
  }
}

function remember(choices) {
  try {
    localStorage.setItem(LAST_KEY, JSON.stringify(choices));
  } catch {
    // a private window: nothing is kept
  }
}
