// Two runs side by side: the verdict, where they part, what differs in their settings and usage, their thoughts aligned.

import { element, heading, quietLine, table } from "../dom.js";
import { mark } from "../marks.js";
import { nodeLabel, readRecord, spendOf } from "../record.js";
import { amount, dotted, firstLine, modelName, outcomeWord, plainName, scoreOf, stateWord } from "../wording.js";
import { alignTrees } from "./aligned.js";

const SIDES = ["a", "b"];
const WHAT = {
  question: "the runs ask different questions",
  outcome: "the answers differ",
  only_a: "only the first asks this",
  only_b: "only the second asks this",
  strategy: "the strategies differ",
  end: "the runs end differently",
};
const ROW_WORDS = { usd: "dollars", thoughts: "thoughts recorded" };
const SHOWN_ROWS = 2000;
const FOLDED_FROM = 6; // rows of one kind, one after the other

/**
 * @param {HTMLElement} host
 * @param {{ api: import("./api.js").api, a: string, b: string, onNavigate(path: string): void }} surroundings
 */
export function mountCompare(host, { api, a, b, onNavigate }) {
  let isClosed = false;
  const go = (id, at) => onNavigate(`/runs/${encodeURIComponent(id)}${at ? `/${encodeURIComponent(at)}` : ""}`);
  host.replaceChildren(quietLine("Reading …"));

  async function load() {
    const [one, other] = [a, b].map(encodeURIComponent);
    try {
      const found = await Promise.all([
        api.get(`/runs/diff?a=${one}&b=${other}`),
        api.get(`/runs/${one}/page`),
        api.get(`/runs/${other}/page`),
      ]);
      if (!isClosed) draw(...found);
    } catch (error) {
      if (isClosed) return;
      const again = element("button", { on: { click: load } }, "Try again");
      host.replaceChildren(element("h1", {}, "These runs cannot be compared"), element("p", {}, api.say(error)), again);
    }
  }

  function draw(diff, first, second) {
    const pages = { a: first, b: second };
    const isSame = first.problem === second.problem;
    host.replaceChildren(
      element("h1", {}, isSame ? first.problem : "Two problems"),
      element("p", { class: "verdict-line" }, ...(isSame ? verdictOn(first, second, diff.spend) : ["The runs solve different problems: answers and usage do not compare."])),
      element("div", { class: "sides" }, ...SIDES.map((side) => head(side, pages[side], !isSame))),
      ...(isSame ? [section("Where they part", [parting(diff)])] : []),
      terms(diff),
      section("Usage", [spend(diff, pages)]),
      section("Thoughts side by side", [thoughts(diff, readRecord(first), readRecord(second))]),
    );
  }

  function head(side, page, hasProblem) {
    const open = element("button", { class: "link", on: { click: () => go(page.id) } }, `Run ${side.toUpperCase()}`);
    const facts = dotted([page.strategy_title, modelName(page.model), page.forked_from && "a fork"]);
    return element(
      "section",
      { class: "side" },
      element("h2", {}, open, element("span", { class: "status", "data-status": page.outcome ?? page.status }, outcomeWord(page.outcome ?? page.status))),
      hasProblem && element("p", { class: "problem" }, page.problem),
      quietLine(facts),
      element("p", { class: page.answer ? "answer" : "answer none" }, page.answer ?? "No answer"),
      element("p", { class: "reason" }, page.termination.detail || (page.termination.reason === "success" ? "" : plainName(page.termination.reason ?? ""))),
    );
  }

  function parting({ parting: found, fork, asked }) {
    const shared = fork ? `Run ${fork.of === "a" ? "B" : "A"} is a fork of run ${fork.of.toUpperCase()}. ` : "";
    if (!found) return element("p", {}, `${shared}They do not part: all ${asked.alike} questions and calls are alike.`);
    const at = found.id && ` at ${found.id} (${plainName(found.stage ?? "")}),`;
    const what = WHAT[found.what] ?? found.what;
    const first = `They differ from the first question${found.id ? ` (${plainName(found.stage ?? "")})` : ""}${found.what === "question" ? "" : `: ${what}`}.`;
    const alike = `${shared}${asked.alike ? `The first ${asked.alike} questions and calls are alike. Then${at || ","} ${what}.` : first}`;
    const texts = fromDifference(SIDES.map((side) => said(found[side], 2)));
    const sides = SIDES.map((side, index) =>
      element("section", { class: "side" }, element("h3", {}, `Run ${side.toUpperCase()}`), element("pre", {}, texts[index])),
    );
    return element("div", {}, element("p", {}, alike), element("div", { class: "sides" }, ...sides));
  }

  function terms({ terms: differing }) {
    if (!differing.length) return section("Settings", [element("p", {}, "Strategy, model, options and limits are the same.")]);
    const isOfOne = ({ name, a: mine, b: other }) => name.startsWith("options.") && (mine ?? other) !== null && (mine === null || other === null);
    const row = ({ name, a: mine, b: other }) => [plainName(name.replace("options.", "")), ...[mine, other].map((value) => said(name === "model" ? modelName(value) : value))];
    const sheet = (found) => wide(table("", ["", "Run A", "Run B"], found.map(row)));
    const [own, both] = [differing.filter(isOfOne), differing.filter((one) => !isOfOne(one))];
    const rest = own.length > 0 && element("details", {}, element("summary", { class: "quiet" }, `${own.length} options that only one of the strategies has`), sheet(own));
    return section("Settings that differ", [both.length > 0 && sheet(both), rest].filter(Boolean));
  }

  function spend({ spend: all }, pages) {
    const wasted = (side) => spendOf(pages[side]).find(({ name }) => name === "tokens")?.on_dropped ?? null;
    const rows = [...all, { name: "tokens on dropped", a: wasted("a"), b: wasted("b") }].map(({ name, a: mine, b: other }) => {
      const known = Number.isFinite(mine) && Number.isFinite(other);
      const number = (value) => (Number.isFinite(value) ? amount(name, value) : "not known");
      return [ROW_WORDS[name] ?? plainName(name), number(mine), number(other), known ? difference(name, mine, other) : "—"];
    });
    const isSame = pages.a.problem === pages.b.problem;
    return wide(table("", ["", "Run A", "Run B", ...(isSame ? ["B compared with A"] : [])], isSame ? rows : rows.map((row) => row.slice(0, 3))));
  }

  function thoughts(diff, first, second) {
    const rows = alignTrees(first, second);
    const parted = partedNode(diff.parting, first, second);
    const differ = rows.findIndex((row) => !row.isSame);
    const index = rows.findIndex(({ a: left, b: right }) => parted !== null && (left?.id === parted || right?.id === parted));
    const place = Math.min(...[differ, index].filter((found) => found >= 0));
    const shown = rows.slice(0, SHOWN_ROWS);
    const items = shown.map((row, number) => {
      const cells = [cell(first, row.a, row), cell(second, row.b, row)];
      return element(
        "li",
        { class: row.isSame ? "aligned same" : "aligned", "data-parting": number === place },
        number === place && element("p", { class: "parting" }, "Here they part"),
        ...cells,
      );
    });
    const left = rows.length - items.length;
    return element(
      "div",
      {},
      quietLine(placesWords(rows)),
      element("ol", { class: "alignment" }, ...foldAlike(shown, items, place)),
      left > 0 && quietLine(`${left} more places are not shown.`),
    );
  }

  function cell(record, node, { depth, isSame }) {
    if (!node) return element("span", { class: "cell empty" }, element("span", { class: "unseen" }, "nothing here"));
    const indent = `${Math.min(depth, 8) * 0.7}rem`;
    const score = scoreOf(node);
    const spoken = [nodeLabel(node), firstLine(node.text).slice(0, 180), stateWord(node.state), score, isSame ? "" : "differs"];
    return element(
      "button",
      {
        class: "cell",
        "data-state": node.state,
        "aria-label": spoken.filter(Boolean).join(", "),
        size: { paddingInlineStart: `calc(0.4rem + ${indent})` },
        on: { click: () => go(record.page.id, node.id) },
      },
      element("span", { class: "top" }, mark(node.state), element("strong", {}, nodeLabel(node)), node.state === "dropped" && node.why && element("span", { class: "why" }, plainName(node.why.code)), score && element("span", { class: "score" }, score)),
      element("span", { class: "text" }, firstLine(node.text).slice(0, 180) || "—"),
    );
  }

  void load();
  return {
    close() {
      isClosed = true;
      host.replaceChildren();
    },
  };
}

