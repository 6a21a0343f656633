// What was used, in one line: of what there may be, and how much of it went to what was dropped.

import { byId, element, show } from "./dom.js";
import { amount, costLine, duration } from "./wording.js";

const UNLIMITED = ["calls", "tokens", "usd", "seconds"]; // worth a word where they have no limit

/**
 * @param {import("./record.js").Recorded} record
 * @param {{ addressOf?(id: string): string }} around
 */
export function drawSpend({ page, spend: all }, { addressOf }) {
  const known = all.filter(({ name, used, limit }) => Number.isFinite(limit) || (used > 0 && UNLIMITED.includes(name)));
  const reused = costLine(page.reused);
  const parent = "the run it was forked from";
  const origin = addressOf && page.forked_from ? element("a", { href: addressOf(page.forked_from) }, parent) : parent;
  const parts = [
    ...known.map(meter),
    droppedShare(all),
    pace(page, all),
    reused && element("span", { class: "reused" }, `Reused for $0: ${reused} from `, origin),
  ];
  show(byId("spend"), parts.filter(Boolean));
}

function meter({ name, used, limit }) {
  const hasLimit = Number.isFinite(limit);
  const said = used === null ? "not known" : amount(name, used);
  const isFull = hasLimit && used >= limit;
  const unit = { usd: "", seconds: "" }[name] ?? ` ${used === 1 && !hasLimit ? name.slice(0, -1) : name}`;
  const whole = hasLimit ? `${said} of ${amount(name, limit)}` : said;
  return element(
    "span",
    { class: isFull ? "meter full" : "meter" },
    element("span", { class: "value" }, whole),
    unit,
    isFull && element("strong", {}, " limit reached"),
    hasLimit && track(name, used ?? 0, limit, whole),
  );
}

function track(name, used, limit, said) {
  const whole = Math.max(limit, used) || 1;
  return element(
    "span",
    {
      class: "track",
      role: "meter",
      "aria-label": name === "usd" ? "dollars" : name,
      "aria-valuemin": 0,
      "aria-valuemax": whole,
      "aria-valuenow": used,
      "aria-valuetext": said,
    },
    element("span", { class: "used", size: { width: `${Math.min(100, (100 * used) / whole)}%` } }),
  );
}

/** How fast a run at work asks, and when it comes to its limit of calls at that. */
function pace({ status, paused, duration_ms: ms }, all) {
  const calls = all.find(({ name }) => name === "calls");
  if (status !== "active" || paused || !(calls?.used > 2) || !(ms > 1000)) return null;
  const each_ms = ms / calls.used;
  const left = calls.limit - calls.used;
  const until = left > 0 && Number.isFinite(left) ? `, its limit in about ${duration(left * each_ms)}` : "";
  return element("span", {}, `a call every ${duration(each_ms)}${until}`);
}

/** The share of what is dearest that went to dropped branches. */
function droppedShare(all) {
  const found = ["usd", "tokens", "calls"].map((name) => all.find((one) => one.name === name)).find((one) => one?.used > 0);
  if (!found?.on_dropped) return null;
  const share = Math.round((100 * found.on_dropped) / found.used);
  const said = `${amount(found.name, found.on_dropped)}${found.name === "usd" ? "" : ` ${found.name}`}`;
  return element("span", { title: said }, `${share} % on dropped branches`);
}
