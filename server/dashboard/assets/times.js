// The time zone of shown times: local or UTC.

import { h } from "./dom.js";
import { setUTC, zoneName } from "./format.js";
import { store, stored } from "./storage.js";

const key = "tenure-times";

let utc = stored(key) === "utc";
setUTC(utc);

// drawTimes shows the button; changed is called after a change.
export function drawTimes(changed) {
  const button = h("button", { type: "button", class: "quiet", onclick: () => {
    utc = !utc;
    setUTC(utc);
    store(key, utc ? "utc" : "local");
    drawTimes(changed);
    changed();
    document.querySelector("#times button").focus();
  } });
  button.textContent = zoneName();
  button.setAttribute("aria-label", `${zoneName()}: times are ${utc ? "UTC" : "local"}. Change`);
  button.title = `All times are ${utc ? "UTC" : `local times (${zoneName()})`}. Press to show ${utc ? "local times" : "UTC"}.`;
  document.getElementById("times").replaceChildren(button);
}
