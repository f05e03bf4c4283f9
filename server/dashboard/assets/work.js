// Processors and schedules.

import { updateElement, h, name, panel, prose, status } from "./dom.js";
import { ago, count, grouped, long, since, statusOf, until, whole } from "./format.js";
import { ageText, statusWithAge } from "./staleness.js";
import { state } from "./live.js";
import { roleLink } from "./sentences.js";
import { pageLink } from "./address.js";
import { mentions, searchField } from "./search.js";
import { region } from "./work-parts.js";
import { mayAct, processorAction, scheduleActions } from "./actions.js";

const column = (title, className) => h("th", { scope: "col", class: className }, title || h("span", { class: "visually-hidden" }, "Actions"));
const cell = (className, ...content) => h("td", { class: className }, content);

const mostFailedInRow = 100; // a schedule has no record of more

const workStatus = (level, text, shape) => statusWithAge(level, text, shape, "work");

export function processorState(p) {
  if (p.status === "stuck" || p.status === "active" && p.stuck_error) return workStatus("critical", "cannot work");
  const known = statusOf(p.status === "active" && p.errors ? "failing" : p.status);
  const [level, text, shape] = !p.led && known[1] === "active" ? ["faint", "no node leads"] : known;
  const waiting = p.dead_letters - p.skipped;
  if (waiting && text !== "failing" && text !== "failed") {
    const letters = count(waiting, "dead letter");
    return workStatus("warning", text === "active" ? letters : `${text}, ${letters}`, text === "paused" ? shape : "warning");
  }
  return workStatus(p.level === "good" ? level : p.level, text, shape);
}

export function scheduleState(s) {
  if (s.paused) return workStatus("warning", "paused", "paused");
  if (s.problem) return workStatus("critical", "cannot run");
  if (s.last_error) return workStatus("critical", "its leader cannot work");
  if (s.ahead_seconds) return workStatus("warning", `waits ${long(s.ahead_seconds)} for the clock`);
  if (s.overdue_seconds) return workStatus(s.level === "critical" ? "critical" : "warning", `overdue for ${long(s.overdue_seconds)}`);
  if (s.failed_in_row) return workStatus(s.level, s.failed_in_row > 1 ? `failed ${s.failed_in_row >= mostFailedInRow ? "at least " : ""}${grouped(s.failed_in_row)} times in a row` : "failed");
  return s.loaded ? workStatus("good", s.running ? "running" : "on time", s.running ? "began" : "good") : workStatus("faint", "not loaded");
}

function processorRow(p) {
  const error = p.stuck_error || (p.errors || p.status === "failed" ? p.last_error : "");
  const errorText = error ? h("div", { class: "small is-critical" }, prose(error)) : null;
  const state = () => processorState(p);
  return h("tr", {},
    cell("", name(p.processor, pageLink("processor", p.processor)), h("div", { class: "narrow" }, state()), errorText), cell("wide", state()),
    cell("wide", name(p.role, roleLink(p.role))), cell("wide", p.led ? name(p.node_name) : "–"),
    cell("number figure", grouped(p.behind), p.behind_as_of ? h("div", { class: "small is-warning" }, `as of ${ago(p.behind_as_of)}`) : null), cell("wide number", p.waiting_since ? long(since(p.waiting_since)) : "–"), cell("wide number figure", grouped(p.processed)),
    cell("wide number figure", h("span", p.dead_letters > p.skipped ? { class: "is-warning" } : {}, grouped(p.dead_letters))),
    mayAct() ? cell("actions", processorAction(p)) : null);
}

function scheduleRow(s) {
  const last = s.last ? statusOf(s.last.state) : null;
  const state = () => scheduleState(s);
  const errorText = s.problem || s.last_error || (s.failed_in_row ? s.last_run_error : "");
  return h("tr", {},
    cell("", name(s.schedule, pageLink("schedule", s.schedule)), h("div", { class: "narrow" }, state()), errorText ? h("div", { class: `small is-${s.level === "warning" ? "warning" : "critical"}` }, prose(errorText)) : null),
    cell("wide", state()),
    cell("wide", h("code", { class: "figure" }, s.expression), " ", h("span", { class: "faint small" }, s.timezone)),
    cell("whole", s.next ? h("time", { datetime: s.next, title: whole(s.next), "data-until": s.next }, until(s.next)) : "–"),
    cell("wide", last ? [status(last[0], last[1], last[2]), " ", h("time", { class: "faint small", datetime: s.last.scheduled_for, title: whole(s.last.scheduled_for) }, ago(s.last.scheduled_for))] : h("span", { class: "faint" }, "never ran")),
    cell("wide", s.last?.node_name ? name(s.last.node_name) : "–"), cell("wide number figure", s.failures ? h("span", { class: "is-critical" }, grouped(s.failures)) : "0"),
    mayAct() ? cell("actions", scheduleActions(s)) : null);
}

