// The page as a whole: which part of it is shown, who looks, light or dark.

import { h, sign } from "./dom.js";
import { get, post, readSession, session } from "./api.js";
import { setClock } from "./format.js";
import { live, open, state } from "./live.js";
import overview from "./overview.js";
import role from "./role.js";
import nodes from "./nodes.js";
import events from "./events.js";
import failovers from "./failovers.js";
import work from "./work.js";
import alerts from "./alerts.js";
import login from "./login.js";

const pages = [["", "Overview", overview], ["nodes", "Nodes", nodes], ["events", "Events", events], ["failovers", "Failovers", failovers], ["work", "Work", work], ["alerts", "Alerts", alerts]];
const main = document.getElementById("main");
let current = null, first = true;

function route() {
  const [path, ...rest] = location.hash.replace(/^#\/?/, "").split("/");
  current?.close();
  if (path === "login" || !session.current.may_look) {
    current = login(main, async () => {
      await readAll().catch(() => {});
      if (location.hash === "#/login") history.replaceState(null, "", "#/");
      drawWho();
      start();
      route();
    });
  } else if (path === "role" && rest.length) {
    let called = rest.join("/");
    try {
      called = decodeURIComponent(called);
    } catch { /* it is shown as it is, and is unknown */ }
    current = role(main, called);
  } else {
    current = (pages.find(([known]) => known === path) ?? pages[0])[2](main);
  }
  document.title = `${current.title} · ${session.current.title}`;
  drawPages(path);
  scrollTo(0, 0);
  if (!first && path !== "login") main.focus({ preventScroll: true });
  first = false;
}

let pagesDrawn = "";
function drawPages(path) {
  const key = `${path} ${state.now?.firing}`;
  if (key === pagesDrawn) return; // a link may have the focus
  pagesDrawn = key;
  document.getElementById("pages").replaceChildren(...pages.map(([known, text]) => h("li", {},
    h("a", { href: `#/${known}`, "aria-current": known === path ? "page" : undefined }, text,
      known === "alerts" && state.now?.firing ? h("span", { class: "count" }, state.now.firing, h("span", { class: "unseen" }, " firing")) : null))));
}

function drawHealth() {
  const { level, sentence } = state.now.health;
  const bar = document.getElementById("health");
  const text = `${level} ${sentence}`;
  if (bar.dataset.text === text) return;
  bar.dataset.text = text;
  bar.className = `health ${level}`;
  bar.replaceChildren(sign(level), h("span", {}, sentence));
}

function drawConnection() {
  const text = state.connected ? "Live" : "Connecting again…";
  document.getElementById("connection").replaceChildren(h("span", { class: state.connected ? "status is-good" : "status is-warning" }, sign(state.connected ? "good" : "warning"), text));
}

function drawWho() {
  const who = document.getElementById("who");
  const { user, log_in, can_log_out, read_only } = session.current;
  document.getElementById("title").textContent = session.current.title;
  if (can_log_out) {
    who.replaceChildren(h("button", { type: "button", class: "quiet", onclick: async () => { await post("logout", {}).catch(() => {}); location.reload(); } }, "Log out ", h("bdi", {}, user)));
  } else if (user) {
    who.replaceChildren(h("span", { class: "faint small" }, h("bdi", {}, user)));
  } else if (log_in === "token") {
    who.replaceChildren(h("a", { href: "#/login" }, "Log in"));
  } else if (log_in === "password") {
    who.replaceChildren(h("button", { type: "button", class: "quiet", onclick: async () => { await readSession(true).catch(() => {}); drawWho(); route(); } }, "Log in"));
  } else {
    who.replaceChildren(read_only ? h("span", { class: "faint small" }, "Read only") : "");
  }
}

const themes = ["auto", "light", "dark"];
const preferred = matchMedia("(prefers-color-scheme: dark)");
let theme = localStorage.getItem("tenure-theme");
if (!themes.includes(theme)) theme = "auto";

function drawTheme() {
  const dark = theme === "dark" || (theme === "auto" && preferred.matches);
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  const button = document.getElementById("theme");
  button.textContent = { auto: "Auto", light: "Light", dark: "Dark" }[theme];
  button.setAttribute("aria-label", `Colours: ${button.textContent}. Change`);
  button.title = "Light, dark, or as the system is";
  current?.on.theme?.();
}

document.getElementById("theme").addEventListener("click", () => {
  theme = themes[(themes.indexOf(theme) + 1) % themes.length];
  localStorage.setItem("tenure-theme", theme);
  drawTheme();
});
preferred.addEventListener("change", drawTheme);

function pass(kind) {
  live.addEventListener(kind, (event) => current?.on[kind]?.(event.detail));
}

live.addEventListener("now", (event) => {
  event.detail.at = performance.now();
  setClock(event.detail.read_at);
  drawHealth();
  drawPages(location.hash.replace(/^#\/?/, "").split("/")[0]);
});
live.addEventListener("connection", drawConnection);
["now", "work", "alerts", "change", "refresh"].forEach(pass);

let started = false;
function start() {
  if (started || !session.current.may_look) return;
  started = true;
  drawConnection();
  open();
}

// readAll reads what every page builds on; from then on it is told.
async function readAll() {
  const seen = await get("now");
  state.alertsShown = seen.alerts_shown;
  state.work = seen.work;
  state.alerts = seen.alerts;
  live.dispatchEvent(new CustomEvent("now", { detail: (state.now = seen.now) }));
}

async function begin() {
  drawTheme();
  try {
    await readSession();
    if (session.current.may_look) await readAll();
  } catch (error) {
    main.replaceChildren(h("p", { class: "loading" }, `${error.message} Trying again…`));
    setTimeout(begin, 2000);
    return;
  }
  drawWho();
  route();
  start();
  addEventListener("hashchange", route);
}
begin();
