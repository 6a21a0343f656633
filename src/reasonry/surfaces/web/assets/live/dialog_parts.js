// Parts of dialogs: the frame with its buttons and what went wrong, and fields with their labels.

import { element, listen } from "../dom.js";

/**
 * A dialog with a form. What `submit` throws is said in it, and it stays open.
 * @param {string} title
 * @param {Node[]} parts
 * @param {string} words on the button that submits
 * @param {() => Promise<unknown>} submit
 * @param {(error: unknown) => string} say
 */
export function makeDialog(title, parts, words, submit, say = String) {
  const said = element("p", { class: "said", role: "alert" });
  const send = element("button", { type: "submit", class: "main" }, words);
  const leave = element("button", { on: { click: () => dialog.close() } }, "Close");
  const form = element("form", { method: "dialog" }, element("h2", {}, title), ...parts, said, element("div", { class: "tools" }, send, leave));
  const dialog = /** @type {HTMLDialogElement} */ (element("dialog", { class: "help form", "aria-label": title }, form));
  listen(form, "keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !send.disabled) form.requestSubmit();
  });
  listen(form, "submit", async (event) => {
    event.preventDefault();
    send.disabled = true;
    said.textContent = "";
    try {
      await submit();
      dialog.close();
    } catch (error) {
      said.textContent = say(error);
    } finally {
      send.disabled = false;
    }
  });
  return dialog;
}

/** @param {number | null} value */
export function numberField(id, words, value, step = "1") {
  const label = element("label", { for: id }, words);
  const attributes = { id, type: "number", min: "0", step, value: value === null ? null : String(value) };
  return { label, input: /** @type {HTMLInputElement} */ (element("input", { ...attributes, placeholder: "no limit" })) };
}

/** A field with its label, and what is to be known of it. */
export function row(label, field, note = "") {
  return element("div", { class: "row" }, label, field, note && element("span", { class: "quiet" }, note));
}
