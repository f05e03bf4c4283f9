// The time zone of shown times: local or UTC.

import { h } from "./dom.js";
import { setUTC } from "./format.js";

const key = "tenure-times";

// A browser may be configured to store nothing.
function kept() {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

let utc = kept() === "utc";
setUTC(utc);

// drawTimes shows the button; changed is called after a change.
export function drawTimes(changed) {
  const button = h("button", { type: "button", class: "quiet", onclick: () => {
    utc = !utc;
    setUTC(utc);
    try {
      localStorage.setItem(key, utc ? "utc" : "local");
    } catch { /* until the page is loaded again */ }
    drawTimes(changed);
    changed();
    document.querySelector("#times button").focus();
  } });
  button.textContent = utc ? "UTC" : "Local";
  button.setAttribute("aria-label", `Times: ${utc ? "UTC" : "local"}. Change`);
  button.title = "Times of this computer, or in UTC";
  document.getElementById("times").replaceChildren(button);
}