/** The node of the question at which two runs part. */
function partedNode(parting, ...records) {
  for (const { questions, calls } of records) {
    const found = questions.get(parting?.id) ?? calls.get(parting?.id);
    if (found) return found.node;
  }
  return null;
}

/** A value as words. */
function said(value, indent = 0) {
  if (value === null || value === undefined) return "—";
  if (Array.isArray(value) && value.every((part) => typeof part === "string")) return value.join(", ");
  return typeof value === "object" ? JSON.stringify(value, null, indent) : String(value);
}

/** Two texts without the lines that both begin with, but for the last of them. */
function fromDifference(texts) {
  const [a, b] = texts.map((text) => text.split("\n"));
  let alike = 0;
  while (alike < Math.min(a.length, b.length) && a[alike] === b[alike]) alike += 1;
  if (alike < 3) return texts;
  return [a, b].map((lines) => [`… ${alike - 1} lines alike`, ...lines.slice(alike - 1)].join("\n"));
}

function section(title, parts) {
  return element("section", { class: "compared" }, heading(title), ...parts);
}

function wide(content) {
  content.caption?.remove();
  return element("div", { class: "scroll" }, content);
}

function difference(name, a, b) {
  if (a === b) return "the same";
  const share = a > 0 ? ` (${b > a ? "+" : "−"}${Math.round((100 * Math.abs(b - a)) / a)} %)` : "";
  return `${b > a ? "+" : "−"}${amount(name, Math.abs(b - a))}${share}`;
}

