// What can be done with a run as a whole: pause, resume, cancel, other limits, compare.

import { element, listen } from "../dom.js";
import { isAnswered } from "../wording.js";
import { compareDialog } from "./compare_dialog.js";
import { limitsDialog } from "./limits_dialog.js";

// Only a fork can bring another end.
const REFUSALS = ["model_refused", "script_exhausted", "context_overflow", "stage_error"];

/**
 * @param {object} run
 * @param {import("./api.js").api} run.api
 * @param {string} run.path of the run in the API
 * @param {(path: string, how?: { replace: boolean }) => void} run.onNavigate
 * @param {() => void} run.changed called when something was done
 */
export function makeControls({ api, path, onNavigate, changed }) {
  let page = null;
  const said = element("p", { class: "said", role: "alert" });
  const post = (what) => () => act(() => api.post(`${path}/${what}`));
  const buttons = {
    pause: button("Pause", post("pause")),
    resume: button("Resume", post("resume")),
    limits: button("Limits …", () => openDialog(limitsDialog(page, setLimits, api.say))),
    cancel: button("Cancel", post("cancel")),
    parent: button("Compare with parent", () => onNavigate(`/compare/${encodeURIComponent(page.forked_from)}/${encodeURIComponent(page.id)}`)),
    compare: button("Compare …", () => openDialog(compareDialog(page, api, onNavigate))),
  };
  let dialog = null;

  function button(name, click) {
    return element("button", { hidden: true, on: { click } }, name);
  }

  function openDialog(made) {
    dialog?.remove();
    dialog = made;
    document.body.append(dialog);
    listen(dialog, "close", () => dialog?.remove());
    dialog.showModal();
  }

  async function act(what) {
    for (const one of Object.values(buttons)) one.disabled = true;
    try {
      await what();
      say("");
    } catch (error) {
      say(api.say(error));
    } finally {
      for (const one of Object.values(buttons)) one.disabled = false;
      changed();
    }
  }

  /** Of a run at work the limits are set; one that has ended is resumed with them. */
  async function setLimits(budget) {
    if (page.status === "active") await api.patch(`${path}/budget`, budget);
    else await api.post(`${path}/resume`, { budget });
    changed();
  }

  function say(words) {
    said.textContent = words;
  }

  /** Shows what can be done now. */
  function draw(newer, { isIdle }) {
    page = newer;
    const isActive = page.status === "active";
    const isDriven = page.mode === "driven";
    const { reason, code } = page.termination ?? {};
    const isOver = isAnswered(page.outcome) || page.outcome === "unsolved" || REFUSALS.includes(code), isAtLimit = /^max_|^cost/.test(reason);
    buttons.pause.hidden = !isActive || page.paused || isIdle || !isDriven;
    buttons.resume.hidden = !isDriven || (isActive ? !page.paused && !isIdle : isOver || isAtLimit);
    buttons.limits.hidden = isOver;
    buttons.limits.textContent = isActive ? "Limits …" : "Resume with other limits …";
    buttons.cancel.hidden = !isActive;
    buttons.compare.hidden = false;
    buttons.parent.hidden = !page.forked_from;
  }

  return { elements: [...Object.values(buttons), said], draw, say, close: () => dialog?.remove() };
}
