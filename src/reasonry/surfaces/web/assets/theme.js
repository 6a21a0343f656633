// Light or dark: as the system says, until the reader says otherwise. The choice is kept where the browser lets us.

import { listen } from "./dom.js";

const SIGNS = { system: "◐", light: "○", dark: "●" };
const CHOICES = Object.keys(SIGNS);
const KEY = "reasonry.theme";

/** @param {HTMLElement} button goes from one theme to the next */
export function makeThemeSwitch(button) {
  const choose = (choice) => {
    setTheme(choice);
    button.textContent = SIGNS[choice];
    button.title = `Theme: ${choice}`;
    button.setAttribute("aria-label", button.title);
  };
  choose(kept());
  listen(button, "click", () => {
    const next = CHOICES[(CHOICES.indexOf(document.documentElement.dataset.theme ?? "system") + 1) % CHOICES.length];
    choose(next);
    try {
      localStorage.setItem(KEY, next);
    } catch {
      // a frame or a private window: the choice lasts as long as the page
    }
  });
}

/** @param {string} choice anything but `light` and `dark` means: as the system */
export function setTheme(choice) {
  if (choice === "light" || choice === "dark") document.documentElement.dataset.theme = choice;
  else delete document.documentElement.dataset.theme;
}

function kept() {
  try {
    const choice = localStorage.getItem(KEY);
    return CHOICES.includes(choice) ? choice : "system";
  } catch {
    return "system";
  }
}
