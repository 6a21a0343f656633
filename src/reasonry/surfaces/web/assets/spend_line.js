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
  const { limit, used } = record.spend.find((one) => one.name === name) ?? {};
  const total = used || paid.reduce((sum, { cost }) => sum + cost, 0); // what the head says
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
    near && drawn("path", { d: `M0 ${100 - (100 * limit) / top}H1000`, class: "limit" }),
  );
  const said = near ? `; the dashed line is the limit of ${amount(name, limit)}` : "";
  return [drawing, quietLine(`${amount(name, total)} ${name === "usd" ? "" : `${name} `}in all${said}`)];
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
