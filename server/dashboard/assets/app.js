// The page as a whole: the route, the session, and the connection.

import { h } from "./dom.js";
import { get, readSession, session } from "./api.js";
import { setClock } from "./format.js";
import { path } from "./address.js";
import { setTitle } from "./window-title.js";
import { drawTimes } from "./times.js";
import "./printing.js";
import { notFound } from "./not-found.js";
import { connect, disconnect, live, state } from "./live.js";
import { drawConnection, drawHealth } from "./health.js";
import { drawIncident } from "./incident-bar.js";
import { drawUser } from "./user.js";
import { drawTheme, onTheme } from "./theme.js";
import overview from "./overview.js";
import role from "./role.js";
import nodes from "./nodes.js";
import node from "./node.js";
import schedule from "./schedule.js";
import processor from "./processor.js";
import clusterTimeline from "./cluster-timeline.js";
import metrics from "./metrics.js";
import incident from "./incident.js";
import events from "./events.js";
import failovers from "./failovers.js";
import work from "./work.js";
import alerts from "./alerts.js";
import audit from "./audit.js";
import login from "./login.js";

const pages = [["", "Overview", overview], ["nodes", "Nodes", nodes], ["events", "Events", events], ["failovers", "Failovers", failovers], ["timeline", "Timeline", clusterTimeline], ["work", "Work", work], ["alerts", "Alerts", alerts], ["metrics", "Metrics", metrics], ["audit", "Audit", audit]];
// details are the pages of one thing, whose name or id is in the address.
const details = { role, node, schedule, processor, incident };
const main = document.getElementById("main");
let current = null, first = true, ended = false;

function route() {
  const [shown, ...rest] = path();
  current?.close();
  if (shown === "login" || !session.current.may_look) {
    current = login(main, async () => {
      await readAll().catch(() => {});
      if (location.hash === "#/login") history.replaceState(null, "", "#/");
      drawUser(redrawAll);
      start();
      route();
    }, ended);
    ended = false;
  } else if (Object.hasOwn(details, shown) && rest.length) {
    let key = rest.join("/");
    try {
      key = decodeURIComponent(key);
    } catch { /* the page shows that nothing has this name */ }
    current = details[shown](main, key);
  } else {
    const found = rest.length ? null : pages.find(([known]) => known === shown);
    current = found ? found[2](main) : notFound(main);
  }
  setTitle(current.title);
  drawPages(shown);
  scrollTo(0, 0);
  if (!first && shown !== "login") main.focus({ preventScroll: true });
  first = false;
}

let pagesDrawn = "";
function drawPages(shown) {
  const key = `${shown} ${state.now?.firing}`;
  if (key === pagesDrawn) return; // a link may have the focus
  pagesDrawn = key;
  document.getElementById("pages").replaceChildren(...pages.map(([known, text]) => h("li", {},
    h("a", { href: `#/${known}`, "aria-current": known === shown ? "page" : undefined }, text,
      known === "alerts" && state.now?.firing ? h("span", { class: "count" }, state.now.firing, h("span", { class: "visually-hidden" }, " firing")) : null))));
}

// The link to the content is no address of a page.
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});

function redrawAll() {
  drawUser(redrawAll);
  route();
}

onTheme(() => current?.on.theme?.());

function forward(kind) {
  live.addEventListener(kind, (event) => current?.on[kind]?.(event.detail));
}

live.addEventListener("now", (event) => {
  event.detail.at = performance.now();
  setClock(event.detail.clock);
  drawHealth();
  drawIncident();
  drawPages(path()[0]);
});
["incidents", "work"].forEach((kind) => live.addEventListener(kind, drawIncident));
live.addEventListener("connection", (event) => {
  drawHealth();
  if (event.detail) check(); // it may be another process, or another version
});
live.addEventListener("retry", (event) => { if (event.detail % 3 === 1) check(); }); // the session may have ended
["now", "work", "alerts", "change", "refresh", "stale", "incidents"].forEach(forward);

// check finds out whether this page is still valid: whether its user may view it, and
// whether another version is served.
let checking = false;
async function check() {
  if (checking) return;
  checking = true;
  const before = session.current;
  try {
    await readSession();
    if (session.current.version !== before.version) return location.reload();
    if (session.current.user !== before.user || session.current.may_look !== before.may_look || session.current.may_act !== before.may_act) sessionChanged(before);
  } catch (error) {
    if (error.status === 401) sessionChanged(before, { ...before, user: "", may_look: false, may_act: false });
  } finally {
    checking = false;
  }
}

function sessionChanged(before, after = session.current) {
  session.current = after;
  ended = before.user !== "" && after.user === "";
  if (!after.may_look) {
    started = false;
    disconnect();
  }
  document.querySelector("dialog")?.close();
  redrawAll();
}

let started = false;
function start() {
  if (started || !session.current.may_look) return;
  started = true;
  drawConnection();
  connect();
}

// readAll reads the data of every page; changes arrive over the stream.
async function readAll() {
  const data = await get("now");
  state.lastMessageAt = Date.now();
  state.alertsShown = data.alerts_shown;
  state.alertActions = data.alert_actions;
  state.work = data.work;
  state.alerts = data.alerts;
  state.incidents = data.incidents;
  live.dispatchEvent(new CustomEvent("now", { detail: (state.now = data.now) }));
}

document.getElementById("not-loaded").remove(); // the scripts run

async function begin() {
  drawTheme();
  drawTimes(route);
  try {
    await readSession();
    if (session.current.may_look) await readAll();
  } catch (error) {
    if (error.status === 401) { // the browser has asked for a password, and must not ask again and again
      main.replaceChildren(h("p", { class: "loading" }, "You are not logged in. ", h("button", { type: "button", onclick: begin }, "Log in")));
      return;
    }
    main.replaceChildren(h("p", { class: "loading" }, `This page cannot be loaded: ${error.message}. Trying again…`));
    setTimeout(begin, error.status === 429 ? 60_000 : 2000);
    return;
  }
  drawUser(redrawAll);
  route();
  start();
  addEventListener("hashchange", route);
}
begin();
