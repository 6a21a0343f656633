// Where a page that is a file begins: the record that stands in it, or the one a host will send.

import { addressedId, setAddress } from "./address.js";
import { byId, element } from "./dom.js";
import { makeHelp } from "./help.js";
import { listenToHost } from "./host.js";
import { makeComparison } from "./comparison.js";
import { makePage } from "./page.js";
import { makeThemeSwitch } from "./theme.js";

const theme = element("button", { id: "theme" });
const help = element("button", { id: "ask-help" }, "Help ", element("kbd", {}, "?"));
const page = makePage(byId("page"), { tools: [theme, help], at: addressedId, move: setAddress });
makeThemeSwitch(theme);
makeHelp(help);
addEventListener("hashchange", () => page.goTo(addressedId()));

function render(document_) {
  if (document_.kind === "comparison") return makeComparison(byId("page"), {}).update(document_);
  document.title = `${document_.title || document_.problem} · Reasonry`;
  page.render(document_);
}

const embedded = JSON.parse(byId("page-data").textContent);
if (embedded) render(embedded);
else listenToHost(render);
window.reasonry = { render };
