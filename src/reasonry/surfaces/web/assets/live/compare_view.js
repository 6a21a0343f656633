// Two runs side by side.

/** @param {HTMLElement} _host */
export function mountCompare(_host, _surroundings) {
  return { close() {} };
}
