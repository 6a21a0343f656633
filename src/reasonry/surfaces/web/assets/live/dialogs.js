// What is asked in a box: the token of the server, and whether something is to go for good.

import { element, listen, quietLine } from "../dom.js";

/**
 * A token, or nothing where the reader would rather not; it is kept nowhere but in the memory of the page.
 * @param {boolean} refused whether one was given that the server does not know
 * @returns {Promise<string>}
 */
export function askToken(refused) {
  const field = element("input", {
    type: "password", id: "token", autocomplete: "off", spellcheck: "false", required: true,
  });
  return ask("This server asks for a token", "Continue", [
    refused && element("p", { role: "alert", class: "wrong" }, "The server does not know this token."),
    element("label", { for: "token" }, "Token"),
    field,
    quietLine("It stays in the memory of this page until you close or reload it."),
  ]).then((yes) => (yes ? field.value.trim() : ""));
}

/** @returns {Promise<boolean>} */
export function confirmRemoval(what) {
  return ask(`Delete ${what}?`, "Delete", [element("p", {}, "It is erased from the store and cannot be brought back.")]);
}

/** A dialog that settles: true at its button, false at Cancel and Escape. */
function ask(title, yes, content) {
  return new Promise((settle) => {
    let answer = false;
    const cancel = element("button", { on: { click: () => dialog.close() } }, "Cancel");
    const form = element(
      "form",
      { class: "box" },
      element("h2", { id: "asked" }, title),
      ...content,
      element("div", { class: "tools" }, element("button", { type: "submit", class: "main" }, yes), cancel),
    );
    listen(form, "submit", (event) => {
      event.preventDefault();
      answer = true;
      dialog.close();
    });
    const dialog = element("dialog", { class: "help", "aria-labelledby": "asked" }, form);
    listen(dialog, "close", () => {
      dialog.remove();
      settle(answer);
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}
