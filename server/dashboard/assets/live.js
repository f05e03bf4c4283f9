// The live connection: one stream of events for the page. It resumes after the last
// received change, and is closed while the page is hidden.

export const silenceLimit = 12_000; // the server sends something at least every 5 s
const hiddenDelay = 15_000; // before a hidden page closes its connection

export const live = new EventTarget();
export const state = { connected: false, lostAt: 0, lastMessageAt: 0, now: null, work: null, alerts: null, alertsShown: false, incidents: [] };

let enabled = false, source, lastEventId = "", watchdog, retry, hidden, failures = 0;

function emit(kind, detail) {
  live.dispatchEvent(new CustomEvent(kind, { detail }));
}

function setConnected(connected) {
  if (state.connected === connected) return;
  state.connected = connected;
  if (!connected) state.lostAt = Date.now();
  emit("connection", connected);
}

// restartWatchdog reconnects if nothing arrives before silenceLimit.
function restartWatchdog() {
  clearTimeout(watchdog);
  watchdog = setTimeout(reconnect, silenceLimit);
}

function reconnect() {
  close();
  setConnected(false);
  failures++;
  emit("retry", failures);
  clearTimeout(retry);
  retry = setTimeout(connect, Math.min(5000, 300 * 2 ** Math.min(failures, 5)) * (0.75 + Math.random() / 2));
}

function close() {
  source?.close();
  source = undefined;
  clearTimeout(watchdog);
}

function listen(kind, receive) {
  source.addEventListener(kind, (event) => {
    state.lastMessageAt = Date.now();
    restartWatchdog();
    if (event.lastEventId) lastEventId = event.lastEventId;
    receive(JSON.parse(event.data));
  });
}

// stop closes the connection: the page shows the last known state.
function stop() {
  close();
  clearTimeout(retry);
  setConnected(false);
}

// disconnect closes the connection for good, because the user may no longer view the page.
export function disconnect() {
  enabled = false;
  stop();
}

export function connect() {
  enabled = true;
  close();
  clearTimeout(retry);
  const resumed = lastEventId !== "";
  source = new EventSource(`api/stream${resumed ? "?after=" + encodeURIComponent(lastEventId) : ""}`);
  restartWatchdog();
  listen("hello", () => {
    const again = !resumed || failures > 0; // requests in the meantime may have got no response
    failures = 0;
    setConnected(true);
    if (again) emit("refresh");
  });
  listen("resync", () => emit("refresh"));
  listen("change", (change) => {
    emit("change", change);
    if (change.more) emit("refresh");
  });
  listen("now", (now) => {
    state.now = now;
    emit("now", now);
  });
  listen("work", (work) => {
    state.work = work;
    emit("work", work);
  });
  listen("alerts", (alerts) => {
    state.alerts = alerts;
    emit("alerts", alerts);
  });
  listen("incidents", (incidents) => {
    state.incidents = incidents;
    emit("incidents", incidents);
  });
  listen("pulse", () => {});
  listen("end", reconnect);
  source.onerror = reconnect;
}

document.addEventListener("visibilitychange", () => {
  clearTimeout(hidden);
  if (document.hidden) {
    hidden = setTimeout(() => {
      stop();
      state.lostAt = 0; // it was closed on purpose
    }, hiddenDelay);
  } else if (!source && enabled) {
    state.lostAt = Date.now();
    connect();
  }
});
window.addEventListener("online", () => { if (!state.connected && enabled) connect(); });
