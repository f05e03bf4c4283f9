// Alerts: what fires first.

import { h, name, panel, prose, status } from "./dom.js";
import { ago, statusOf, whole } from "./format.js";
import { state } from "./live.js";

const urgency = { firing: 0, pending: 1, inactive: 2 };

export default function alerts(page) {
  const body = h("div", {});
  let drawn = "";
  function draw() {
    const all = [...(state.alerts ?? [])].sort((a, b) => (urgency[a.state] ?? 3) - (urgency[b.state] ?? 3) || a.name.localeCompare(b.name));
    const text = JSON.stringify(all);
    if (text === drawn) return;
    drawn = text;
    if (!all.length) {
      body.replaceChildren(h("p", { class: "empty" }, state.alertsShown ? "There is no alert rule." : "This dashboard has no alerts configured."));
      return;
    }
    body.replaceChildren(h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Alerts" }, h("table", { class: "table" },
      h("thead", {}, h("tr", {}, ["Alert", "State", "Severity", "Since", "Summary"].map((title) => h("th", { scope: "col", class: ["State", "Severity", "Summary"].includes(title) ? "wide" : "" }, title)))),
      h("tbody", {}, all.map((alert) => {
        const [level, word, shape] = statusOf(alert.state);
        const labels = Object.entries(alert.labels ?? {}).map(([key, value]) => `${key}=${value}`).join(", ");
        return h("tr", {}, h("td", {}, name(alert.name), h("div", { class: "narrow" }, status(level, word, shape)), labels ? h("div", { class: "small faint" }, prose(labels)) : null, h("div", { class: "narrow small" }, alert.severity ? h("b", {}, alert.severity, ": ") : "", alert.summary ? prose(alert.summary) : "")), h("td", { class: "wide" }, status(level, word, shape)), h("td", { class: "wide" }, alert.severity || "–"),
          h("td", {}, Date.parse(alert.since) > 0 ? h("time", { datetime: alert.since, title: whole(alert.since) }, ago(alert.since)) : "–"), h("td", { class: "wide" }, prose(alert.summary || "–")));
      })))));
  }
  page.replaceChildren(h("h1", { class: "unseen" }, "Alerts"), panel("Alerts", null, body));
  draw();
  const tick = setInterval(() => page.querySelectorAll("time").forEach((time) => { time.textContent = ago(time.dateTime); }), 5000);
  return { title: "Alerts", on: { alerts: draw }, close: () => clearInterval(tick) };
}
