// How the spending grew, under the time it grew in, with its limit where there is one.

import { drawn, quietLine } from "./dom.js";
import { amount } from "./wording.js";

/** @returns {HTMLElement[]} nothing where nothing was counted */
export function spendLine(record, axis) {
  const name = nearest(record);
  const paid = record.page.questions
    .filter(({ ended_at_ms: ended, begun_at_ms: begun, cost }) => Number.isFinite(ended ?? begun) && cost?.[name])
    .map(({ ended_at_ms: ended, begun_at_ms: begun, cost }) => ({ at: axis.at(ended ?? begun), cost: cost[name] }))
    .sort((a, b) => a.at - b.at);
  if (paid.length < 2) return [];
  const limit = record.spend.find((one) => one.name === name)?.limit;
  const total = paid.reduce((sum, { cost }) => sum + cost, 0);
  const near = Number.isFinite(limit) && limit < total * 3;
  const top = near ? Math.max(limit, total) : total;
  let sum = 0;
  let line = "M0 100";
  for (const { at, cost } of paid) {
    sum += cost;
    line += `H${at * 1000}V${100 - (100 * sum) / top}`;
  }
  const drawing = drawn(
    "svg",
    { viewBox: "0 -4 1000 108", preserveAspectRatio: "none", class: "growth", "aria-hidden": "true" },
    drawn("path", { d: `${line}H1000V100Z`, class: "area" }),
    drawn("path", { d: `${line}H1000`, class: "line" }),
    near && drawn("path", { d: limitPath(record.page, name, limit, axis, (value) => 100 - (100 * Math.min(value, top)) / top), class: "limit" }),
  );
  const said = near ? `; the dashed line is the limit of ${amount(name, limit)}` : "";
  return [drawing, quietLine(`${amount(name, total)} ${name === "usd" ? "" : `${name} `}in all${said}`)];
}

/** The limit as it was at each time. */
function limitPath({ budgets = [] }, name, limit, axis, height) {
  const steps = budgets.map(([at_ms, budget]) => ({ at_ms, limit: budget[name] ?? null }));
  let path = "";
  let isDrawn = false; // up to here
  for (const one of steps.length ? steps : [{ at_ms: 0, limit }]) {
    const at = axis.at(one.at_ms) * 1000;
    if (isDrawn) path += `H${at}`;
    isDrawn &&= one.limit !== null;
    if (one.limit === null) continue;
    path += isDrawn ? `V${height(one.limit)}` : `M${at} ${height(one.limit)}`;
    isDrawn = true;
  }
  return isDrawn ? `${path}H1000` : path;
}

/** What is nearest to its limit, of what questions cost; without limits: dollars, else tokens, else calls. */
function nearest({ page: { questions }, spend }) {
  const known = ["usd", "tokens", "calls"].filter((name) => questions.some(({ cost }) => cost?.[name]));
  const share = (name) => {
    const { used, limit } = spend.find((one) => one.name === name) ?? {};
    return Number.isFinite(limit) && used ? used / limit : 0;
  };
  return known.sort((a, b) => share(b) - share(a))[0] ?? "calls";
}
