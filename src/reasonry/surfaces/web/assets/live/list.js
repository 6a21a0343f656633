// Runs and sessions as a table: searched, filtered, sorted, and kept up to date while one looks.

import { element, listen, quietLine } from "../dom.js";
import { dayWord, modelName, outcomeWord, plainName } from "../wording.js";
import { api } from "./api.js";
import { choice, countRuns, foldable, makeFilterWords, offer, pick, queueLine } from "./filter_words.js";
import { walkWithKeys } from "./list_keys.js";
import { OUTCOMES, loadPage } from "./list_page.js";
import { COLUMNS, dayRow, entryOf, groupedRows, inOrderOf, listRow, sorting } from "./list_row.js";
import { repeat } from "./polling.js";

const TYPING_MS = 250;
const MOST = 1000; // rows that are read in order to sort or group them
const FEW = 25; // rows on a screen
const SINCE = [["", "Any time"], ["1", "Last hour"], ["24", "Last day"], ["168", "Last week"]]; // hours
const COSTS = [["", "Any cost"], ["0.01", "$0.01 or more"], ["0.1", "$0.10 or more"], ["1", "$1 or more"]];
const KINDS = [["", "Any kind"], ["runs", "Runs"], ["sessions", "Sessions"]];

/** @param {HTMLElement} main */
export function mountList(main, { query, onNavigate }) {
  document.title = "Reasonry";
  const wish = Object.fromEntries(new URLSearchParams(query));
  const entries = new Map(); // by address, so that a row stays while its text changes
  const chosen = new Set(); // runs to compare
  const opened = new Set(); // groups whose runs all show
  let total = ""; // what runs there are in all, in words
  let counted = null; // the latest runs and where they stood when they were counted
  let cursors = null; // where the next page of each begins; null: none was read
  let announced = null; // the wish whose count was said
  let filtering = 0;
  let isLoading = false;

  const find = element("input", { type: "search", id: "find", placeholder: "Search", "aria-label": "Search runs and sessions" });
  const kind = choice("Kind", KINDS);
  const names = [...OUTCOMES, "ended"];
  const outcome = choice("Outcome", [["", "Any outcome"], ...names.map((name) => [name, outcomeWord(name)])]);
  const strategy = choice("Strategy", [["", "Any strategy"]]);
  const model = choice("Model", [["", "Any model"]]);
  const cost = choice("Cost", COSTS);
  const since = choice("When", SINCE);
  const fields = { query: find, kind, outcome, strategy, model, cost, since };
  pickWished();
  const filters = makeFilterWords(fields, filter, onNavigate);
  const found = quietLine();
  const waiting = quietLine();
  const trouble = element("p", { class: "wrong", role: "alert", hidden: true });
  const rows = element("tbody", {});
  const heads = new Map(COLUMNS.map(([name, word]) => [name, element("th", { scope: "col", class: `of-${name}` }, element("button", { class: "link", on: { click: () => sortBy(name) } }, word))]));
  const sheet = element("table", { class: "rows" },
    element("caption", { class: "unseen" }, "Runs and sessions"),
    element("thead", {}, element("tr", {}, element("td", { class: "of-box" }), ...heads.values())), rows);
  const more = element("button", { hidden: true, on: { click: loadMore } }, "Show more");
  const compare = element("a", { class: "button main", hidden: true }, "Compare the two");
  main.append(
    element("div", { class: "head" }, element("h1", { class: "unseen" }, "Runs and sessions"),
      element("div", { class: "tools", role: "search" }, find, foldable(kind, outcome, strategy, model, cost, since)),
      found, waiting, compare),
    filters.chips, trouble, sheet, filters.nothing, more,
  );

  async function look(signal) {
    const [runs, sessions, queue] = await Promise.all([loadPage("runs", wish, { signal }), loadPage("sessions", wish, { signal }), api.get("/queue", { signal })]);
    if (signal.aborted) return;
    waiting.textContent = queueLine(queue);
    waiting.hidden = !waiting.textContent;
    cursors ??= { runs: runs.next, sessions: sessions.next };
    refresh("runs", runs);
    refresh("sessions", sessions);
    draw();
    readToSort();
    const stand = runs.rows.map(({ id, status }) => `${id} ${status}`).join();
    if (stand !== counted) void tally((counted = stand));
  }

  /** Counts the runs in all, and of each strategy, model and outcome. */
  async function tally() {
    total = await countRuns(fields).catch(() => total);
    if (cursors) draw();
  }

  /** Takes in a first page. What is as new as that and not on it was deleted; what is older has slid down. */
  function refresh(of, { rows: read, next }) {
    const there = new Set(read.map(({ address }) => address));
    const oldest_ms = next ? Math.min(...read.map(({ at_ms }) => at_ms)) : 0;
    for (const [address, entry] of entries) {
      if (entry.of === of && entry.at_ms >= oldest_ms && !there.has(address)) entries.delete(address);
    }
    for (const entry of read) entries.set(entry.address, entry);
  }

  async function loadMore() {
    const mine = cursors;
    if (isLoading || !mine) return;
    isLoading = true;
    try {
      const wanted = Object.entries(mine).filter(([, cursor]) => cursor);
      const pages = await Promise.all(wanted.map(([of, cursor]) => loadPage(of, wish, { cursor })));
      if (cursors !== mine) return;
      wanted.forEach(([of], index) => {
        mine[of] = pages[index].next;
        for (const entry of pages[index].rows) if (!entries.has(entry.address)) entries.set(entry.address, entry);
      });
      draw();
    } catch (error) {
      tell(error);
    } finally {
      isLoading = false;
    }
    if (cursors === mine) readToSort();
  }

  /** Reads on where rows are sorted otherwise than by time, or where groups leave few; as far as that goes. */
  function readToSort() {
    if ((wish.sort || rows.children.length < FEW) && !more.hidden && entries.size < MOST) void loadMore();
  }

  function draw() {
    const shown = groupedRows(inOrderOf(entries.values(), wish.sort), opened, !wish.sort && !isFiltered());
    const old = new Map([...rows.children].map((item) => [item.dataset.address, item]));
    let last = "";
    const byDay = wish.sort ? shown : shown.flatMap((entry) => {
      const day = entry.isMember ? last : dayWord(new Date(entry.at_ms));
      return day === last ? [entry] : [{ day: (last = day), address: day }, entry];
    });
    const items = byDay.map((entry) => {
      const before = old.get(entry.address);
      const said = JSON.stringify(entry);
      if (before?.said === said) return before;
      const item = entry.day ? dayRow(entry.day) : listRow(entry, chosen.has(entry.id), { choose, turn });
      item.said = said;
      if (before?.contains(document.activeElement)) {
        const part = document.activeElement.matches("button") ? "button" : "a";
        queueMicrotask(() => item.querySelector(part)?.focus());
      }
      return item;
    });
    if (items.some((item, index) => rows.children[index] !== item) || items.length !== rows.children.length) {
      const focused = rows.contains(document.activeElement) ? document.activeElement : null;
      rows.replaceChildren(...items);
      focused?.focus({ preventScroll: true });
    }
    more.hidden = !cursors.runs && !cursors.sessions;
    const number = entries.size;
    found.textContent = isFiltered() ? `${number}${more.hidden ? "" : "+"} found` : number ? total : "";
    const [by, isDown] = sorting(wish.sort);
    for (const [name, head] of heads) head.setAttribute("aria-sort", name === by ? (isDown ? "descending" : "ascending") : "none");
    sheet.hidden = !items.length;
    filters.draw({ wish, isEmpty: number === 0 });
    const key = JSON.stringify(wish);
    if (announced !== null && announced !== key) document.getElementById("live").textContent = found.textContent;
    announced = key;
  }

  function isFiltered() {
    return Object.keys(fields).some((name) => wish[name]);
  }

  /** Sorts by a column; by the same once more, the other way round. */
  function sortBy(name) {
    const [by, isDown] = sorting(wish.sort);
    const isNumber = ["cost", "time", "when"].includes(name);
    wish.sort = `${(name === by ? !isDown : isNumber) ? "-" : ""}${name}`;
    if (wish.sort === "-when") delete wish.sort;
    remember();
    draw();
    readToSort();
  }

  function turn(group) {
    if (!opened.delete(group)) opened.add(group);
    draw();
  }

  function choose(id, isChosen) {
    if (isChosen) chosen.add(id);
    else chosen.delete(id);
    const [a, b] = chosen;
    compare.hidden = chosen.size !== 2;
    compare.href = `#/compare/${encodeURIComponent(a)}/${encodeURIComponent(b)}`;
  }

  function tell(error) {
    trouble.hidden = error === null;
    trouble.textContent = error ? api.say(error) : "";
  }

  const polling = repeat(look, tell);

  function filter() {
    for (const [name, field] of Object.entries(fields)) wish[name] = field.value.trim();
    for (const name of Object.keys(wish)) if (!wish[name]) delete wish[name];
    remember();
    startOver();
  }

  function remember() {
    const asked = new URLSearchParams(wish).toString();
    onNavigate(asked ? `/?${asked}` : "/", { replace: true });
  }

  function startOver() {
    entries.clear();
    cursors = null;
    polling.now();
  }

  /** Takes what another address of the list asks for. */
  function show(_, asked) {
    clearTimeout(filtering);
    for (const name of Object.keys(wish)) delete wish[name];
    Object.assign(wish, Object.fromEntries(new URLSearchParams(asked)));
    pickWished();
    startOver();
  }

  function pickWished() {
    if (wish.strategy) offer(strategy, wish.strategy, plainName(wish.strategy));
    if (wish.model) offer(model, wish.model, modelName(wish.model));
    for (const [name, field] of Object.entries(fields)) if (field === find) field.value = wish[name] ?? ""; else pick(field, wish[name]);
  }

  listen(find, "input", () => {
    clearTimeout(filtering);
    filtering = setTimeout(filter, TYPING_MS);
  });
  for (const field of Object.values(fields)) if (field !== find) listen(field, "change", filter);
  const nearEnd = new IntersectionObserver((seen) => seen.some(({ isIntersecting }) => isIntersecting) && void loadMore());
  nearEnd.observe(more);
  api.get("/strategies").then(({ strategies }) => {
    for (const { name, title } of strategies) offer(strategy, name, title);
    void tally();
  }, () => {});

  const stopKeys = walkWithKeys(rows, find, filter);

  return {
    show,
    refresh: polling.now,
    close() {
      stopKeys();
      clearTimeout(filtering);
      nearEnd.disconnect();
      polling.close();
    },
  };
}
