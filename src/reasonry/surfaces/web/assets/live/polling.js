// Looking again and again: soon enough to see what other processes write, and not at all in a window nobody sees.

import { listen } from "../dom.js";

const EVERY_MS = 1500;

/**
 * @param {(signal: AbortSignal) => Promise<void>} look
 * @param {(error: Error | null) => void} tell null: it is well again; a server that is not there is said by the frame
 * @returns {{ now(): void, close(): void }}
 */
export function repeat(look, tell) {
  let control = new AbortController();
  let timer = 0;

  async function once() {
    clearTimeout(timer);
    control.abort();
    const mine = (control = new AbortController());
    try {
      if (document.visibilityState === "visible") await look(mine.signal);
      if (!mine.signal.aborted) tell(null);
    } catch (error) {
      if (!mine.signal.aborted && error.status !== 0) tell(error);
      if (error.status >= 400 && error.status < 500 && !error.retryable) return;
    }
    if (!mine.signal.aborted) timer = setTimeout(once, EVERY_MS);
  }

  const seen = () => document.visibilityState === "visible" && void once();
  listen(document, "visibilitychange", seen);
  void once();
  return {
    now: () => void once(),
    close() {
      document.removeEventListener("visibilitychange", seen);
      clearTimeout(timer);
      control.abort();
    },
  };
}
