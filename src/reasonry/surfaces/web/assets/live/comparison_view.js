// A comparison that may still be filling: looked at again and again, its filter in the address.

import { element } from "../dom.js";
import { makeComparison } from "../comparison.js";
import { api } from "./api.js";
import { repeat } from "./polling.js";

/** @param {{ id: string, query: string, onNavigate(path: string, how?: { replace: boolean }): void }} surroundings */
export function mountComparisonTable(main, { id, query, onNavigate }) {
  const [host, trouble] = [element("div", {}), element("p", { class: "wrong", role: "alert" })];
  const path = `/comparisons/${encodeURIComponent(id)}`;
  const filterIn = (text) => new URLSearchParams(text).get("show") ?? "all";
  let drawnText = "";
  document.title = "Comparison · Reasonry";
  main.append(trouble, host);

  function update(comparison) {
    const text = JSON.stringify(comparison);
    if (text !== drawnText) view.update(comparison);
    drawnText = text;
    if (comparison.complete) polling.close();
  }

  const view = makeComparison(host, {
    filter: filterIn(query),
    open: (runId) => onNavigate(`/runs/${encodeURIComponent(runId)}`),
    onFilter: (name) => onNavigate(`/comparisons/${encodeURIComponent(id)}?show=${name}`, { replace: true }),
  });
  const polling = repeat(
    async (signal) => update(await api.get(path, { signal })),
    (error) => (trouble.textContent = error ? api.say(error) : ""),
  );
  return {
    show: (_, text) => view.show(filterIn(text)),
    refresh: polling.now,
    close: polling.close,
  };
}
