// The lines under the banner: the job that fails and the incident, each with its extent, its
// present state, and the way to its page.

import { pageLink } from "./address.js";
import { updateElement, h, visibleName, sign } from "./dom.js";
import { count, duration, long, short, since, until } from "./format.js";
import { live, state } from "./live.js";
import { incidentLink, kindOf, timed } from "./sentences.js";

const bar = document.getElementById("incident");
const recent = 600; // seconds for which an incident that is over is shown

// shownIncident returns the incident to show: open ones first, then faults, then the latest.
function shownIncident() {
  const rank = (i) => (i.ended_at ? 0 : 4) + (i.unplanned ? 2 : 0);
  return (state.incidents ?? []).filter((i) => !i.ended_at || since(i.ended_at) < recent).reduce((best, i) => (!best || rank(i) > rank(best) ? i : best), null);
}

// extent states what an incident is about.
export const extent = (i) => [i.roles ? count(i.roles, "role") : "no role", i.nodes.length ? count(i.nodes.length, "node") : ""].filter(Boolean).join(", ");

// outcome states whether an incident is over.
export function outcome(i) {
  const lasted = i.ended_at ? i.lasted_seconds : since(i.began_at);
  if (!i.ended_at) return i.vacant ? `${i.vacant} of ${count(i.roles, "role")} without a leader, for ${long(lasted)}` : `continues, for ${long(lasted)}`;
  if (!i.roles && i.kind !== "outage") return "no role has moved";
  const over = i.kind === "outage" ? "over" : "all roles have a leader again";
  return `${over}${lasted > 0 ? `, after ${duration(lasted)}` : ""}`;
}

// line is a part of the bar: its level, what it is, its text unless the banner has it, its
// extent and state, and a link.
const line = (level, shape, kind, text, facts, href, link) => h("div", { class: `is-${level}` }, sign(shape),
  h("p", {}, h("b", {}, kind), text ? [": ", h("span", {}, text)] : "", h("span", { class: text ? "extent below" : "extent" }, facts.filter(Boolean).map((fact) => h("span", {}, fact)))),
  h("a", { href }, link));

function incidentLine() {
  const i = shownIncident();
  if (!i) return null;
  const level = i.ended_at ? (i.unplanned ? "warning" : "faint") : i.unplanned || i.vacant ? "critical" : "warning";
  const inBanner = state.now?.health.incident === i.id; // by the banner
  return line(level, level === "faint" ? "ended" : level, kindOf(i.kind), inBanner ? "" : timed(i.sentence),
    [extent(i), outcome(i), i.ended_at ? `${short(since(i.ended_at))} ago` : ""], incidentLink(i.id), "What happened");
}

// waiting states what waits for a processor, and whether one that fails tries again.
const waiting = (p) => [p.behind ? `${count(p.behind, "event")} wait${p.behind === 1 ? "s" : ""}${p.waiting_since ? `, the oldest for ${long(since(p.waiting_since))}` : ""}` : "", p.dead_letters ? count(p.dead_letters, "dead letter") : "",
  p.status === "failed" ? "stopped: an operator must retry, skip or rewind" : !p.errors || p.status === "paused" ? "" : p.next_attempt_at ? `next attempt ${until(p.next_attempt_at)}` : "next attempt now"];

// runs states how many runs of a schedule failed, and when it runs next.
const runs = (s) => [s.overdue_seconds ? `overdue for ${long(s.overdue_seconds)}` : "", s.ahead_seconds ? `waits ${long(s.ahead_seconds)} for the clock of the database` : "", s.failures ? count(s.failures, "failed run") : "", s.next ? `next run ${until(s.next)}` : "no further run"];

// jobLine is about the processor or schedule that the banner describes.
function jobLine() {
  const job = state.now?.health.job;
  if (!job || !state.work) return null;
  if (job.kind === "retention") return null; // the banner says all that is known
  const processor = job.kind === "processor";
  const about = (processor ? state.work.processors : state.work.schedules).find((one) => (one.processor ?? one.schedule) === job.name);
  if (!about) return null;
  return line(about.level, about.level, processor ? "Processor" : "Schedule", "", [...(processor ? waiting(about) : runs(about)), ["role ", h("bdi", {}, visibleName(about.role))]], pageLink(job.kind, job.name), "Details");
}

export function drawIncident() {
  const lines = [jobLine(), incidentLine()].filter(Boolean);
  while (bar.childElementCount > lines.length) bar.lastElementChild.remove();
  lines.forEach((next, i) => (bar.children[i] ? updateElement(bar.children[i], next) : bar.append(next)));
}

live.addEventListener("stale", drawIncident);
setInterval(drawIncident, 1000);
