// What is shown of one thing: a run with its questions, a session as it grows, two runs side by side.

import { byId, element, listen } from "../dom.js";
import { api } from "./api.js";
import { mountCompare } from "./compare_view.js";
import { confirmRemoval } from "./dialogs.js";
import { repeat } from "./polling.js";
import { makeQuestions } from "./questions.js";
import { mountDocument, mountRun } from "./run_view.js";

const SEARCHED = 200; // characters of a problem

/** A run; where it is coached, with what it asks of the reader. */
export function mountRunView(main, { runId, at, onNavigate, isNew }) {
  const menu = makeMenu("run", `/runs/${encodeURIComponent(runId)}`, onNavigate);
  const questions = makeQuestions(runId, isNew);
  const host = element("div", {});
  main.append(questions.panel, host);
  const onDocument = (page) => {
    setTitle(page);
    menu.show(page);
    questions.update(page);
  };
  const view = mountRun(host, { api, runId, at, onNavigate, menu: [menu], onDocument });
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
  main.append(trouble, host);
  const menu = makeMenu("session", path, onNavigate);
  const view = mountDocument(host, { at, onNavigate, menu: [menu] });
  let etag = "";
  const polling = repeat(
    async (signal) => {
      const read = await api.get(`${path}/page`, { etag, signal });
      if (signal.aborted || !read.document) return;
      etag = read.etag;
      setTitle(read.document);
      menu.show(read.document);
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

/** Two runs side by side. */
export function mountComparison(main, { a, b, onNavigate }) {
  document.title = "Two runs · Reasonry";
  const host = element("div", {});
  main.append(host);
  return mountCompare(host, { api, a, b, onNavigate });
}

/** What is seldom done with a run or a session as a whole. */
function makeMenu(what, path, onNavigate) {
  const trouble = element("span", { class: "wrong", role: "alert" });
  const button = element("button", {}, `Delete this ${what} …`);
  listen(button, "click", async () => {
    if (!(await confirmRemoval(`this ${what}`))) return;
    try {
      await api.remove(path);
      onNavigate("/");
    } catch (error) {
      trouble.textContent = api.say(error);
    }
  });
  const alike = element("a", { class: "button", hidden: true }, "Forks and other runs of this problem");
  const menu = element("details", { class: "menu", hidden: true }, element("summary", { "aria-label": "More" }, "⋯"), element("div", {}, alike, button, trouble));
  menu.show = (page) => {
    menu.hidden = false;
    button.hidden = page.kind === "run" && page.status === "active"; // it is cancelled first
    alike.hidden = page.kind !== "run" || !page.problem;
    alike.href = `#/?${new URLSearchParams({ kind: "runs", query: page.problem.slice(0, SEARCHED) })}`;
  };
  listen(menu, "focusout", ({ relatedTarget }) => relatedTarget && !menu.contains(relatedTarget) && (menu.open = false));
  listen(menu, "keydown", ({ key }) => key === "Escape" && (menu.open = false));
  return menu;
}

function setTitle(page) {
  const sign = page.outcome === "waiting" ? "● " : "";
  document.title = `${sign}${page.title || page.problem || "Session"} · Reasonry`;
}
