// The color theme: light, dark, or the system's.

import { h, sign } from "./dom.js";

const themes = ["auto", "light", "dark"];
const names = { auto: "Auto", light: "Light", dark: "Dark" };
const preferred = matchMedia("(prefers-color-scheme: dark)"), forced = matchMedia("(forced-colors: active)");
const key = "tenure-theme";
const listeners = [];

// A browser may be configured to store nothing.
function kept() {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

function keep(theme) {
  try {
    localStorage.setItem(key, theme);
  } catch { /* until the page is loaded again */ }
}

let theme = kept();
if (!themes.includes(theme)) theme = "auto";

export const onTheme = (changed) => listeners.push(changed);

export function drawTheme() {
  const dark = theme === "dark" || (theme === "auto" && preferred.matches);
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  const button = document.getElementById("theme");
  button.replaceChildren(sign("theme"), h("span", { class: "roomy" }, ` ${names[theme]}`));
  button.setAttribute("aria-label", `Colors: ${names[theme]}. Change`);
  button.title = "Light, dark, or as the system is";
  listeners.forEach((changed) => changed());
}

document.getElementById("theme").addEventListener("click", () => {
  theme = themes[(themes.indexOf(theme) + 1) % themes.length];
  keep(theme);
  drawTheme();
});
[preferred, forced].forEach((query) => query.addEventListener("change", drawTheme));
