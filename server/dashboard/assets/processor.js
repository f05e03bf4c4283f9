// A processor or outbox: its lag over time, its errors, and its dead letters.

import { updateElement, figures, h, name, visibleName, panel, prose, status } from "./dom.js";
import { get } from "./api.js";
import { dismissAction, mayAct, processorAction, replayAction, retryAction, rewindAction, skipAction } from "./actions.js";
import { ago, duration, grouped, long, since, until } from "./format.js";
import { ageText } from "./staleness.js";
import { lagChart } from "./lag-chart.js";
import { state } from "./live.js";
import { roleLink } from "./sentences.js";
import { notFound } from "./not-found.js";
import { changesTable, keepCurrent, table, time } from "./work-parts.js";
import { processorState } from "./work.js";

function letterRow(processorName, letter) {
  return h("tr", {},
    h("td", { class: "figure" }, letter.event, letter.replay ? h("div", { class: "small" }, status("warning", "replay requested", "began")) : letter.replay_failed_at ? h("div", { class: "small" }, status("critical", "failed again"), ", replayed by ", name(letter.replay_requested_by), ", ", time(letter.replay_failed_at)) : null,
      letter.dismissed_at ? h("div", { class: "small" }, status("faint", "dismissed"), " by ", name(letter.dismissed_by), ", ", time(letter.dismissed_at)) : null),
    h("td", {}, letter.error ? prose(letter.error) : letter.skipped_by ? ["skipped by ", name(letter.skipped_by)] : "–"),
    h("td", { class: "wide number figure" }, grouped(letter.attempts)), h("td", { class: "wide" }, time(letter.failed_at)),
    mayAct() ? h("td", { class: "actions" }, letter.replay ? null : replayAction(processorName, letter), " ", letter.dismissed_at ? null : dismissAction(processorName, [letter], letter)) : null);
}

export default function processor(page, processorName) {
  const facts = h("div", {}, h("div")), sign = h("span", {}, h("span")), buttons = h("div", {}), errorPanel = h("div", {}, h("div"));
  const letters = h("div", {}), all = h("span"), changes = h("div", {}), chart = lagChart(), lagText = h("p", { class: "small faint" });
  let detail = null, drawn = "", buttonsFor = "";
  const current = () => state.work?.processors.find((p) => p.processor === processorName);

  function draw() {
    const p = current();
    if (!p) return;
    updateElement(sign.firstChild, processorState(p));
    updateElement(facts.firstChild, figures([
      ["Behind", grouped(p.behind), `${p.behind === 1 ? "event" : "events"}${p.behind_as_of ? `, as of ${ago(p.behind_as_of)}` : ""}`], ["Oldest wait", p.waiting_since ? long(since(p.waiting_since)) : "–"], ["Done", grouped(p.processed)],
      ["Failed attempts", grouped(p.errors)], ["Dead letters", grouped(p.dead_letters)], ["Runs on", p.led ? name(p.node_name) : "–"], ["Kind", visibleName(p.kind)], ["Role", name(p.role, roleLink(p.role))],
    ], ageText("work")));
    const failing = p.last_error && (p.errors || p.status === "failed"), stuck = p.stuck_error;
    updateElement(errorPanel.firstChild, h("div", {}, stuck ? h("p", { class: "panel body is-critical" }, `Has been unable to work for ${long(since(p.stuck_since))}: `, prose(stuck)) : null, failing && p.last_error !== stuck ? h("p", { class: "panel body is-critical" }, prose(p.last_error), p.next_attempt_at && p.status !== "failed" ? ` Next attempt ${until(p.next_attempt_at)}.` : "") : null));
    const key = `${p.status} ${p.errors > 0} ${p.failing}`;
    if (mayAct() && key !== buttonsFor) {
      buttonsFor = key;
      buttons.replaceChildren(...[p.errors || p.status === "failed" ? [retryAction(p), " ", skipAction(p), " "] : [], processorAction(p), " ", rewindAction(p)].flat());
    }
  }

  function drawDetail() {
    chart.set(detail.lags);
    const lag = detail.lag;
    lagText.replaceChildren(lag ? `Measured ${ago(lag.as_of)}: ${grouped(lag.behind)}${lag.more ? " or more" : ""} events wait${lag.waiting_seconds ? `, the oldest for ${duration(lag.waiting_seconds)}` : ""}${lag.held ? `; ${grouped(lag.held)} of them wait for older transactions` : ""}.`
      : "No leader has measured the lag yet.");
    const text = JSON.stringify([detail.dead_letters, detail.changes]);
    if (text === drawn) return;
    drawn = text;
    const focused = document.activeElement?.getAttribute?.("data-action");
    const waiting = detail.dead_letters.filter((l) => !l.dismissed_at);
    all.replaceChildren(...(mayAct() && waiting.length ? [waiting.some((l) => !l.replay) ? replayAction(processorName) : "", " ", dismissAction(processorName, waiting)] : []));
    letters.replaceChildren(detail.dead_letters.length ? table("Dead letters", [["Event"], ["Error"], ["Attempts", "wide number"], ["Failed", "wide"], ...(mayAct() ? [["", "actions"]] : [])], detail.dead_letters.map((l) => letterRow(processorName, l)))
      : h("p", { class: "empty" }, "There is no dead letter."));
    changes.replaceChildren(changesTable(detail.changes));
    if (focused) page.querySelector(`[data-action="${CSS.escape(focused)}"]`)?.focus();
  }

  async function read() {
    try {
      detail = await get("processor", { name: processorName });
      drawDetail();
      draw();
    } catch (error) {
      if (error.status === 404 && !detail) notFound(page, "No processor with this name is known.", ["#/work", "All processors"]);
    }
  }

  page.replaceChildren(h("div", { class: "head" }, h("h1", { tabindex: "-1" }, h("bdi", {}, visibleName(processorName))), sign, buttons), facts, errorPanel,
    panel("Waiting events", h("span", { class: "faint small" }, "at most the last 6 hours, since the dashboard started"), h("div", { class: "body" }, chart.element, lagText)),
    panel("Dead letters", all, letters), panel("Changes by operators", null, changes));
  const { on, close } = keepCurrent(current, draw, read), slow = setInterval(on.refresh, 15_000);
  return { title: processorName, on: { ...on, theme: () => chart.redraw() }, close: () => { close(); clearInterval(slow); chart.close(); } };
}
