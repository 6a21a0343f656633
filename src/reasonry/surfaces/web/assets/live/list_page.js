// A page of runs or of sessions, as the filters of the list ask for it.

import { api } from "./api.js";
import { entryOf } from "./list_row.js";

const PAGE = 50;
export const OUTCOMES = ["active", "waiting", "solved", "answered", "stopped", "unsolved", "error"]; // of runs
const OF_SESSIONS = ["active", "ended"];

/** Returns the rows of a page, and the cursor of the next. */
export async function loadPage(of, wish, { signal, cursor = null }) {
  const has = of === "sessions" ? OF_SESSIONS : OUTCOMES;
  if (of === "sessions" && (wish.model || wish.since || wish.cost)) return { rows: [], next: null };
  if ((wish.kind && wish.kind !== of) || (wish.outcome && !has.includes(wish.outcome))) return { rows: [], next: null };
  const read = await api.get(`/${of}?${parameters(of, wish, cursor)}`, { signal });
  const rows = read[of].map((one) => entryOf(of, one));
  const isOver = of === "sessions" && wish.outcome === "ended";
  return { rows: isOver ? rows.filter((row) => row.status !== "active") : rows, next: read.next_cursor };
}

function parameters(of, wish, cursor) {
  const isActive = wish.outcome === "active";
  const wanted = { limit: PAGE, query: wish.query, strategy: wish.strategy, cursor };
  if (of === "sessions") Object.assign(wanted, { guided: "true", status: isActive ? "unfinished" : "all" });
  else Object.assign(wanted, isActive ? { status: "active" } : { outcome: wish.outcome }, { model: wish.model, min_usd: wish.cost, since_ms: wish.since && Date.now() - 3_600_000 * wish.since });
  return new URLSearchParams(Object.entries(wanted).filter(([, value]) => value)).toString();
}