/** What one wants to know first: whether both came to the same, and which took less. */
function verdictOn(first, second, spend) {
  const [a, b] = [first, second].map(({ answer }) => answer?.trim().replaceAll(/\s+/g, " ").toLowerCase());
  const [one, other] = [first, second].map((page) => outcomeWord(page.outcome ?? page.status).toLowerCase());
  const said = a && b ? (a === b ? "Same answer" : "Different answers") : a ? "Only A has an answer" : b ? "Only B has an answer" : "Neither has an answer";
  const kinds = one === other ? "" : `, A ${one}, B ${other}`;
  const shares = [["usd", "less", "cost"], ["calls", "fewer", "calls"], ["tokens", "fewer", "tokens"], ["seconds", "less", "time"]].map(([name, less, word]) => {
    const { a: mine, b: its } = spend.find((entry) => entry.name === name) ?? {};
    if (!(mine > 0) || !Number.isFinite(its)) return null;
    const share = Math.round((100 * (its - mine)) / mine);
    return share && `${Math.abs(share)} % ${share > 0 ? "more" : less} ${word}`;
  }).filter(Boolean);
  return [element("strong", {}, said), kinds, shares.length > 0 && ` · B: ${shares.join(", ")}`].filter(Boolean);
}

/** How much of two trees is alike. */
function placesWords(rows) {
  const same = rows.filter(({ isSame }) => isSame).length;
  const [onlyA, onlyB] = [rows.filter(({ b }) => !b).length, rows.filter(({ a }) => !a).length];
  const differ = rows.length - same - onlyA - onlyB;
  return dotted([`${same} of ${rows.length} thoughts are the same`, differ && `${differ} differ`, onlyA && `${onlyA} only in A`, onlyB && `${onlyB} only in B`]);
}

/** Folds what is alike, and what one side has alone, where there is much of it in a row. */
function foldAlike(rows, items, place) {
  const kindOf = ({ a, b, isSame }) => (isSame ? "the same in both" : !b ? "only in A" : !a ? "only in B" : "");
  const made = [];
  for (let from = 0; from < rows.length; ) {
    const kind = kindOf(rows[from]);
    let to = from + 1;
    while (to < rows.length && to !== place && kind && kindOf(rows[to]) === kind) to += 1;
    const part = items.slice(from, to);
    if (part.length < FOLDED_FROM || from === place) made.push(...part);
    else made.push(element("li", {}, element("details", {}, element("summary", { class: "quiet" }, `${part.length} ${kind}`), element("ol", { class: "alignment" }, ...part))));
    from = to;
  }
  return made;
}
