// How numbers, times and states are said.

const STATES = {
  answer: "the answer",
  on_path: "on the path to the answer",
  expanded: "expanded",
  open: "open, never expanded",
  dropped: "dropped",
};

export const STATE_ORDER = Object.keys(STATES);

const OUTCOME_WORDS = {
  solved: "Solved",
  answered: "Answered",
  stopped: "Stopped",
  unsolved: "No solution",
  error: "Error",
  waiting: "Waiting for you",
  active: "Running",
};

/**
 * @param {string} state
 * @param {boolean} isAnswered whether the run has an answer that a path can lead to
 */
export function stateWord(state, isAnswered = true) {
  if (state === "on_path" && !isAnswered) return "on the best path so far";
  return STATES[state] ?? plainName(state);
}

/** How a run stands, in the words of the list, the head and the comparison. */
export function outcomeWord(name) {
  const word = OUTCOME_WORDS[name] ?? plainName(name);
  return word.charAt(0).toUpperCase() + word.slice(1);
}

export function isAnswered(outcome) {
  return ["solved", "answered"].includes(outcome);
}

/** `branch_selection` and `thoughtsLeft` as people write them. */
export function plainName(name) {
  return String(name).replaceAll("_", " ").replace(/([a-z])([A-Z])/g, (_, end, start) => `${end} ${start.toLowerCase()}`);
}

/** A model by its name, without the address at which it is where it has no name of its own. */
export function modelName(model) {
  const [, host, name] = /^[^/]*:\/\/([^/#]*)[^#]*#(.+)$/.exec(model ?? "") ?? [];
  return name ? `${name} at ${host}` : model;
}

/** @param {number} ms */
export function duration(ms) {
  if (!Number.isFinite(ms)) return "";
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const s = ms / 1000;
  if (s < 60) return `${s < 10 ? s.toFixed(1) : Math.round(s)} s`;
  const minutes = Math.floor(s / 60);
  if (minutes < 60) return joined([minutes, "min"], [Math.floor(s % 60), "s"]);
  return joined([Math.floor(minutes / 60), "h"], [minutes % 60, "min"]);
}

function joined(...parts) {
  return parts.filter(([number]) => number).map(([number, unit]) => `${number} ${unit}`).join(" ");
}

export function whenWords(at) {
  return `${dayWord(at)} ${timeWord(at)}`.replace(/^T|^Y/, (letter) => letter.toLowerCase());
}

export function timeWord(at) {
  return at.toLocaleTimeString(undefined, { hour: "numeric", minute: "2-digit" });
}

export function dayWord(at) {
  const now = new Date();
  const days = Math.round((new Date(now).setHours(0, 0, 0, 0) - new Date(at).setHours(0, 0, 0, 0)) / 86_400_000);
  const year = at.getFullYear() === now.getFullYear() ? undefined : "numeric";
  return ["Today", "Yesterday"][days] ?? at.toLocaleDateString(undefined, { day: "numeric", month: "short", year });
}

export function dotted(parts) {
  return parts.filter(Boolean).join(" · ");
}

export function dollars(usd) {
  return `$${usd < 0.01 && usd > 0 ? Math.max(usd, 1e-6).toPrecision(2) : usd.toFixed(2)}`;
}

export function count(number, one, many = `${one}s`) {
  return `${number.toLocaleString("en")} ${number === 1 ? one : many}`;
}

/** An amount of something there may be a limit for. */
export function amount(name, value) {
  if (name === "usd") return dollars(value);
  if (name === "seconds") return duration(value * 1000);
  return Math.round(value).toLocaleString("en");
}

/** `3 calls · 1,204 tokens · $0.01`; what is zero or unknown is left out. */
export function costLine(cost) {
  if (!cost) return "";
  const parts = [];
  if (cost.calls) parts.push(count(cost.calls, "call"));
  if (cost.tokens) parts.push(count(cost.tokens, "token"));
  if (cost.usd > 1e-9) parts.push(dollars(cost.usd));
  return parts.join(" · ");
}

/** A node's score as it is to be read: `0.70`, `82/100`. */
export function scoreOf(node) {
  return node.score_text || (Number.isFinite(node.score) ? node.score.toFixed(2) : "");
}

export function isDraft(node) {
  return ["draft", "sample"].includes(node?.kind);
}

/** A draft has no score, and shows its answer there. */
export function scoreName(node) {
  return Number.isFinite(node.score) || !isDraft(node) ? "Score" : "Answer";
}

/** A call of a tool or verifier in a few words. */
export function callName({ kind, name }) {
  return kind === name ? plainName(kind) : `${plainName(kind)} ${name}`;
}

export function valueText(value) {
  if (value === null || value === undefined) return "";
  if (Array.isArray(value)) return value.map(valueText).join("\n");
  if (typeof value !== "object") return String(value);
  return Object.entries(value).map(([name, one]) => `${name}: ${valueText(one)}`).join("\n");
}

export function oneLine(text) {
  return (text ?? "").trim().replace(/\s+/g, " ");
}

export function firstLine(text) {
  return (text ?? "").trim().split(/\s*\n\s*/, 1)[0];
}