export function retentionState(r) {
  if (r.errors) return workStatus("warning", r.errors > 1 ? `failed ${grouped(r.errors)} times in a row` : "failed");
  return r.late_seconds ? workStatus("warning", `late by ${long(r.late_seconds)}`) : workStatus("good", "on time");
}

function retentionRow(r) {
  const state = () => retentionState(r);
  return h("tr", {},
    cell("", name(r.rows), h("div", { class: "narrow" }, state()), r.errors && r.last_error ? h("div", { class: "small is-warning" }, prose(r.last_error)) : null),
    cell("wide", state()), cell("number", long(r.keep_seconds)),
    cell("wide", r.swept_at ? h("time", { datetime: r.swept_at, title: whole(r.swept_at) }, ago(r.swept_at)) : h("span", { class: "faint" }, "never")));
}

const levels = ["critical", "warning", "good"];
const jobName = (job) => job.processor ?? job.schedule;

export default function work(page) {
  const retention = h("div", {}, h("div"));
  const processors = h("div", {}, h("div")), schedules = h("div", {}, h("div")); // their content is replaced
  const find = searchField("Find a job or its role", () => draw());
  const places = new Map();
  let drawn = "";

  // worstFirst orders jobs. Those that the user points at keep their places.
  function worstFirst(jobs, part) {
    const sorted = [...jobs].sort((a, b) => levels.indexOf(a.level) - levels.indexOf(b.level));
    if (!part.matches(":hover, :focus-within")) places.set(part, sorted.map(jobName));
    const before = places.get(part) ?? [], place = (job) => before.indexOf(jobName(job)) >>> 0; // new ones are last
    return sorted.sort((a, b) => place(a) - place(b));
  }

  function draw() {
    const w = state.work;
    const text = ageText("work") + find.text() + JSON.stringify(w);
    if (!w || text === drawn) return;
    drawn = text;
    const has = mentions(find.text()), none = h("p", { class: "empty" }, "None matches.");
    const someProcessors = worstFirst(w.processors, processors).filter((p) => has(p.processor, p.role, p.node_name, p.status, p.last_error)), someSchedules = worstFirst(w.schedules, schedules).filter((s) => has(s.schedule, s.role, s.expression, s.last_run_error, s.problem));
    const notAvailable = h("p", { class: "empty" }, "Not available: this dashboard has no database connection for processors and schedules.");
    updateElement(processors.firstChild, h("div", {}, !w.shown ? notAvailable : !w.processors.length ? h("p", { class: "empty" }, "No processor has run yet.") : !someProcessors.length ? none : region("Processors", h("table", { class: "table work" },
      h("thead", {}, h("tr", {}, column("Processor"), column("State", "wide"), column("Role", "wide"), column("Runs on", "wide"), column("Behind", "number"), column("Oldest wait", "wide number"), column("Done", "wide number"), column("Dead letters", "wide number"), mayAct() ? column("", "actions") : null)),
      h("tbody", {}, someProcessors.map(processorRow))))));
    updateElement(schedules.firstChild, h("div", {}, !w.shown ? notAvailable.cloneNode(true) : !w.schedules.length ? h("p", { class: "empty" }, "No schedule is known yet.") : !someSchedules.length ? none.cloneNode(true) : region("Schedules", h("table", { class: "table work" },
      h("thead", {}, h("tr", {}, column("Schedule"), column("State", "wide"), column("When", "wide"), column("Next"), column("Last run", "wide"), column("Ran on", "wide"), column("Failures", "wide number"), mayAct() ? column("", "actions") : null)),
      h("tbody", {}, someSchedules.map(scheduleRow))))));
    updateElement(retention.firstChild, h("div", {}, !w.shown ? notAvailable.cloneNode(true) : !w.retention?.length ? h("p", { class: "empty" }, "No old rows have been removed yet.") : region("Removal of old rows", h("table", { class: "table work" },
      h("thead", {}, h("tr", {}, column("Rows"), column("State", "wide"), column("Kept for", "number"), column("Last removed", "wide"))),
      h("tbody", {}, w.retention.filter((r) => has(r.rows, r.last_error)).map(retentionRow))))));
  }
  page.replaceChildren(h("h1", { class: "visually-hidden" }, "Processors and schedules"), panel("Processors", [find.field], processors), panel("Schedules", null, schedules), panel("Removal of old rows", null, retention));
  draw();
  const tick = setInterval(() => {
    if (ageText("work")) draw();
    page.querySelectorAll("[data-until]").forEach((time) => { time.textContent = until(time.dataset.until); });
  }, 1000);
  return { title: "Work", on: { work: draw, now: draw, stale: draw }, close: () => clearInterval(tick) };
}
