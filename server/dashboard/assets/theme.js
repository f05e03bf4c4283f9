// The color theme: light, dark, or the system's.

import { h, sign } from "./dom.js";
import { store, stored } from "./storage.js";

const themes = ["auto", "light", "dark"];
const names = { auto: "Auto", light: "Light", dark: "Dark" };
const preferred = matchMedia("(prefers-color-scheme: dark)"), forced = matchMedia("(forced-colors: active)");
const key = "tenure-theme";
const listeners = [];

let theme = stored(key);
if (!themes.includes(theme)) theme = "auto";

export const onTheme = (changed) => listeners.push(changed);

export function drawTheme() {
  const dark = theme === "dark" || (theme === "auto" && preferred.matches);
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  const button = document.getElementById("theme");
  button.replaceChildren(sign("theme"), h("span", { class: "roomy" }, ` ${names[theme]}`));
  button.setAttribute("aria-label", `Colors: ${names[theme]}. Change`);
  button.title = "Light, dark, or the setting of the system";
  listeners.forEach((changed) => changed());
}

document.getElementById("theme").addEventListener("click", () => {
  theme = themes[(themes.indexOf(theme) + 1) % themes.length];
  store(key, theme);
  drawTheme();
});
[preferred, forced].forEach((query) => query.addEventListener("change", drawTheme));
