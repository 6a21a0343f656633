// What was spent, beside what might be, and how much of it went to what was dropped.

import { byId, element, quietLine, show } from "./dom.js";
import { amount, costLine } from "./wording.js";

const NAMES = { usd: "dollars", seconds: "time" };

/** @param {import("./record.js").Recorded} record */
export function drawSpend({ page }) {
  const known = (page.spend ?? []).filter(({ used, limit }) => used > 0 || Number.isFinite(limit));
  const reused = costLine(page.reused);
  const taken = reused && element("p", { class: "reused" }, `Taken over from the run it was forked from, for $0: ${reused}`);
  show(byId("spend"), [...known.map(meter), ...(taken ? [taken] : [])]);
}

function meter({ name, used, limit, on_dropped: wasted }) {
  const dropped = used > 0 ? wasted : 0;
  const title = NAMES[name] ?? name;
  const hasLimit = Number.isFinite(limit);
  const whole = Math.max(hasLimit ? limit : 0, used ?? 0) || 1;
  const said = used === null ? "not known" : amount(name, used);
  const share = (value) => `${Math.min(100, (100 * value) / whole)}%`;
  const full = hasLimit && used >= limit;
  return element(
    "div",
    { class: full ? "meter full" : "meter" },
    element("p", { class: "name" }, title, full && element("strong", {}, " limit reached")),
    element("p", { class: "value" }, said, element("small", {}, hasLimit ? ` of ${amount(name, limit)}` : "")),
    (hasLimit || dropped > 0) && element(
      "div",
      {
        class: hasLimit ? "track" : "track unlimited",
        role: "meter",
        "aria-label": title,
        "aria-valuemin": 0,
        "aria-valuemax": whole,
        "aria-valuenow": used ?? 0,
        "aria-valuetext": hasLimit ? `${said} of ${amount(name, limit)}` : `${said}, no limit`,
      },
      element("span", { class: "used", size: { width: share(used ?? 0) } }),
      dropped > 0 && element("span", { class: "wasted", size: { width: share(dropped) } }),
    ),
    dropped > 0 &&
      quietLine(`${amount(name, dropped)} on dropped (${Math.round((100 * dropped) / used)} %)`),
  );
}
