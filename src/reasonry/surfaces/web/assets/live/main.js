// The frame: which view an address means, the token, the connection, the keys.

import { byId, element, isTyping, listen } from "../dom.js";
import { makeHelp } from "../help.js";
import { makeThemeSwitch } from "../theme.js";
import { api, connectFrame } from "./api.js";
import { mountComparisonTable } from "./comparison_view.js";
import { askToken } from "./dialogs.js";
import { mountList } from "./list.js";
import { mountNewRun } from "./new_run.js";
import { mountComparison, mountRunView, mountSession } from "./views.js";

const PAGE_KEYS = [
  ["j k", "in the list: the next, the previous row"],
  ["n", "a new run"],
  ["g", "back to the list"],
];
const AGAIN_MS = 2000;
const main = byId("main");
let mounted = null; // { name, close(), show?(at, query), refresh?() }
let back = 0; // the timer that asks whether the server is there again

/** What an address names: the view, what it is of, and the part of that which is pointed at. */
function readPlace() {
  const [path, query = ""] = location.hash.slice(1).split("?");
  const [view = "", ...ids] = path.split("/").slice(1).map(decoded);
  return { view, ids, query };
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function mount() {
  const { view, ids, query } = readPlace();
  const fixed = view === "compare" ? 2 : ["runs", "sessions", "comparisons"].includes(view) ? 1 : 0;
  const name = [view, ...ids.slice(0, fixed)].join("/");
  const at = ids[fixed] || null;
  if (mounted?.name === name) return mounted.show?.(at, query);
  mounted?.close();
  byId("live").textContent = "";
  main.replaceChildren();
  scrollTo(0, 0);
  const isNew = mounted?.name === "new";
  mounted = { name, ...mountView(view, ids, { api, at, onNavigate, isNew }, query) };
  const here = { "": "#/", new: "#/new" }[view];
  for (const link of document.querySelectorAll(".app a")) {
    if (link.hash === here) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

function mountView(view, ids, surroundings, query) {
  if (view === "" && !ids.length) return mountList(main, { ...surroundings, query });
  if (view === "new") return mountNewRun(main, { ...surroundings, query });
  if (view === "runs" && ids[0]) return mountRunView(main, { ...surroundings, runId: ids[0] });
  const isTable = view === "comparisons" || (view === "sessions" && ids[0]?.startsWith("comparison-"));
  if (isTable && ids[0]) return mountComparisonTable(main, { ...surroundings, id: ids[0], query });
  if (view === "sessions" && ids[0]) return mountSession(main, { ...surroundings, sessionId: ids[0] });
  if (view === "compare" && ids[1]) return mountComparison(main, { ...surroundings, a: ids[0], b: ids[1] });
  document.title = "Nothing here · Reasonry";
  main.append(element("h1", {}, "Nothing here"), element("p", {}, "No page has this address. ", element("a", { href: "#/" }, "Show all runs and sessions")));
  return { close() {} };
}

/** @param {string} path as it stands after `#` */
function onNavigate(path, { replace = false } = {}) {
  if (replace) history.replaceState(null, "", `#${path}`);
  else location.hash = path;
}

function sayConnection(isThere) {
  const line = byId("connection");
  if (isThere === line.hidden) return;
  line.hidden = isThere;
  line.textContent = isThere ? "" : "The server does not answer; trying again …";
  clearInterval(back);
  if (isThere) mounted?.refresh?.();
  else back = setInterval(api.isThere, AGAIN_MS);
}

connectFrame({
  connection: sayConnection,
  async token(refused) {
    const token = await askToken(refused);
    byId("forget").hidden = !token;
    return token;
  },
});
listen(byId("forget"), "click", () => {
  api.forget();
  byId("forget").hidden = true;
  mounted?.close();
  mounted = null;
  mount();
});
makeThemeSwitch(byId("theme"));
makeHelp(byId("ask-help"), PAGE_KEYS);
listen(document, "keydown", (event) => {
  if (isTyping(event) || document.querySelector("dialog[open]")) return;
  if (event.key === "n") location.hash = "/new";
  else if (event.key === "g") location.hash = "/";
  else if (event.key === "/" && byId("find")) byId("find").focus();
  else return;
  event.preventDefault();
});
listen(document.querySelector(".skip"), "click", (event) => {
  event.preventDefault();
  main.focus();
});
addEventListener("hashchange", mount);
mount();
