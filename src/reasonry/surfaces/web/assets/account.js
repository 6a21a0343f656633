// The summary of the record.

import { byId, element, show } from "./dom.js";

/** @param {import("./record.js").Recorded} record */
export function drawAccount({ page }) {
  const blocks = (page.outline ?? []).map(block);
  const repeats = (page.nodes ?? []).some(({ kind }) => kind === "plan"); // then it stands above, with the plans
  const title = element("summary", {}, element("h2", {}, "Summary"));
  const whole = element("details", { open: !repeats }, title, ...blocks);
  show(byId("account"), blocks.length ? [whole] : []);
}

function block(one) {
  switch (one.kind) {
    case "heading":
      return element(one.level > 2 ? "h4" : "h3", {}, one.text);
    case "bullets":
      return element("ul", {}, ...one.items.map((item) => element("li", {}, item)));
    default:
      return element("p", { class: "prose" }, one.text ?? "");
  }
}
