// A schedule: its next ticks, its runs with their output and errors, and its changes.

import { updateElement, figures, h, inText, name, visibleName, panel, prose, status } from "./dom.js";
import { get } from "./api.js";
import { mayAct, scheduleActions } from "./actions.js";
import { ago, count, duration, grouped, statusOf, until, whole } from "./format.js";
import { ageText } from "./staleness.js";
import { state } from "./live.js";
import { roleLink } from "./sentences.js";
import { notFound } from "./not-found.js";
import { changesTable, keepCurrent, table, time } from "./work-parts.js";
import { scheduleState } from "./work.js";

const lasted = (run) => (run.started_at && run.ended_at ? duration((Date.parse(run.ended_at) - Date.parse(run.started_at)) / 1000) : "–");

// output is a button that reads and shows what a run wrote.
function output(run) {
  if (!run.output_bytes) return null;
  const text = h("pre", { class: "output", tabindex: "0", "aria-label": `Output of run ${run.run}` });
  text.hidden = true;
  const button = h("button", { type: "button", class: "compact", "data-action": `output ${run.run}`, "aria-expanded": "false", "aria-label": `Output of run ${run.run}, ${count(run.output_bytes, "byte")}`, onclick: async () => {
    if (text.hidden && !text.textContent) {
      try {
        text.textContent = (await get("run", { id: run.run })).output;
      } catch (error) {
        text.textContent = `It cannot be read: ${error.message}.`;
      }
    }
    text.hidden = !text.hidden;
    button.setAttribute("aria-expanded", String(!text.hidden));
  } }, "Output");
  return h("div", {}, button, text);
}

function runRow(run) {
  const [level, text, shape] = statusOf(run.state);
  const why = run.manual ? ["requested by ", run.requested_by ? inText(run.requested_by) : "an operator"] : run.ticks > 1 ? `${grouped(run.ticks)} ticks` : "";
  return h("tr", { "data-run": run.run, "data-of": JSON.stringify(run) },
    h("td", {}, time(run.scheduled_for), why ? h("div", { class: "small faint" }, why) : null),
    h("td", {}, status(level, text, shape), run.attempt > 1 ? h("div", { class: "small faint" }, `attempt ${run.attempt}`) : null, run.retry_at ? h("div", { class: "small faint" }, "retry ", time(run.retry_at)) : null),
    h("td", { class: "wide" }, run.node_name ? name(run.node_name) : "–"), h("td", { class: "wide number figure" }, lasted(run)),
    h("td", {}, run.error ? h("div", { class: "is-critical" }, prose(run.error)) : null, output(run), !run.error && !run.output_bytes ? "–" : null));
}

export default function schedule(page, scheduleName) {
  const facts = h("div", {}, h("div")), sign = h("span", {}, h("span")), buttons = h("div", {}), errorPanel = h("div", {}, h("div"));
  const next = h("div", { class: "body" }), runs = h("div", {}), changes = h("div", {});
  let detail = null, drawn = "", buttonsFor = "";
  const current = () => state.work?.schedules.find((s) => s.schedule === scheduleName);

  function draw() {
    const s = current();
    if (!s) return;
    updateElement(sign.firstChild, scheduleState(s));
    updateElement(facts.firstChild, figures([
      ["When", h("code", { class: "figure" }, visibleName(s.expression)), visibleName(s.timezone)], ["Next", s.next ? until(s.next) : "–"], ["Last run", s.last ? ago(s.last.scheduled_for) : "never"],
      ["Running", grouped(s.running)], ["Waiting", grouped(s.waiting)], ["Failures", grouped(s.failures)], ["Role", name(s.role, roleLink(s.role))],
    ], ageText("work")));
    const text = s.problem || s.last_error || (s.failed_in_row ? s.last_run_error : "");
    updateElement(errorPanel.firstChild, h("div", {}, text ? h("p", { class: "panel body is-critical" }, prose(text)) : null));
    if (mayAct() && buttonsFor !== String(s.paused)) {
      buttonsFor = String(s.paused);
      buttons.replaceChildren(...scheduleActions(s));
    }
  }

  function drawDetail() {
    const text = JSON.stringify(detail);
    if (text === drawn) return;
    drawn = text;
    next.replaceChildren(detail.next.length ? h("ol", { class: "sentences" }, detail.next.map((at) => h("li", {}, h("time", { datetime: at }, whole(at))))) : h("p", { class: "faint" }, "No tick is due: the schedule is paused, or its expression has no further time."));
    // Rows that show an output stay, and rows that have not changed: their output may be on its way.
    const focused = document.activeElement?.getAttribute?.("data-action"), rows = [...runs.querySelectorAll("tr[data-run]")];
    const opened = new Map(rows.filter((row) => row.querySelector("pre:not([hidden])")).map((row) => [row.dataset.run, row])), same = new Map(rows.map((row) => [row.dataset.of, row]));
    runs.replaceChildren(detail.runs.length ? table("Runs, the latest first", [["For"], ["State"], ["Node", "wide"], ["Took", "wide number"], ["Error and output"]],
      detail.runs.map((run) => opened.get(String(run.run)) ?? same.get(JSON.stringify(run)) ?? runRow(run))) : h("p", { class: "empty" }, "It has not run yet."));
    if (focused) page.querySelector(`[data-action="${CSS.escape(focused)}"]`)?.focus();
    changes.replaceChildren(changesTable(detail.changes));
  }

  async function read() {
    try {
      detail = await get("schedule", { name: scheduleName });
      drawDetail();
      draw();
    } catch (error) {
      if (error.status === 404 && !detail) notFound(page, "No schedule with this name is known.", ["#/work", "All schedules"]);
    }
  }

  page.replaceChildren(h("div", { class: "head" }, h("h1", { tabindex: "-1" }, h("bdi", {}, visibleName(scheduleName))), sign, buttons), facts, errorPanel,
    panel("Next ticks", null, next), panel("Runs", h("span", { class: "faint small" }, "the latest first"), runs), panel("Changes by operators", null, changes));
  return { title: scheduleName, ...keepCurrent(current, draw, read) };
}
