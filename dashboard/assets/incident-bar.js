// The incident under the banner: its extent, its state, and a link to its page.

import { updateElement, h, sign } from "./dom.js";
import { count, duration, long, short, since } from "./format.js";
import { live, state } from "./live.js";
import { incidentLink, kindOf, timed } from "./sentences.js";

const bar = document.getElementById("incident");
const recent = 600; // seconds for which an incident that is over is shown

// shownIncident returns the incident to show: open ones first, then faults, then the latest.
function shownIncident() {
  const rank = (i) => (i.ended ? 0 : 4) + (i.unplanned ? 2 : 0);
  return (state.incidents ?? []).filter((i) => !i.ended || since(i.ended) < recent).reduce((best, i) => (!best || rank(i) > rank(best) ? i : best), null);
}

// extent states what an incident is about.
export const extent = (i) => [i.roles ? count(i.roles, "role") : "no role", i.nodes.length ? count(i.nodes.length, "node") : ""].filter(Boolean).join(", ");

// outcome states whether an incident is over.
export function outcome(i) {
  const lasted = i.ended ? i.lasted_seconds : since(i.began);
  if (!i.ended) return i.vacant ? `${i.vacant} of ${count(i.roles, "role")} without a leader, for ${long(lasted)}` : `continues, for ${long(lasted)}`;
  if (!i.roles && i.kind !== "outage") return "no role has moved";
  const over = i.kind === "outage" ? "over" : "all roles have a leader again";
  return `${over}${lasted > 0 ? `, after ${duration(lasted)}` : ""}`;
}

export function drawIncident() {
  const i = shownIncident();
  if (!i) {
    if (bar.childElementCount) bar.replaceChildren();
    return;
  }
  const level = i.ended ? (i.unplanned ? "warning" : "faint") : i.unplanned || i.vacant ? "critical" : "warning";
  const inBanner = state.now?.health.incident === i.id;
  const next = h("div", { class: `is-${level}` }, sign(level === "faint" ? "ended" : level),
    h("p", {}, h("b", {}, kindOf(i.kind)), inBanner ? "" : [": ", h("span", {}, timed(i.sentence))],
      h("span", { class: inBanner ? "extent" : "extent below" }, h("span", {}, extent(i)), h("span", {}, outcome(i)), i.ended ? h("span", {}, `${short(since(i.ended))} ago`) : "")),
    h("a", { href: incidentLink(i.id) }, "What happened"));
  if (!bar.childElementCount) bar.append(next);
  else updateElement(bar.firstElementChild, next);
}

live.addEventListener("stale", drawIncident);
setInterval(drawIncident, 1000);
