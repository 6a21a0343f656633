// Which run to compare with: the one it was forked from, or one of the latest.

import { element, quietLine } from "../dom.js";
import { dotted, modelName } from "../wording.js";
import { makeDialog, row } from "./dialog_parts.js";

/**
 * @param {object} page
 * @param {import("./api.js").api} api
 * @param {(path: string) => void} onNavigate
 */
export function compareDialog(page, api, onNavigate) {
  const choice = element("select", { id: "compare-with" });
  const field = element("input", { id: "compare-id", placeholder: "or the id of any other", spellcheck: "false" });
  const fill = async () => {
    const { runs } = await api.get("/runs?limit=100");
    const others = runs.filter(({ run_id: id }) => id !== page.id);
    const rank = (run) => Number(run.run_id !== page.forked_from) + Number(!page.problem.startsWith(run.problem));
    others.sort((a, b) => rank(a) - rank(b));
    choice.replaceChildren(...others.map((run) => element("option", { value: run.run_id }, words(run, page))));
  };
  fill().catch((error) => choice.replaceWith(quietLine(api.say(error))));
  const parts = [
    row(element("label", { for: choice.id }, "Run"), choice),
    row(element("label", { for: field.id }, "Id"), field),
  ];
  return makeDialog("Compare with", parts, "Compare", async () => {
    const other = field.value.trim() || choice.value;
    if (!other) throw new Error("There is no other run yet.");
    const [a, b] = page.forked_from === other ? [other, page.id] : [page.id, other];
    onNavigate(`/compare/${encodeURIComponent(a)}/${encodeURIComponent(b)}`);
  }, api.say);
}

function words(run, page) {
  const when = run.created_at_ms ? new Date(run.created_at_ms).toLocaleString() : "";
  const origin = run.run_id === page.forked_from ? "forked from: " : "";
  return dotted([origin + (run.problem ?? run.run_id).slice(0, 60), run.strategy, modelName(run.model), when]);
}
