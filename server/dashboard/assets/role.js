// A role: its current leader, its earlier leaders, and every term.

import { updateElement, figures, h, inText, lines, name, visibleName, panel, status } from "./dom.js";
import { get } from "./api.js";
import { pageLink } from "./address.js";
import { count, duration, grouped, moment, parts, reason, short, shortTerm, since, long, statusOf, unclean, whole, isLed } from "./format.js";
import { ageText, statusWithAge, staleSeconds } from "./staleness.js";
import { outward } from "./outward.js";
import { list } from "./table.js";
import { searchField } from "./search.js";
import { lastChange } from "./sentences.js";
import { timeline } from "./timeline.js";
import { timeInState, leaseCell } from "./overview.js";
import { state as live } from "./live.js";
import { handOver, mayAct, stepDown } from "./actions.js";

export default function role(page, roleName) {
  const facts = h("div", {}, h("div"));
  const buttons = h("div", {}), links = h("div", {});
  const state = h("span", {}, h("span")), waits = h("div", {}, h("div")), story = h("p", { class: "story" }, h("span"));
  const line = timeline(roleName);
  let current = null, failovers = null, unknown = false, buttonsFor = "";
  const find = searchField("Find a leader or reason", () => terms.refreshSoon());
  const terms = list({
    label: "Terms, the newest first", lines: 3, key: (t) => t.term, empty: "No term matches.",
    columns: [
      { title: "Term", width: "minmax(8rem, 0.6fr)", narrow: "3.8rem", cell: (t) => h("span", { class: "figure", title: String(t.term) }, h("span", { class: "wide" }, String(t.term)), h("span", { class: "narrow" }, shortTerm(t.term))) },
      { title: "Leader", width: "minmax(7rem, 1.4fr)", narrow: "minmax(0, 1fr)", cell: (t) => name(t.node_name) },
      { title: "Began", width: "minmax(8rem, 1fr)", wide: true, cell: (t) => h("time", { datetime: t.began_at, title: whole(t.began_at) }, moment(t.began_at)) },
      { title: "Lasted", width: "minmax(6rem, 0.8fr)", narrow: "4.6rem", cell: (t) => (t.ended_at ? duration((Date.parse(t.ended_at) - Date.parse(t.began_at)) / 1000) : long(since(t.began_at))) },
      { title: "Ended", width: "minmax(9rem, 1.4fr)", narrow: "minmax(0, 1.3fr)", cell: (t) => ending(t) },
      { title: "No leader before", width: "8rem", number: true, wide: true, cell: (t) => h("span", { class: "figure" }, duration(t.without_leader_seconds)) },
      { title: "Parts", width: "minmax(8rem, 1fr)", wider: true, pale: true, cell: (t) => lines(parts(t) || "–") },
    ],
    fetch: (offset, limit) => get("terms", { role: roleName, offset, limit, search: find.text().replace(/^…/, "") }),
  });

  // summary returns a sentence that states since when the role is in its state, and why.
  function summary(now) {
    const began = now.ended_at ?? (isLed(now) ? now.began_at : null);
    const known = !isLed(now) || now.previous;
    return [ageText() ? `As of ${short(staleSeconds())} ago: ` : "", !isLed(now) ? "No node leads" : [inText(now.node_name), " leads"], began ? [" since ", h("time", { datetime: began }, whole(began))] : "",
      known ? [": ", lastChange(now)] : "", isLed(now) && now.without_leader_seconds ? `; before, no node led for ${duration(now.without_leader_seconds)}` : "", "."];
  }

  // blockers states which transactions keep the next term from beginning, and what ends them.
  function blockers() {
    const all = isLed(current) ? [] : (live.now?.blocked ?? []).filter((b) => b.role === roleName);
    return h("div", {}, all.map((b) => h("p", { class: "panel body is-critical" }, "The next term waits for ", h("bdi", {}, visibleName(b.blocked_by)), b.since ? `, open for ${long(since(b.since))}. ` : ". ",
      b.advice ? ["A database user with the privilege can end it: ", h("code", {}, visibleName(b.advice))] : "The waiting node ends it after its fence timeout.")));
  }

  function ending(term) {
    if (!term.ended_at && !current) return "…"; // its state arrives with the role
    if (!term.ended_at && current.term === term.term) return current.state === "vacant" ? statusWithAge("critical", "its node died or left") : statusWithAge("good", "continues");
    const text = reason(term.end_reason);
    return [unclean(term.end_reason) ? status("critical", text) : h("span", {}, text), term.requested_by ? h("span", { class: "faint" }, " by ", h("bdi", { title: visibleName(term.requested_by) }, visibleName(term.requested_by))) : ""];
  }

  function draw() {
    if (!current) return;
    const [level, text, shape] = statusOf(current.state);
    updateElement(state.firstChild, statusWithAge(level, text, shape));
    line.setVacant(current.state === "vacant" && current.ended_at ? Date.parse(current.ended_at) : null);
    updateElement(story.firstChild, h("span", {}, summary(current)));
    updateElement(waits.firstChild, blockers());
    waits.hidden = !waits.firstChild.childElementCount;
    updateElement(facts.firstChild, figures([
      ["Leader", isLed(current) ? name(current.node_name, pageLink("node", current.node)) : "none", isLed(current) ? current.agent && `behind ${visibleName(current.agent)}` : ""],
      ["Term", h("span", { title: String(current.term) }, shortTerm(current.term))],
      [isLed(current) ? "Leading for" : current.state === "vacant" ? "Vacant for" : "At rest for", timeInState(current)],
      ["Lease left", leaseCell(current)],
      ["Failovers", failovers ? grouped(failovers.failovers) : "–", failovers?.moves ? `and ${count(failovers.moves, "planned move")}` : ""],
      ["Median failover", failovers?.median ? duration(failovers.median.without_leader_seconds) : "–"],
    ], ageText()));
    terms.redraw();
    const key = `${isLed(current)} ${current.term}`;
    if (mayAct() && key !== buttonsFor) {
      buttonsFor = key;
      buttons.replaceChildren(...(isLed(current) ? [stepDown(current), " ", handOver(current)] : []));
    }
  }

  async function read() {
    try {
      const detail = await get("role", { name: roleName });
      ({ role: current, failovers } = detail);
      links.replaceChildren(outward(detail.links));
      draw();
    } catch (error) {
      if (error.status !== 404) return;
      unknown = true;
      page.replaceChildren(h("h1", {}, h("bdi", {}, visibleName(roleName))), h("p", { class: "panel empty" }, "No role with this name is known: no node has led it, or its row was removed."));
    }
  }

  page.replaceChildren(
    h("div", { class: "head" }, h("h1", { tabindex: "-1" }, h("bdi", {}, visibleName(roleName))), state, buttons, story, links), waits, facts,
    panel("Who led when", line.tools, line.element, h("div", { class: "legend" },
      h("span", {}, "Bars: terms"), h("span", {}, "Notch: unplanned end"), h("span", {}, "Hatched: no leader"), h("span", {}, "Drag to move"), h("span", { class: "wide" }, "Ctrl or Shift and the wheel zoom"))),
    panel("Terms", [find.field], terms.element));
  read();
  const tick = setInterval(draw, 1000);
  let timer;
  return {
    title: roleName,
    on: {
      now: draw,
      theme: () => line.redraw(),
      refresh: () => { read(); line.reload(); terms.refreshSoon(); },
      change: (change) => {
        const changed = change.roles.find((r) => r.role === roleName);
        if (!changed && !change.events.some((e) => e.role === roleName)) return;
        if (unknown) return dispatchEvent(new HashChangeEvent("hashchange")); // it is led for the first time
        if (changed) current = changed;
        draw();
        terms.refreshSoon();
        line.reload(50);
        clearTimeout(timer);
        timer = setTimeout(read, 300);
      },
    },
    close: () => { clearInterval(tick); clearTimeout(timer); line.close(); },
  };
}
