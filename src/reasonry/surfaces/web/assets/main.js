// Where the page begins: the record that stands in it, or the one a host will send.

import { byId } from "./dom.js";
import { listenToHost } from "./host.js";
import { makePage } from "./page.js";

const { render } = makePage();
const embedded = JSON.parse(byId("page-data").textContent);
if (embedded) render(embedded);
else listenToHost(render);
window.reasonry = { render };
