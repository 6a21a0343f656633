// One row of the list: how it ended, problem and answer, by which strategy and model, cost, time, when.

import { element } from "../dom.js";
import { amount, count, dollars, duration, firstLine, isAnswered, modelName, outcomeWord, plainName, timeWord } from "../wording.js";

const ROW_CHARACTERS = 300;
const TOGETHER_MS = 3000; // from one run of a batch to the next
const LEAST_BATCH = 10;
const OPEN = ["waiting", "active", "paused", "resumable"]; // such a run stands by itself

/** The columns: a name in the address, a word, and what rows are sorted by. */
export const COLUMNS = [
  ["outcome", "Outcome", ({ status }) => status ?? ""],
  ["problem", "Problem", ({ title }) => (title ?? "").toLowerCase()],
  ["answer", "Answer", ({ answer }) => (answer ?? "").toLowerCase()],
  ["strategy", "Strategy", ({ strategy }) => strategy ?? ""],
  ["model", "Model", ({ mode }) => mode ?? ""],
  ["cost", "Cost", ({ usd, calls }) => (usd ?? 0) * 1e9 + (calls ?? 0)],
  ["time", "Elapsed", ({ took_ms }) => took_ms ?? 0],
  ["when", "When", ({ at_ms }) => at_ms],
];

/** A run or session as a row shows it. */
export function entryOf(of, found) {
  const id = of === "runs" ? found.run_id : found.session_id;
  const address = `/${of}/${encodeURIComponent(id)}`;
  if (of === "sessions") {
    const thoughts = found.thought_history_length ?? 0;
    const at_ms = Date.parse(found.used_at) || 0;
    return { of, id, address, at_ms, title: found.purpose, status: found.ended ? "ended" : found.status === "active" ? "open" : found.status, strategy: found.strategy, mode: id.startsWith("comparison-") ? "comparison" : "guided", said: count(thoughts, "thought") };
  }
  const { usd, calls } = { ...found.usage, ...found };
  const { reason, detail } = { ...found.termination, ...found };
  const still = found.paused ? "paused" : found.resumable ? "resumable" : "active";
  const took_ms = found.status === "active" ? null : found.updated_at_ms - found.created_at_ms;
  const spent = usd > 0 ? dollars(usd) : calls > 0 ? count(calls, "call") : "";
  return {
    of, id, address, took_ms, usd, calls,
    at_ms: found.created_at_ms ?? 0,
    title: found.problem,
    status: found.outcome === "waiting" && found.paused ? "paused" : (found.outcome ?? (found.status === "active" ? still : found.status)),
    strategy: found.strategy,
    mode: found.mode === "coached" ? "coached" : (modelName(found.model) ?? ""),
    answer: isAnswered(found.outcome) ? found.answer : "",
    reason: isAnswered(found.outcome) ? "" : detail || plainName(reason ?? ""),
    said: spent,
  };
}

/** The column that rows are sorted by, and whether the greatest comes first. */
export function sorting(wish = "-when") {
  return wish.startsWith("-") ? [wish.slice(1), true] : [wish, false];
}

export function inOrderOf(entries, wish) {
  const [by, isDown] = sorting(wish);
  const [, , value] = COLUMNS.find(([name]) => name === by) ?? COLUMNS.at(-1);
  const sign = isDown ? -1 : 1;
  const compared = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
  return [...entries].sort((a, b) => sign * compared(value(a), value(b)) || b.at_ms - a.at_ms);
}

/**
 * Puts the runs of one problem (a run, its forks, what it was compared with) behind the first of them, and those of a batch.
 * @param {object[]} rows in their order
 * @param {Set<string>} opened the groups whose runs all show
 * @param {boolean} isByTime whether all rows show, the latest first
 */
export function groupedRows(rows, opened, isByTime) {
  const batches = isByTime ? batchesOf(rows) : new Map();
  const groups = new Map();
  for (const row of rows) {
    const key = row.of === "runs" && !OPEN.includes(row.status) ? (batches.get(row) ?? row.title) : row.address;
    if (groups.has(key)) groups.get(key).push(row);
    else groups.set(key, [row]);
  }
  return [...groups].flatMap(([key, [first, ...others]]) => {
    if (!others.length) return [first];
    const isOpen = opened.has(key);
    const isBatch = batches.has(first);
    const members = isOpen ? (isBatch ? [first, ...others] : others).map((row) => ({ ...row, isMember: true })) : [];
    if (isBatch) return [batchRow(key, [first, ...others], isOpen), ...members];
    return [{ ...first, others: `${count(others.length, "other run")} of this problem`, group: key, isOpen }, ...members];
  });
}

