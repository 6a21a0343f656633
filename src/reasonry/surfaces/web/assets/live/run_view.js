// A run or a session in the live page: drawn as in a file, drawn anew as it grows, and controlled.

import { byId, element } from "../dom.js";
import { makePage } from "../page.js";
import { readRecord } from "../record.js";
import { makeControls } from "./controls.js";
import { makeForkDialog } from "./fork_dialog.js";
import { makeLiveText } from "./live_text.js";

const LEAST_WAIT_MS = 250; // between two drawings
const SHARE = 3; // of the time a drawing takes, kept free between two

/**
 * The drawing of a page document that somebody else asks for.
 * @param {HTMLElement} host
 * @param {{ at?: string | null, onNavigate(path: string, how: { replace: boolean }): void }} surroundings `at`: the
 *   thought or question that is pointed at
 */
export function mountDocument(host, { at = null, onNavigate, menu = [], ...around }) {
  let page = null;
  let here = at ?? "";
  const move = (id) => {
    here = id;
    const path = [`${page.kind}s`, page.id, id].map(encodeURIComponent).join("/");
    onNavigate(`/${path}`, { replace: true });
  };
  const tools = [...(around.tools ?? []), ...menu];
  const addressOf = (id) => `#/runs/${encodeURIComponent(id)}`;
  const drawing = makePage(host, { ...around, tools, addressOf, at: () => here, move });
  return {
    show(id) {
      if (!id || id === here) return;
      here = id;
      drawing.goTo(id);
    },
    update(document) {
      page = document;
      drawing.render(document);
    },
    select: drawing.select,
    close: drawing.close,
  };
}

/**
 * A run: asked for, followed, drawn as it grows.
 * @param {HTMLElement} host
 * @param {object} surroundings
 * @param {(page: object) => void} [surroundings.onDocument] is told of each document that is drawn
 */
export function mountRun(host, { api, runId, at, onNavigate, menu, onDocument = () => {} }) {
  const path = `/runs/${encodeURIComponent(runId)}`;
  let page = null;
  let etag = "";
  let isIdle = false; // active, but nobody works on it
  let isResumable = false; // and nobody will, unless it is resumed
  let timer = 0;
  let isAsking = false;
  let isStale = false;
  let took_ms = 0;
  let stream = null;
  let isClosed = false;

  const controls = makeControls({ api, path, onNavigate, changed: refresh });
  const fork = makeForkDialog({ api, path, onNavigate });
  const view = mountDocument(host, {
    at,
    onNavigate,
    tools: controls.elements,
    menu,
    questionTools,
  });
  const texts = makeLiveText({ select: view.select });

  function forkButton(click) {
    return element("button", { on: { click } }, "Fork from here …");
  }

  function questionTools(question) {
    if (question.status === "open") return page.mode === "driven" ? [texts.field(question.id)] : [];
    return [forkButton(() => fork.open(page, question.node, question.id))];
  }

  function update(document) {
    page = { ...document, resumable: isResumable };
    onDocument(page);
    view.update(page);
    const isAtWork = page.status === "active" && !page.paused && !isIdle && page.mode === "driven";
    controls.draw(page, { isIdle });
    texts.draw(byId("waiting"), readRecord(page), isAtWork);
  }

  /** Asks for the document now. Asked meanwhile, it is asked for once more. */
  async function refresh() {
    clearTimeout(timer);
    timer = 0;
    if (isAsking) return void (isStale = true);
    isAsking = true;
    isStale = false;
    const begun = performance.now();
    try {
      const found = await api.get(`${path}/page`, { etag });
      if (isClosed) return;
      etag = found.etag;
      if (found.document || isIdle) update(found.document ?? page);
      if (stream === null && page.status === "active") follow();
    } catch (error) {
      if (!isClosed) fail(error);
    } finally {
      took_ms = performance.now() - begun;
      isAsking = false;
      if (isStale && !isClosed) refreshSoon();
    }
  }

  function refreshSoon() {
    if (isAsking) isStale = true;
    else timer ||= setTimeout(refresh, Math.max(LEAST_WAIT_MS, SHARE * took_ms));
  }

  function follow() {
    stream = api.stream(`${path}/events?text=true`, hear, {
      after: page.position ?? 0,
      onState({ state }) {
        // A resumed run sends events again; until then nothing comes.
        if (state === "ended") stream = null;
      },
    });
  }

  function hear({ kind, data }) {
    if (kind === "text") texts.add(data.effect, data.text);
    else if (kind === "retrying") texts.note(data.effect, `Asked again in ${Math.ceil(data.delay_s)} s: ${data.reason}`);
    else if (kind === "idle" || kind === "ended") {
      isIdle = kind === "idle";
      isResumable = isIdle && data.resumable;
      void refresh();
    } else if (kind !== "sent") {
      isIdle = isResumable = false;
      refreshSoon();
    }
  }

  function fail(error) {
    if (page) return controls.say(api.say(error));
    const again = element("button", { on: { click: refresh } }, "Try again");
    byId("problem").textContent = "This run cannot be shown";
    byId("outcome").hidden = false;
    const search = element("a", { href: "#/" }, "Search all runs and sessions");
    const isLost = [400, 404].includes(error.status);
    byId("outcome").replaceChildren(element("p", { class: "reason" }, api.say(error)), ...(isLost ? [search] : [again, search]));
  }

  void refresh();
  return {
    show: view.show,
    update,
    refresh,
    close() {
      isClosed = true;
      clearTimeout(timer);
      stream?.close();
      texts.close();
      fork.close();
      controls.close();
      view.close();
    },
  };
}
