// The example for a store that is still empty: the page's own file, not a run of the store.

const DEMO_KEY = "reasonry.demo";

/** Whether the reader still wants it. */
export function wantsDemo() {
  try {
    return localStorage.getItem(DEMO_KEY) === null;
  } catch {
    return true;
  }
}

/** Hides it for good. */
export function forgetDemo() {
  try {
    localStorage.setItem(DEMO_KEY, "removed");
  } catch {
    // a private window: until it is closed
  }
}

let loaded = null;

export function loadDemo() {
  loaded ??= fetch(new URL("../demo.json", import.meta.url), { credentials: "omit" }).then((response) => response.json());
  return loaded;
}
