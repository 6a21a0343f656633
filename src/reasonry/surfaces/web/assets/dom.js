// Elements made from data. Text is only ever text: nothing here reads markup.

const SVG = "http://www.w3.org/2000/svg";

/**
 * @param {Element} made
 * @param {Record<string, unknown>} properties
 * @param {(Node | string | null | undefined | false)[]} children
 */
function fill(made, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "on") {
      for (const [type, listener] of Object.entries(value)) listen(made, type, listener);
    } else if (name === "size") {
      for (const [side, length] of Object.entries(value)) made.style[side] = length;
    } else {
      made.setAttribute(name, value === true ? "" : String(value));
    }
  }
  for (const child of children) if (child || child === "") made.append(child);
  return made;
}

/** An HTML element: attributes by name, listeners under `on`, computed CSS lengths under `size`. */
export function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  if (tag === "button") made.type = "button"; // one that sends its form says so
  return fill(made, properties, children);
}

/** A line that says something beside what is shown. */
export function quietLine(...children) {
  return element("p", { class: "quiet" }, ...children);
}

/** The same for SVG. */
export function drawn(tag, properties = {}, ...children) {
  return /** @type {SVGElement} */ (fill(document.createElementNS(SVG, tag), properties, children));
}

/** @param {string} id */
export function byId(id) {
  return /** @type {HTMLElement} */ (document.getElementById(id));
}

/** Has something done whenever an event of that type reaches a target. */
export function listen(target, type, act, options) {
  target.addEventListener(type, act, options);
}

/** Shows a section with these children, or hides it where there are none; what the reader unfolded stays unfolded. */
export function show(section, children) {
  const before = [...section.querySelectorAll("details")];
  section.replaceChildren(...children);
  section.hidden = children.length === 0;
  const now = section.querySelectorAll("details");
  if (now.length === before.length) before.forEach(({ open }, index) => (now[index].open = open));
}

/** Sets an attribute that is not so already: what is set, the browser styles anew. */
export function setChanged(made, name, value) {
  if (made.getAttribute(name) !== value) made.setAttribute(name, value);
}

/** Makes these the children of an element, in this order; those that stand right are not touched. */
export function putInOrder(parent, wanted) {
  const kept = new Set(wanted);
  for (const child of [...parent.children]) if (!kept.has(child)) child.remove();
  let at = parent.firstElementChild;
  for (const child of wanted) {
    if (child === at) at = at.nextElementSibling;
    else parent.insertBefore(child, at);
  }
}

/** The head of a section: its title, and what there is to say of it in a line. */
export function heading(title, ...said) {
  const line = said.filter(Boolean).join(" · ");
  return element("div", { class: "head" }, element("h2", {}, title), line && quietLine(line));
}

/** A table with its caption; a cell is text or an element. */
export function table(caption, heads, rows) {
  const cell = (tag, content, properties = {}) => element(tag, properties, content);
  return element(
    "table",
    {},
    element("caption", {}, caption),
    element("thead", {}, element("tr", {}, ...heads.map((head) => cell("th", head, { scope: "col" })))),
    element("tbody", {}, ...rows.map((row) => element("tr", {}, ...row.map((content) => cell("td", content))))),
  );
}

/** Whether a key belongs to a field or to the browser, not to the page. */
export function isTyping(event) {
  return event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.("input, textarea, select") !== null;
}

let copies = 0;

/** A button that copies a text; without a clipboard (an old browser, a frame) it selects a field with it. */
export function copyButton(text, what) {
  const button = element("button", { class: "copy", "aria-label": `Copy ${what}` }, "Copy");
  const say = (word) => {
    const mine = ++copies;
    button.textContent = word;
    setTimeout(() => mine === copies && (button.textContent = "Copy"), 1500);
  };
  listen(button, "click", async () => {
    try {
      await navigator.clipboard.writeText(text);
      say("Copied");
    } catch {
      say(copyBySelection(text) ? "Copied" : "Not allowed here");
    }
  });
  return button;
}

function copyBySelection(text) {
  const field = element("textarea", { class: "unseen", readonly: true });
  field.value = text;
  document.body.append(field);
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  return done;
}
