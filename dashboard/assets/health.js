// The state of the cluster in one sentence, and the state of the page's connection.

import { h, sign, status } from "./dom.js";
import { clock, long, short, since } from "./format.js";
import { staleFor } from "./fresh.js";
import { live, state } from "./live.js";
import { timed } from "./sentences.js";

const bar = document.getElementById("health");
const said = document.getElementById("health-said"); // for screen readers
const chip = document.getElementById("connection");
const breath = 5000; // milliseconds between two sentences
const soon = 1500; // milliseconds: a connection that returns immediately is not reported

// Without messages, the page may be out of date.
function present() {
  if (!state.connected && state.lost && Date.now() - state.lost >= soon) {
    return { level: "warning", sentence: `No update from the dashboard since ${clock(state.heard || state.lost)}: what is shown may have changed.` };
  }
  return state.now?.health;
}

// say makes a screen reader say the newest sentence, not each of many in quick
// succession.
let saying;
function say() {
  if (saying || said.textContent === bar.dataset.said) return;
  said.textContent = bar.dataset.said;
  saying = setTimeout(() => { saying = undefined; say(); }, breath);
}

// tick sets a text that changes every second, which is not announced to screen readers.
function tick(element, text) {
  const ticking = element.querySelector("[aria-hidden=true]:not(svg)");
  if (ticking.textContent !== text) ticking.textContent = text;
}

export function drawHealth() {
  mark();
  const health = present();
  if (!health) return;
  const text = `${health.level} ${health.sentence}`;
  if (bar.dataset.text !== text) {
    bar.dataset.text = text;
    const sentence = h("span", {}, timed(health.sentence));
    bar.dataset.said = sentence.textContent;
    say();
    bar.className = `health ${health.level}`;
    bar.replaceChildren(sign(health.level), h("span", {}, sentence, h("span", { "aria-hidden": "true" })));
  }
  tick(bar, health.since ? ` For ${long(since(health.since))}.` : "");
}

// connection returns the level, the words and the age of the connection's state.
function connection() {
  const age = staleFor();
  if (!state.connected) return age ? ["critical", "No contact", age] : ["warning", "Connecting again…"];
  return state.now?.unread_since ? ["critical", "Database down", age] : ["good", "Live"];
}

export function drawConnection() {
  const [level, words, age] = connection();
  const key = `${level} ${words}`;
  if (chip.dataset.key !== key) {
    chip.dataset.key = key;
    chip.replaceChildren(status(level, words), h("span", { class: `is-${level}`, "aria-hidden": "true" }));
  }
  tick(chip, age ? ` ${short(age)}` : "");
}

// mark makes everything gray that may have changed.
function mark() {
  const stale = staleFor() > 0, root = document.documentElement;
  drawConnection();
  if (root.hasAttribute("data-stale") === stale) return;
  root.toggleAttribute("data-stale", stale);
  live.dispatchEvent(new CustomEvent("stale"));
}

setInterval(drawHealth, 1000);
