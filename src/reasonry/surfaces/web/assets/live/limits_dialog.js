// The limits of a run, to be raised or lowered.

import { element } from "../dom.js";
import { spendOf } from "../record.js";
import { amount } from "../wording.js";
import { makeDialog, numberField, row } from "./dialog_parts.js";

const LIMIT_NAMES = { calls: "Calls", tokens: "Tokens", usd: "Dollars", seconds: "Seconds", thoughts: "Thoughts", nodes: "Nodes" };

/**
 * @param {object} page
 * @param {(budget: Record<string, number | null>) => Promise<void>} set is given what was changed; null lifts a limit
 * @param {(error: unknown) => string} say
 */
export function limitsDialog(page, set, say) {
  const spend = new Map(spendOf(page).map((one) => [one.name, one]));
  const fields = limitFields(page);
  const words = page.status === "active" ? "Set limits" : "Resume";
  const note = element(
    "p",
    { class: "quiet" },
    "An empty field means no limit. A limit below the usage so far ends the run with its best answer so far.",
  );
  const rows = [...fields].map(([name, { label, input }]) => {
    const used = spend.get(name)?.used;
    return row(label, input, Number.isFinite(used) ? `${amount(name, used)} used` : "");
  });
  return makeDialog("Limits", [note, ...rows], words, () => set(changedLimits(fields)), say);
}

/** A field for each limit, with what is set now. */
export function limitFields(page) {
  const { budget = {} } = page;
  return new Map(
    Object.entries(LIMIT_NAMES).map(([name, words]) => {
      const step = name === "usd" || name === "seconds" ? "any" : "1";
      return [name, numberField(`limit-${name}`, words, budget[name] ?? null, step)];
    }),
  );
}

/** The limits that are not as they were. */
export function changedLimits(fields) {
  const changed = {};
  for (const [name, { input }] of fields) {
    if (input.value === input.defaultValue) continue;
    changed[name] = input.value === "" ? null : Number(input.value);
  }
  return changed;
}
