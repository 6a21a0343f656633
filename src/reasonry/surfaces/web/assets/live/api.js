// The server: documents asked for, streams followed, a token kept in memory alone.

const ROOT = new URL("api", document.baseURI).href;
const PATIENCE_MS = 20_000; // of a request; a stream has as long as it likes
const WAITS_MS = [500, 1000, 2000, 5000]; // before a stream is taken up again
const LAST = "ended"; // the event after which there is none

export class ApiError extends Error {
  /** @param {number} status 0: the server was not reached */
  constructor(status, { code = "unreachable", message = "", request_id = "", retryable = false, ...details } = {}) {
    super(message);
    Object.assign(this, { status, code, request_id, retryable, retry_after_s: details.retry_after_s, details });
  }
}

let token = "";
let asking = null; // one dialog, however many wait for it
let askFrame = async () => "";
let tellConnection = () => {};

/**
 * Says how the frame asks for a token, and hears whether the server is there.
 * @param {{ token(refused: boolean): Promise<string>, connection(is_there: boolean): void }} frame
 */
export function connectFrame(frame) {
  askFrame = frame.token;
  tellConnection = frame.connection;
}

/** One request; where the server wants a token, it is asked for, and the request is made again. */
async function send(path, { method = "GET", body, headers = {}, signal } = {}) {
  for (;;) {
    const used = token;
    const response = await attempt(path, {
      method,
      signal,
      headers: {
        ...headers,
        ...(used && { Authorization: `Bearer ${used}` }),
        ...(body === undefined ? {} : { "Content-Type": "application/json" }),
      },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    if (response.status !== 401) return response;
    if (token === used) {
      asking ??= askFrame(used !== "").finally(() => (asking = null));
      const given = await asking;
      if (!given) throw await refusal(response);
      token = given;
    }
  }
}

async function attempt(path, init) {
  try {
    const response = await fetch(ROOT + path, { ...init, cache: "no-store", credentials: "omit", redirect: "error" });
    tellConnection(true);
    return response;
  } catch (error) {
    if (init.signal?.aborted && init.signal.reason?.name !== "TimeoutError") throw error;
    tellConnection(false);
    throw new ApiError(0, { message: "The server does not answer.", retryable: true });
  }
}

/** What the server says is wrong. */
async function refusal(response) {
  let told = null;
  try {
    told = (await response.json()).error;
  } catch {
    // a proxy's page, or nothing
  }
  const seconds = Number(response.headers.get("Retry-After")) || undefined;
  const plain = { code: "refused", message: `The server refused it (${response.status}).`, retryable: response.status > 499 };
  return new ApiError(response.status, { retry_after_s: seconds, ...(told?.message ? told : plain) });
}

async function read(path, { etag, ...init } = {}) {
  const headers = { ...init.headers, ...(etag && { "If-None-Match": etag }) };
  const patience = AbortSignal.timeout(PATIENCE_MS);
  const signal = init.signal ? AbortSignal.any([init.signal, patience]) : patience;
  const response = await send(path, { ...init, headers, signal });
  if (response.status === 304) return { document: null, etag };
  if (!response.ok) throw await refusal(response);
  const found = response.status === 204 ? null : await response.json();
  return etag === undefined ? found : { document: found, etag: response.headers.get("ETag") ?? "" };
}

const write = (method) => (path, body, { key, signal } = {}) =>
  read(path, { method, body, signal, headers: key ? { "Idempotency-Key": key } : {} });

/** Follows events, taken up again after the last one where the connection is lost; see `api.stream`. */
function stream(path, onEvent, { after, onState = () => {} } = {}) {
  const control = new AbortController();
  let last = after === undefined ? "" : String(after);
  let lost = 0;

  async function follow() {
    const headers = { Accept: "text/event-stream", ...(last && { "Last-Event-ID": last }) };
    const response = await send(path, { headers, signal: control.signal });
    if (!response.ok) throw await refusal(response);
    onState({ state: "open" });
    for await (const event of eventsIn(response.body)) {
      if (control.signal.aborted) return;
      if (event.id !== null) last = event.id;
      lost = 0;
      onEvent(event);
      if (event.kind === LAST) {
        control.abort();
        onState({ state: "ended" });
      }
    }
  }

  async function goOn() {
    while (!control.signal.aborted) {
      let wait_ms = WAITS_MS[Math.min(lost++, WAITS_MS.length - 1)];
      try {
        await follow();
      } catch (error) {
        if (control.signal.aborted) return;
        if (error instanceof ApiError && error.status && !error.retryable) return onState({ state: "refused", error });
        if (!(error instanceof ApiError)) tellConnection(false);
        wait_ms = Math.max(wait_ms, 1000 * (error.retry_after_s ?? 0));
      }
      if (control.signal.aborted) return;
      onState({ state: "lost" });
      await new Promise((done) => setTimeout(done, wait_ms));
    }
  }

  void goOn();
  return { close: () => control.abort() };
}

/** The events in the bytes of a stream. */
async function* eventsIn(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const blocks = (rest + value).replaceAll(/\r\n?/g, "\n").split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      const event = eventOf(block);
      if (event) yield event;
    }
  }
}

function eventOf(block) {
  const fields = { id: null, event: "message", data: [] };
  for (const line of block.split("\n")) {
    const [, name, value] = /^(\w+): ?(.*)$/.exec(line) ?? [];
    if (name === "data") fields.data.push(value);
    else if (name in fields) fields[name] = value;
  }
  if (!fields.data.length) return null;
  const text = fields.data.join("\n");
  return { id: fields.id, kind: fields.event, data: text ? JSON.parse(text) : {} };
}

/** Paths are what comes after `/api`. Everything rejects with an `ApiError`. */
export const api = {
  get: read,
  post: write("POST"),
  patch: write("PATCH"),
  remove: write("DELETE"),
  stream,
  newKey: () => Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join(""),
  forget: () => (token = ""),
  /** Whether the server is there; the frame hears it. */
  isThere: () => attempt("/../healthz", { signal: AbortSignal.timeout(PATIENCE_MS) }).then(() => true, () => false),
  say(error) {
    if (error?.name === "TimeoutError") return "The server took too long to answer.";
    if (!(error instanceof ApiError)) return `The page failed: ${error?.message ?? error}`;
    const again = error.retry_after_s ? ` Try again in ${Math.ceil(error.retry_after_s)} s.` : "";
    const choices = error.details.choices?.length ? ` There are: ${error.details.choices.slice(0, 12).join(", ")}.` : "";
    const id = error.status === 500 && error.request_id ? ` (${error.request_id})` : "";
    const end = (choices || again) && !error.message.endsWith(".") ? "." : "";
    return error.message + id + end + choices + again;
  },
};
