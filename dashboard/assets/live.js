// The live connection: one stream of events for the page. It resumes after the last
// received change, and is closed while the page is hidden.

export const patience = 12_000; // the server sends something at least every 10 s
const rest = 15_000; // before a hidden page closes its connection

export const live = new EventTarget();
export const state = { connected: false, lost: 0, heard: 0, now: null, work: null, alerts: null, alertsShown: false, incidents: [] };

let wanted = false, source, last = "", watchdog, retry, hidden, failures = 0;

function tell(kind, detail) {
  live.dispatchEvent(new CustomEvent(kind, { detail }));
}

function setConnected(connected) {
  if (state.connected === connected) return;
  state.connected = connected;
  if (!connected) state.lost = Date.now();
  tell("connection", connected);
}

// expect reopens the connection if nothing arrives.
function expect() {
  clearTimeout(watchdog);
  watchdog = setTimeout(reopen, patience);
}

function reopen() {
  close();
  setConnected(false);
  failures++;
  tell("retry", failures);
  clearTimeout(retry);
  retry = setTimeout(open, Math.min(5000, 300 * 2 ** Math.min(failures, 5)) * (0.75 + Math.random() / 2));
}

function close() {
  source?.close();
  source = undefined;
  clearTimeout(watchdog);
}

function on(kind, receive) {
  source.addEventListener(kind, (event) => {
    state.heard = Date.now();
    expect();
    if (event.lastEventId) last = event.lastEventId;
    receive(JSON.parse(event.data));
  });
}

// stop closes the connection: the page shows the last known state.
function stop() {
  close();
  clearTimeout(retry);
  setConnected(false);
}

// end is for a page whose user may no longer view it.
export function end() {
  wanted = false;
  stop();
}

export function open() {
  wanted = true;
  close();
  clearTimeout(retry);
  const resumed = last !== "";
  source = new EventSource(`api/stream${resumed ? "?after=" + encodeURIComponent(last) : ""}`);
  expect();
  on("hello", () => {
    const again = !resumed || failures > 0; // requests in the meantime may have got no response
    failures = 0;
    setConnected(true);
    if (again) tell("refresh");
  });
  on("resync", () => tell("refresh"));
  on("change", (change) => {
    tell("change", change);
    if (change.more) tell("refresh");
  });
  on("now", (now) => {
    state.now = now;
    tell("now", now);
  });
  on("work", (work) => {
    state.work = work;
    tell("work", work);
  });
  on("alerts", (alerts) => {
    state.alerts = alerts;
    tell("alerts", alerts);
  });
  on("incidents", (incidents) => {
    state.incidents = incidents;
    tell("incidents", incidents);
  });
  on("pulse", () => {});
  on("end", reopen);
  source.onerror = reopen;
}

document.addEventListener("visibilitychange", () => {
  clearTimeout(hidden);
  if (document.hidden) {
    hidden = setTimeout(() => {
      stop();
      state.lost = 0; // it was closed on purpose
    }, rest);
  } else if (!source && wanted) {
    state.lost = Date.now();
    open();
  }
});
window.addEventListener("online", () => { if (!state.connected && wanted) open(); });