function batchRow(group, runs, isOpen) {
  const ends = new Map();
  for (const { status } of runs) ends.set(status, (ends.get(status) ?? 0) + 1);
  const { of, at_ms, strategy, mode, title } = runs[0];
  const calls = runs.reduce((sum, one) => sum + (one.calls ?? 0), 0);
  return { of, id: group, address: group, at_ms, strategy, mode, title: `Batch of ${runs.length} runs, from “${title}”`, ends: [...ends], said: count(calls, "call"), others: `${runs.length} runs of this batch`, group, isOpen };
}

/** The batch that a run belongs to: many runs that began together, with one strategy and one model. */
function batchesOf(rows) {
  const chains = new Map();
  for (const row of rows.filter(({ of }) => of === "runs").reverse()) {
    const kind = `${row.strategy} ${row.mode}`;
    const chain = chains.get(kind)?.at(-1);
    if (row.at_ms - chain?.at(-1).at_ms <= TOGETHER_MS) chain.push(row);
    else chains.set(kind, [...(chains.get(kind) ?? []), [row]]);
  }
  const batches = [...chains.values()].flat().filter((chain) => chain.length >= LEAST_BATCH);
  return new Map(batches.flatMap((chain) => chain.map((row) => [row, `batch ${chain.at(-1).id}`])));
}

/**
 * @param {{ choose(id: string, isChosen: boolean): void, turn(group: string): void }} list `choose` is called where a
 *   run is taken to be compared, `turn` where the other runs of a group are to show, or not
 */
export function listRow(entry, isChosen, { choose, turn }) {
  const { of, id, address, status } = entry;
  const title = firstLine(entry.title).slice(0, ROW_CHARACTERS) || id;
  const came = firstLine(entry.answer || entry.reason || "").slice(0, ROW_CHARACTERS);
  const box = of === "runs" && !entry.ends && element("input", {
    type: "checkbox", "aria-label": `Compare ${title}`, title: "Compare", checked: isChosen,
    on: { change: (event) => choose(id, event.target.checked) },
  });
  const link = entry.ends ? element("span", { class: "title", title }, title) : element("a", { class: "title", href: `#${address}`, title: came ? `${title} — ${came}` : title }, title);
  const more = entry.others && element("button", {
    class: "others", "aria-expanded": String(entry.isOpen), title: entry.others, "aria-label": entry.others, on: { click: () => turn(entry.group) },
  }, entry.isOpen ? "−" : `+${entry.others.split(" ")[0]}`);
  const mode = entry.mode ?? "";
  const cells = {
    box: box || "",
    outcome: entry.ends ? element("span", { class: "ends" }, ...entry.ends.map(([end, number]) => element("span", { "data-status": end, size: { flexGrow: String(number) } }))) : element("span", { class: "status", "data-status": status }, outcomeWord(status ?? "")),
    problem: more ? element("div", { class: "grouped" }, link, more) : link,
    answer: element("span", { class: entry.answer ? "came is" : "came", title: came }, entry.ends ? endsWords(entry.ends) : came),
    strategy: plainName(entry.strategy ?? ""),
    model: element("span", { title: mode }, shortModel(mode)),
    cost: entry.said,
    time: entry.took_ms ? element("span", { title: `${amount("ms", entry.took_ms)} ms` }, duration(entry.took_ms)) : "",
    when: entry.at_ms ? element("time", { datetime: new Date(entry.at_ms).toISOString(), title: new Date(entry.at_ms).toLocaleString() }, timeWord(new Date(entry.at_ms))) : "",
  };
  const made = Object.entries(cells).map(([name, content]) => element("td", { class: `of-${name}` }, content));
  return element("tr", { "data-address": address, "data-status": status, class: entry.isMember && "member" }, ...made);
}

export function dayRow(day) {
  return element("tr", { class: "day", "data-address": day }, element("th", { colspan: COLUMNS.length + 1, scope: "rowgroup" }, day));
}

function endsWords(ends) {
  return ends.map(([status, number]) => `${number} ${outcomeWord(status).toLowerCase()}`).join(", ");
}

function shortModel(mode) {
  return mode.split(" at ")[0].split("/").at(-1);
}
