// Two runs side by side: what differs in their terms, where they part, what each took, and their thoughts aligned.

import { element, heading, quietLine, table } from "../dom.js";
import { mark } from "../marks.js";
import { nodeLabel, readRecord } from "../record.js";
import { amount, dotted, firstLine, modelName, plainName, scoreOf, stateWord } from "../wording.js";
import { alignTrees } from "./aligned.js";

const SIDES = ["a", "b"];
const WHAT = {
  question: "they were asked something else",
  outcome: "they were answered otherwise",
  only_a: "only the first asks this",
  only_b: "only the second asks this",
  strategy: "they have different strategies",
  end: "they end otherwise",
};
const SHOWN_ROWS = 2000;

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
    host.replaceChildren(
      element("h1", {}, first.problem === second.problem ? first.problem : "Two runs"),
      element("div", { class: "sides" }, ...SIDES.map((side) => head(side, pages[side]))),
      section("Where they part", [parting(diff)]),
      terms(diff),
      section("What they took", [spend(diff, pages)]),
      section("Thoughts side by side", [thoughts(diff, readRecord(first), readRecord(second))]),
    );
  }

  function head(side, page) {
    const open = element("button", { class: "link", on: { click: () => go(page.id) } }, `Run ${side.toUpperCase()}`);
    const facts = dotted([page.strategy_title, modelName(page.model), page.forked_from && "a fork"]);
    return element(
      "section",
      { class: "side" },
      element("h2", {}, open, element("span", { class: "status", "data-status": page.outcome ?? page.status }, plainName(page.outcome ?? page.status))),
      quietLine(facts),
      element("p", { class: page.answer ? "answer" : "answer none" }, page.answer ?? "No answer"),
      element("p", { class: "reason" }, page.detail || (page.reason === "success" ? "" : plainName(page.reason))),
    );
  }

  function parting({ parting: found, fork, asked }) {
    const shared = fork ? `Run ${fork.of === "a" ? "B" : "A"} is a fork of run ${fork.of.toUpperCase()}. ` : "";
    if (!found) return element("p", {}, `${shared}They do not part: all ${asked.alike} questions and calls were alike.`);
    const at = found.id && ` at ${found.id}, ${plainName(found.stage ?? "")}`;
    const alike = `${shared}Alike: the first ${asked.alike} questions and calls. Then${at ?? ""} ${WHAT[found.what] ?? found.what}.`;
    const texts = fromDifference(SIDES.map((side) => said(found[side], 2)));
    const sides = SIDES.map((side, index) =>
      element("section", { class: "side" }, element("h3", {}, `Run ${side.toUpperCase()}`), element("pre", {}, texts[index])),
    );
    return element("div", {}, element("p", {}, alike), element("div", { class: "sides" }, ...sides));
  }

  function terms({ terms: differing }) {
    if (!differing.length) return section("Terms", [element("p", {}, "Strategy, model, options and limits are the same.")]);
    const rows = differing.map((one) => [plainName(one.name), said(one.a), said(one.b)]);
    return section("Terms that differ", [wide(table("", ["", "Run A", "Run B"], rows))]);
  }

  function spend({ spend: all }, pages) {
    const wasted = (side) => pages[side].spend.find(({ name }) => name === "tokens")?.on_dropped ?? null;
    const rows = [...all, { name: "tokens on dropped", a: wasted("a"), b: wasted("b") }].map(({ name, a: mine, b: other }) => {
      const known = Number.isFinite(mine) && Number.isFinite(other);
      const number = (value) => (Number.isFinite(value) ? amount(name, value) : "not known");
      return [plainName(name), number(mine), number(other), known ? difference(name, mine, other) : "—"];
    });
    return wide(table("", ["", "Run A", "Run B", "B compared with A"], rows));
  }

  function thoughts(diff, first, second) {
    const rows = alignTrees(first, second);
    const parted = partedNode(diff.parting, first, second);
    const differ = rows.findIndex((row) => !row.isSame);
    const index = rows.findIndex(({ a: left, b: right }) => parted !== null && (left?.id === parted || right?.id === parted));
    const place = Math.min(...[differ, index].filter((found) => found >= 0));
    const items = rows.slice(0, SHOWN_ROWS).map((row, number) => {
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
      quietLine(`${rows.filter(({ isSame }) => isSame).length} of ${rows.length} places say the same.`),
      element("ol", { class: "alignment" }, ...items),
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
