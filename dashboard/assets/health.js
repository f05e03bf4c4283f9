// The state of the cluster in one sentence, and the state of the page's connection.

import { h, sign } from "./dom.js";
import { clock, long, since } from "./format.js";
import { state } from "./live.js";

const bar = document.getElementById("health");
const said = document.getElementById("health-said"); // for screen readers
const breath = 5000; // milliseconds between two sentences
const soon = 1500; // milliseconds: a connection that returns immediately is not reported

// Without messages, the page may be out of date.
function present() {
  if (!state.connected && state.lost && Date.now() - state.lost >= soon) {
    return { level: "warning", sentence: `No update from the dashboard since ${clock(state.heard || state.lost)}: what is shown may have changed.` };
  }
  return state.now?.health;
}

// The passing time is not announced to screen readers every second.
function passed() {
  const unread = state.connected && state.now?.unread_since;
  return unread ? ` For ${long(since(unread))}.` : "";
}

// say makes a screen reader say the newest sentence, not each of many in quick
// succession.
let saying;
function say() {
  if (saying || said.textContent === bar.dataset.said) return;
  said.textContent = bar.dataset.said;
  saying = setTimeout(() => { saying = undefined; say(); }, breath);
}

export function drawHealth() {
  const health = present();
  if (!health) return;
  const text = `${health.level} ${health.sentence}`;
  if (bar.dataset.text !== text) {
    bar.dataset.text = text;
    bar.dataset.said = health.sentence;
    say();
    bar.className = `health ${health.level}`;
    bar.replaceChildren(sign(health.level), h("span", {}, h("span", {}, health.sentence), h("span", { "aria-hidden": "true" })));
  }
  const ticking = bar.querySelector("[aria-hidden=true]:not(svg)"), now = passed();
  if (ticking.textContent !== now) ticking.textContent = now;
}

export function drawConnection() {
  const level = state.connected ? "good" : "warning";
  document.getElementById("connection").replaceChildren(h("span", { class: `status is-${level}` }, sign(level), state.connected ? "Live" : "Connecting again…"));
  drawHealth();
}

setInterval(drawHealth, 1000);
