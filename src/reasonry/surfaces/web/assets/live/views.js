// What is shown of one thing: a run with its questions, a session as it grows, the demo, two runs side by side.

import { byId, element, listen } from "../dom.js";
import { api } from "./api.js";
import { mountCompare } from "./compare_view.js";
import { confirmRemoval } from "./dialogs.js";
import { forgetDemo, loadDemo } from "./demo.js";
import { repeat } from "./polling.js";
import { makeQuestions } from "./questions.js";
import { mountDocument, mountRun } from "./run_view.js";

/** A run; where it is coached, with what it asks of the reader. */
export function mountRunView(main, { runId, at, onNavigate, isNew }) {
  const remove = removal("run", `/runs/${encodeURIComponent(runId)}`, onNavigate);
  const questions = makeQuestions(runId, isNew);
  const host = element("div", {});
  main.append(toolbar(remove), questions.panel, host);
  const onDocument = (page) => {
    setTitle(page);
    remove.hidden = page.status === "active"; // it is cancelled first
    questions.update(page);
  };
  const view = mountRun(host, { api, runId, at, onNavigate, onDocument });
  return {
    show: view.show,
    refresh: view.refresh,
    close() {
      questions.close();
      view.close();
    },
  };
}

/** A session, looked at anew while it is shown: whoever thinks in it may be another process. */
export function mountSession(main, { sessionId, at, onNavigate }) {
  const path = `/sessions/${encodeURIComponent(sessionId)}`;
  const host = element("div", {});
  const trouble = element("p", { class: "wrong", role: "alert", hidden: true });
  main.append(toolbar(removal("session", path, onNavigate)), trouble, host);
  const view = mountDocument(host, { at, onNavigate });
  let etag = "";
  const polling = repeat(
    async (signal) => {
      const read = await api.get(`${path}/page`, { etag, signal });
      if (signal.aborted || !read.document) return;
      etag = read.etag;
      setTitle(read.document);
      view.update(read.document);
    },
    (error) => {
      trouble.hidden = error === null;
      trouble.textContent = error ? api.say(error) : "";
      if (error && !etag) byId("problem").textContent = "This session cannot be shown";
    },
  );
  return {
    show: view.show,
    refresh: polling.now,
    close() {
      polling.close();
      view.close();
    },
  };
}

/** The example that is shown where there is nothing else. */
export function mountDemo(main, { at, onNavigate }) {
  const host = element("div", {});
  const remove = element("button", { on: { click: () => {
    forgetDemo();
    onNavigate("/");
  } } }, "Remove the example");
  const again = element("a", { class: "button main", hidden: true }, "Run it yourself");
  main.append(
    toolbar(again, remove),
    element("p", { class: "note" }, "An example, solved by exact arithmetic when this server was asked for it. It is not in your store and cost nothing."),
    host,
  );
  const view = mountDocument(host, { at, onNavigate });
  let open = true;
  loadDemo().then((page) => {
    if (!open) return;
    setTitle(page);
    const asked = new URLSearchParams({ problem: page.problem, strategy: page.strategy, model: page.model });
    again.href = `#/new?${asked}`;
    again.hidden = false;
    view.update({ ...page, id: "demo" });
  }, (error) => host.replaceChildren(element("p", { class: "wrong" }, api.say(error))));
  return {
    show: view.show,
    close() {
      open = false;
      view.close();
    },
  };
}

/** Two runs side by side. */
export function mountComparison(main, { a, b, onNavigate }) {
  document.title = "Two runs · Reasonry";
  const host = element("div", {});
  main.append(toolbar(), host);
  return mountCompare(host, { api, a, b, onNavigate });
}

function toolbar(...tools) {
  const list = element("a", { href: "#/" }, "← All runs and sessions");
  return element("div", { class: "above" }, list, element("div", { class: "tools" }, ...tools));
}

function removal(what, path, onNavigate) {
  const trouble = element("span", { class: "wrong", role: "alert" });
  const button = element("button", {}, "Delete");
  listen(button, "click", async () => {
    if (!(await confirmRemoval(`this ${what}`))) return;
    try {
      await api.remove(path);
      onNavigate("/");
    } catch (error) {
      trouble.textContent = api.say(error);
    }
  });
  return element("span", { class: "tools" }, trouble, button);
}

function setTitle(page) {
  document.title = `${page.title || page.problem || "Session"} · Reasonry`;
}
