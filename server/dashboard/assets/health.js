// The state of the cluster in one sentence, and the state of the page's connection.

import { h, sign, status } from "./dom.js";
import { clock, long, short, since } from "./format.js";
import { staleSeconds } from "./staleness.js";
import { live, state } from "./live.js";
import { timed } from "./sentences.js";

const bar = document.getElementById("health");
const announced = document.getElementById("health-announcement"); // for screen readers
const connectionStatus = document.getElementById("connection");
const announceInterval = 5000; // milliseconds between two sentences
const reportDelay = 1500; // milliseconds before a lost connection is reported

// currentHealth returns the health of the cluster, or a warning that the page may be stale.
function currentHealth() {
  if (!state.connected && state.lostAt && Date.now() - state.lostAt >= reportDelay) {
    return { level: "warning", sentence: `No update from the dashboard since ${clock(state.lastMessageAt || state.lostAt)}: what is shown may have changed.` };
  }
  return state.now?.health;
}

// announceHealth makes a screen reader read the newest sentence, and skips sentences that
// are replaced within announceInterval.
let announceTimer;
function announceHealth() {
  if (announceTimer || announced.textContent === bar.dataset.announcement) return;
  announced.textContent = bar.dataset.announcement;
  announceTimer = setTimeout(() => { announceTimer = undefined; announceHealth(); }, announceInterval);
}

// setTicking sets a text that changes every second and that screen readers skip.
function setTicking(element, text) {
  const ticking = element.querySelector("[aria-hidden=true]:not(svg)");
  if (ticking.textContent !== text) ticking.textContent = text;
}

export function drawHealth() {
  markStale();
  const health = currentHealth();
  if (!health) return;
  const text = `${health.level} ${health.sentence}${health.also ?? ""}`;
  if (bar.dataset.text !== text) {
    bar.dataset.text = text;
    const sentence = h("span", {}, timed(health.sentence)), also = h("span", {}, timed(health.also ?? ""));
    bar.dataset.announcement = sentence.textContent + also.textContent;
    announceHealth();
    bar.className = `health ${health.level}`;
    bar.replaceChildren(sign(health.level), h("span", {}, sentence, h("span", { "aria-hidden": "true" }), also));
  }
  setTicking(bar, health.since ? ` For ${health.up_to ? "up to " : ""}${long(since(health.since))}.` : "");
}

// connection returns the level, the text and the age of the connection's state.
function connection() {
  const age = staleSeconds();
  if (!state.connected) return age ? ["critical", "No contact", age] : ["warning", "Connecting again…"];
  return state.now?.unread_since ? ["critical", "Database down", since(state.now.health.since)] : ["good", "Live"];
}

export function drawConnection() {
  const [level, words, age] = connection();
  const key = `${level} ${words}`;
  if (connectionStatus.dataset.key !== key) {
    connectionStatus.dataset.key = key;
    connectionStatus.replaceChildren(status(level, words), h("span", { class: `is-${level}`, "aria-hidden": "true" }));
  }
  setTicking(connectionStatus, age ? ` ${short(age)}` : "");
}

// markStale grays out the page while its state may have changed.
function markStale() {
  const stale = staleSeconds() > 0, root = document.documentElement;
  drawConnection();
  if (root.hasAttribute("data-stale") === stale) return;
  root.toggleAttribute("data-stale", stale);
  live.dispatchEvent(new CustomEvent("stale"));
}

setInterval(drawHealth, 1000);
