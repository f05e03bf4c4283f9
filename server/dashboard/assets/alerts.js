// Alerts: firing and pending ones first, by severity, and then the others.

import { alertActions, mayAct } from "./actions.js";
import { h, name, panel, prose } from "./dom.js";
import { ago, moment, statusOf, whole } from "./format.js";
import { ageText, statusWithAge } from "./staleness.js";
import { state } from "./live.js";
import { isWeb, outward } from "./outward.js";
import { mentions, searchField } from "./search.js";
import { timed } from "./sentences.js";

const severities = { critical: 0, error: 1, warning: 2, info: 3 };
const urgency = { firing: 0, pending: 1, inactive: 2 };
const inactive = (alert) => (alert.state === "inactive" && !alert.problem ? 1 : 0);

// stateOf returns the level and the word of an alert. Without an evaluation, it is neither good
// nor firing.
function stateOf(alert) {
  if (alert.problem && alert.state === "inactive") return ["warning", "not evaluated"];
  const [level, word, shape] = statusOf(alert.state);
  if (alert.silenced_by && alert.state !== "inactive") return ["faint", `${word}, silenced`, "paused"];
  return [alert.state === "firing" && alert.severity === "info" ? "warning" : level, word, shape];
}

function byUrgency(a, b) {
  return inactive(a) - inactive(b) || Boolean(a.silenced_by) - Boolean(b.silenced_by) || (severities[a.severity] ?? 4) - (severities[b.severity] ?? 4) ||
    (urgency[a.state] ?? 3) - (urgency[b.state] ?? 3) || a.name.localeCompare(b.name);
}

// link returns a link to a runbook, or its text if that is not a web address.
function link(address) {
  return isWeb(address) ? h("a", { href: address, rel: "noreferrer" }, "Runbook") : prose(address);
}

// remarks states who acknowledged or silenced an alert.
function remarks(alert) {
  const by = (what, who, time) => (who ? h("div", { class: "small" }, h("b", {}, what), " by ", name(who), ` until ${moment(time)}`) : null);
  return [by("Acknowledged", alert.acknowledged_by, alert.acknowledged_until), by("Silenced", alert.silenced_by, alert.silenced_until)];
}

function details(alert) {
  return [
    alert.problem ? h("div", { class: "is-warning" }, prose(alert.problem)) : null, prose(alert.summary || "–"), remarks(alert),
    alert.incident ? h("div", { class: "small" }, h("span", { class: "prose", dir: "auto", title: alert.incident }, timed(alert.incident.replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, "\u0001$&\u0002")))) : null,
    alert.description && alert.description !== alert.summary ? h("div", { class: "small faint" }, prose(alert.description)) : null,
    alert.runbook ? h("div", { class: "small" }, link(alert.runbook)) : null,
    outward(alert.links),
  ];
}

function row(alert) {
  const [level, word, shape] = stateOf(alert);
  const labels = Object.entries(alert.labels ?? {}).map(([key, value]) => `${key}=${value}`).join(", ");
  return h("tr", {},
    h("td", {}, name(alert.name), h("div", { class: "narrow" }, statusWithAge(level, word, shape, "alerts")), labels ? h("div", { class: "small faint" }, prose(labels)) : null,
      h("div", { class: "narrow small" }, alert.severity ? h("b", {}, alert.severity, ": ") : "", details(alert)),
      mayAct() && state.alertActions ? h("div", {}, alertActions(alert)) : null),
    h("td", { class: "wide" }, statusWithAge(level, word, shape, "alerts")), h("td", { class: "wide" }, alert.severity || "–"),
    h("td", {}, Date.parse(alert.since) > 0 ? h("time", { datetime: alert.since, title: whole(alert.since) }, ago(alert.since)) : "–"),
    h("td", { class: "wide" }, details(alert)));
}

export default function alerts(page) {
  const body = h("div", {}), find = searchField("Find an alert", () => draw());
  let drawn = "";
  function draw() {
    const has = mentions(find.text());
    const all = (state.alerts ?? []).filter((alert) => has(alert.name, alert.state, alert.severity, alert.summary, ...Object.values(alert.labels ?? {}))).sort(byUrgency);
    const text = ageText("alerts") + find.text() + JSON.stringify(all);
    if (text === drawn) return;
    drawn = text;
    if (!all.length) {
      body.replaceChildren(h("p", { class: "empty" }, find.text() ? "No alert matches." : state.now?.alerts_unread_since ? "The alerts cannot be read." : state.alertsShown ? "There is no alert rule." : "This dashboard has no alerts configured."));
      return;
    }
    body.replaceChildren(h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Alerts" }, h("table", { class: "table" },
      h("thead", {}, h("tr", {}, ["Alert", "State", "Severity", "Since", "Summary"].map((title) => h("th", { scope: "col", class: ["State", "Severity", "Summary"].includes(title) ? "wide" : "" }, title)))),
      h("tbody", {}, all.map(row)))));
  }
  page.replaceChildren(h("h1", { class: "visually-hidden" }, "Alerts"), panel("Alerts", [find.field], body));
  draw();
  const tick = setInterval(() => {
    if (ageText("alerts")) draw();
    page.querySelectorAll("td > time").forEach((time) => { time.textContent = ago(time.dateTime); });
  }, 5000);
  return { title: "Alerts", on: { alerts: draw, now: draw, stale: draw }, close: () => clearInterval(tick) };
}
