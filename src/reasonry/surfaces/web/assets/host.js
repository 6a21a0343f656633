// Inside an MCP host: the record comes from the host as a tool's result, by messages between frame and host.

import { byId } from "./dom.js";
import { setTheme } from "./theme.js";

const PROTOCOL = "2026-01-26";
const TALLEST = 820; // px of a frame in a conversation: beyond it the page scrolls, and the detail stays in sight

/** @param {(page: object) => void} render */
export function listenToHost(render) {
  const host = window.parent;
  if (host === window) return;
  const send = (message) => host.postMessage({ jsonrpc: "2.0", ...message }, "*");
  addEventListener("message", ({ source, data }) => {
    if (source !== host || data?.jsonrpc !== "2.0") return;
    if (data.id === 1 && data.result) {
      setTheme(data.result.hostContext?.theme);
      send({ method: "ui/notifications/initialized", params: {} });
    } else if (data.method === "ui/notifications/host-context-changed") {
      if (data.params?.theme) setTheme(data.params.theme);
    } else if (data.method === "ui/notifications/tool-result") {
      const page = pageIn(data.params);
      if (page) render(page);
      else byId("problem").textContent = wordsIn(data.params) || "The host sent nothing to draw.";
    } else if (data.method === "ui/resource-teardown" || data.method === "ping") {
      send({ id: data.id, result: {} });
    }
  });
  send({
    id: 1,
    method: "ui/initialize",
    params: { protocolVersion: PROTOCOL, appInfo: { name: "reasonry", version: "1" }, appCapabilities: {} },
  });
  new ResizeObserver(() => {
    const { scrollWidth: width, scrollHeight: height } = document.documentElement;
    send({ method: "ui/notifications/size-changed", params: { width, height: Math.min(height, TALLEST) } });
  }).observe(document.documentElement);
}

/** What a result says instead, such as why there is no page. */
function wordsIn(result) {
  return (result?.content ?? []).map(({ text }) => text ?? "").join("\n");
}

/** The page document in a tool's result: its structured content, or the one text that is one. */
function pageIn(result) {
  const isPage = (found) => (Array.isArray(found?.nodes) ? found : null);
  const { structuredContent: structured, _meta: meta } = result ?? {};
  const sent = isPage(structured?.page) ?? isPage(structured) ?? isPage(meta?.page);
  if (sent) return sent;
  for (const { type, text } of result?.content ?? []) {
    if (type !== "text") continue;
    try {
      const page = isPage(JSON.parse(text));
      if (page) return page;
    } catch {
      // words for the model, not for the page
    }
  }
  return null;
}
