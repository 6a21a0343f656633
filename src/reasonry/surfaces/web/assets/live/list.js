// Runs and sessions, newest first: searched, filtered, and kept up to date while one looks.

import { element, isTyping, listen, quietLine } from "../dom.js";
import { count, dotted, duration, plainName } from "../wording.js";
import { api } from "./api.js";
import { loadDemo, wantsDemo } from "./demo.js";
import { entryOf, listRow } from "./list_row.js";
import { repeat } from "./polling.js";

const PAGE = 50;
const TYPING_MS = 250;
const STATUSES = ["active", "done", "failed", "cancelled"];
const KINDS = [["", "Runs and sessions"], ["runs", "Runs"], ["sessions", "Sessions"]];

/** @param {HTMLElement} main */
export function mountList(main, { query, onNavigate }) {
  document.title = "Reasonry";
  const wish = Object.fromEntries(new URLSearchParams(query));
  const entries = new Map(); // by address, so that a row stays while its text changes
  const chosen = new Set(); // runs to compare
  let cursors = null; // where the next page of each begins; null: none was read
  let announced = null; // the wish whose count was said
  let filtering = 0;
  let demo = null;

  const find = element("input", { type: "search", id: "find", placeholder: "Search", "aria-label": "Search runs and sessions", value: wish.query ?? "" });
  const kind = choice("Kind", KINDS, wish.kind);
  const status = choice("Status", [["", "Any status"], ...STATUSES.map((name) => [name, name])], wish.status);
  const strategy = choice("Strategy", [["", "Any strategy"], ...(wish.strategy ? [[wish.strategy, plainName(wish.strategy)]] : [])], wish.strategy);
  const found = quietLine();
  const standing = quietLine();
  const trouble = element("p", { class: "wrong", role: "alert", hidden: true });
  const rows = element("ul", { class: "rows", role: "list" });
  const more = element("button", { hidden: true, on: { click: loadMore } }, "Show more");
  const compare = element("a", { class: "button main", hidden: true }, "Compare the two");
  main.append(
    element("div", { class: "head" }, element("h1", { class: "unseen" }, "Runs and sessions"),
      element("div", { class: "tools", role: "search" }, find, kind, status, strategy),
      found, standing, compare),
    trouble, rows, more,
  );

  function parameters(of, cursor) {
    const wanted = { limit: PAGE, query: wish.query, status: wish.status, strategy: wish.strategy, cursor };
    if (of === "sessions") Object.assign(wanted, { guided: "true", status: wish.status === "active" ? "unfinished" : "all" });
    return new URLSearchParams(Object.entries(wanted).filter(([, value]) => value)).toString();
  }

  async function load(of, signal, cursor = null) {
    // A session is under way or over; it neither fails nor is it cancelled.
    if ((wish.kind && wish.kind !== of) || (of === "sessions" && ["failed", "cancelled"].includes(wish.status))) return { rows: [], next: null };
    const read = await api.get(`/${of}?${parameters(of, cursor)}`, { signal });
    const rows = read[of].map((one) => entryOf(of, one));
    const isOver = of === "sessions" && wish.status === "done";
    return { rows: isOver ? rows.filter((row) => row.status !== "active") : rows, next: read.next_cursor };
  }

  async function look(signal) {
    const [runs, sessions, { queue }] = await Promise.all([load("runs", signal), load("sessions", signal), api.get("/queue", { signal })]);
    if (signal.aborted) return;
    standing.textContent = queueLine(queue);
    standing.hidden = !standing.textContent;
    cursors ??= { runs: runs.next, sessions: sessions.next };
    refresh("runs", runs);
    refresh("sessions", sessions);
    const isBare = !wish.query && !wish.status && !wish.strategy && !wish.kind;
    demo = isBare && !entries.size && wantsDemo() ? entryOf("runs", asRow(await loadDemo())) : null;
    if (!signal.aborted) draw();
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
    try {
      const wanted = Object.entries(mine).filter(([, cursor]) => cursor);
      const pages = await Promise.all(wanted.map(([of, cursor]) => load(of, undefined, cursor)));
      if (cursors !== mine) return;
      wanted.forEach(([of], index) => {
        mine[of] = pages[index].next;
        for (const entry of pages[index].rows) if (!entries.has(entry.address)) entries.set(entry.address, entry);
      });
      draw();
    } catch (error) {
      tell(error);
    }
  }

  function draw() {
    const shown = [...entries.values()].sort((a, b) => b.at_ms - a.at_ms);
    if (demo) shown.push({ ...demo, isDemo: true });
    const old = new Map([...rows.children].map((item) => [item.dataset.address, item]));
    const items = shown.map((entry) => {
      const before = old.get(entry.address);
      const said = JSON.stringify(entry);
      if (before?.said === said) return before;
      const item = listRow(entry, chosen.has(entry.id), choose);
      item.said = said;
      if (before?.contains(document.activeElement)) queueMicrotask(() => item.querySelector("a").focus());
      return item;
    });
    if (items.some((item, index) => rows.children[index] !== item) || items.length !== rows.children.length) {
      const focused = rows.contains(document.activeElement) ? document.activeElement : null;
      rows.replaceChildren(...items);
      focused?.focus({ preventScroll: true });
    }
    more.hidden = !cursors.runs && !cursors.sessions;
    const number = entries.size;
    const isFiltered = Boolean(wish.query || wish.status || wish.strategy);
    found.textContent = number || isFiltered ? `${number}${more.hidden ? "" : "+"} ${isFiltered ? "found" : "shown"}`
      : demo ? "Nothing here yet: this is an example." : "Nothing here yet.";
    const key = JSON.stringify(wish);
    if (announced !== null && announced !== key) document.getElementById("live").textContent = found.textContent;
    announced = key;
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
    Object.assign(wish, { query: find.value.trim(), kind: kind.value, status: status.value, strategy: strategy.value });
    for (const name of Object.keys(wish)) if (!wish[name]) delete wish[name];
    const asked = new URLSearchParams(wish).toString();
    onNavigate(asked ? `/?${asked}` : "/", { replace: true });
    startOver();
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
    find.value = wish.query ?? "";
    for (const [field, name] of [[kind, "kind"], [status, "status"], [strategy, "strategy"]]) pick(field, wish[name]);
    startOver();
  }

  listen(find, "input", () => {
    clearTimeout(filtering);
    filtering = setTimeout(filter, TYPING_MS);
  });
  for (const field of [kind, status, strategy]) listen(field, "change", filter);
  api.get("/strategies").then(({ strategies }) => {
    for (const { name, title } of strategies) {
      if (name !== wish.strategy) strategy.append(element("option", { value: name }, title));
    }
  }, () => {});

  function onKey(event) {
    if (event.key === "Escape" && event.target === find) {
      if (find.value) {
        find.value = "";
        filter();
      } else find.blur();
      return;
    }
    const step = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 }[event.key];
    if (!step || (isTyping(event) && event.target !== find) || document.querySelector("dialog[open]")) return;
    if (event.target === find && !event.key.startsWith("Arrow")) return;
    const links = [...rows.querySelectorAll("a")];
    const at = links.findIndex((link) => link.closest("li").contains(document.activeElement));
    const next = links[at + step] ?? (step < 0 ? find : null);
    if (!next) return;
    event.preventDefault();
    next.focus();
  }
  listen(document, "keydown", onKey);

  return {
    show,
    refresh: polling.now,
    close() {
      document.removeEventListener("keydown", onKey);
      clearTimeout(filtering);
      polling.close();
    },
  };
}

/** Who works off the queue and what waits in it; nothing where the server does so alone, and at once. */
function queueLine(queue) {
  if (queue.workers === 1 && !queue.depth) return "";
  const { workers, depth, oldest_s } = queue;
  return dotted([count(workers, "worker"), depth && `${count(depth, "waiting", "waiting")}, ${duration(oldest_s * 1000)}`]);
}

function choice(label, options, value = "") {
  const made = element("select", { "aria-label": label }, ...options.map(([name, text]) => element("option", { value: name }, text)));
  pick(made, value);
  return made;
}

function pick(field, value = "") {
  field.value = value;
  if (field.selectedIndex < 0) field.selectedIndex = 0;
}

function asRow(page) {
  return { ...page, run_id: "demo", created_at_ms: page.begun_at_ms };
}
