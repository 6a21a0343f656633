// The selected thought in the page's address, so that a link can point at it.

/** @returns {string} the id after `#`, or nothing */
export function addressedId() {
  try {
    return decodeURIComponent(location.hash.slice(1));
  } catch {
    return "";
  }
}

/** @param {string} id */
export function setAddress(id) {
  try {
    history.replaceState(null, "", `#${encodeURIComponent(id)}`);
  } catch {
    // a frame without an address of its own
  }
}
