// An incident: what happened, the evidence of its cause, a timeline of its roles, and every
// change.

import { updateElement, figures, h, name, visibleName, panel, status } from "./dom.js";
import { get } from "./api.js";
import { count, duration, exact, moment, parts, reason, unclean, whole } from "./format.js";
import { lanes } from "./lanes.js";
import { extent, outcome } from "./incident-bar.js";
import { kindOf, roleLink, showEntries, timed } from "./sentences.js";

function moveRow(m) {
  const why = unclean(m.end_reason) ? status("critical", reason(m.end_reason)) : reason(m.end_reason);
  return h("tr", {},
    h("td", {}, name(m.role, roleLink(m.role)), h("div", { class: "narrow small" }, h("bdi", {}, visibleName(m.from)), " → ", m.to ? h("bdi", {}, visibleName(m.to)) : "no leader")),
    h("td", { class: "wide" }, name(m.from)), h("td", { class: "wide" }, why, m.requested_by ? [" by ", h("bdi", {}, visibleName(m.requested_by))] : ""),
    h("td", { class: "wide" }, h("time", { datetime: m.ended_at, title: whole(m.ended_at), class: "figure" }, exact(m.ended_at))),
    h("td", { class: "wide" }, m.to ? name(m.to) : status("critical", "no leader")),
    h("td", { class: "number figure" }, m.to ? duration(m.without_leader_seconds) : "–", h("div", { class: "small faint" }, m.to ? parts(m) : "")));
}

function movesTable(moves) {
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Changes of leaders" }, h("table", { class: "table" },
    h("thead", {}, h("tr", {}, [["Role"], ["From", "wide"], ["Why", "wide"], ["Ended", "wide"], ["To", "wide"], ["Without a leader", "number"]]
      .map(([title, className]) => h("th", { scope: "col", class: className }, title)))),
    h("tbody", {}, moves.map(moveRow))));
}

export default function incident(page, id) {
  const story = h("div", {}, h("div")), facts = h("div", { class: "words" }, h("div")), moves = h("div", {}, h("div")), evidence = h("div", { class: "body" }, h("div"));
  const events = h("ul", { class: "entries", tabindex: "0", "aria-label": "Changes of nodes and actions" });
  const others = panel("Changes of nodes, and actions", null, events);
  const changes = h("span", { class: "faint small" });
  let current = null, line = null, timer;

  function draw() {
    const i = current;
    const level = i.ended_at ? "faint" : "critical";
    updateElement(story.firstChild, h("div", { class: "head" }, h("h1", { tabindex: "-1" }, kindOf(i.kind)), status(level, i.ended_at ? "over" : "continues", i.ended_at ? "good" : "critical"),
      h("p", { class: "story" }, timed(i.sentence))));
    updateElement(facts.firstChild, figures([
      ["Began", h("time", { datetime: i.began_at, title: whole(i.began_at) }, moment(i.began_at))], ["Extent", extent(i)], ["State", outcome(i)], ["Requested by", i.requested_by ? h("bdi", {}, visibleName(i.requested_by)) : "–"],
    ]));
    updateElement(evidence.firstChild, h("ul", { class: "sentences" }, i.evidence.map((text) => h("li", {}, timed(text, exact)))));
    changes.textContent = i.moves.length < i.changes ? `${count(i.moves.length, "change")} of ${i.changes}` : count(i.moves.length, "change");
    updateElement(moves.firstChild, h("div", {}, i.moves.length ? movesTable(i.moves) : h("p", { class: "empty" }, "No role changed its leader.")));
    others.hidden = !i.events.length;
    showEntries(events, i.events);
  }

  async function read() {
    try {
      current = await get("incident", { id });
    } catch (error) {
      if (error.status !== 404 || current) return;
      page.replaceChildren(h("h1", {}, "Incident"), h("p", { class: "panel empty" }, "This incident is not known: it is older than what the dashboard keeps, or the database answers again and no outage was recorded. ", h("a", { href: "#/events" }, "All events")));
      return;
    }
    if (!line) {
      line = lanes(current.kind === "outage" || !current.roles ? "" : current.id, current.from, current.to);
      page.replaceChildren(story, facts, panel("Evidence", null, evidence), panel("Who led which role", line.tools, line.element),
        panel("Single changes", changes, moves), others);
    }
    draw();
  }

  page.replaceChildren(h("p", { class: "loading" }, "Loading…"));
  read();
  const tick = setInterval(() => { if (current && !current.ended_at) draw(); }, 1000);
  const readSoon = () => { clearTimeout(timer); timer = setTimeout(() => { read(); line?.reload(); }, 300); };
  return {
    title: "Incident",
    on: { incidents: readSoon, refresh: readSoon, theme: () => line?.redraw(), change: (change) => { if (current && !current.ended_at && change.events.length) readSoon(); } },
    close: () => { clearInterval(tick); clearTimeout(timer); line?.close(); },
  };
}
