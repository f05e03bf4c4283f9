// All events, as they happen.

import { announce, h, lines, panel, sign } from "./dom.js";
import { get } from "./api.js";
import { parameter, setParameters } from "./address.js";
import { ago, moment, whole } from "./format.js";
import { list } from "./table.js";
import { searchField } from "./search.js";
import { appearance, incidentLink, sentence } from "./sentences.js";

export default function events(page) {
  const filter = { kind: parameter("kind", "fold", ["fold", "incident", "all", "began", "ended", "node", "action"]) };
  if (filter.kind === "all") filter.kind = "";
  let paused = false, held = 0, unannounced = [], announceTimer;
  const find = searchField("Find a role, node or user", () => table.refreshSoon());
  const table = list({
    label: "Events, the newest first", lines: 5, hold: "scrolled", key: (e) => e.number, empty: "No event matches.",
    columns: [
      { title: "When", width: "9.500rem", narrow: "4.700rem", cell: (e) => h("time", { datetime: e.time, title: whole(e.time) }, ago(e.time)) },
      { title: "What", width: "minmax(0, 1fr)", cell: (e) => { const [shape, color] = appearance(e); return h("span", { class: "linked" }, lines(h("span", { class: color }, sign(shape)), "  ", sentence(e, false)), e.incident ? h("a", { href: incidentLink(e.incident), class: "small" }, e.kind === "incident" ? "Details" : "Incident") : ""); } },
      { title: "Time", width: "10rem", wide: true, pale: true, cell: (e) => h("time", { datetime: e.time, class: "figure" }, moment(e.time)) },
    ],
    fetch: async (offset, limit) => {
      const { kind } = filter, search = find.text();
      if (kind !== "incident") return get("events", { offset, limit, search, ...(kind === "fold" ? { fold: 1 } : { kind }) });
      const { total, rows } = await get("incidents", { offset, limit, search });
      return { total, rows: rows.map((i) => ({ number: i.id, time: i.began_at, kind: "incident", status: i.kind, detail: i.sentence, incident: i.id, unplanned: i.unplanned })) };
    },
  });
  const kinds = h("select", { "aria-label": "Kind" }, [["fold", "Incidents and other events"], ["incident", "Incidents"], ["", "All single events"], ["began", "Terms begun"], ["ended", "Terms ended"], ["node", "Nodes"], ["action", "Actions"]].map(([value, text]) => h("option", { value }, text)));
  kinds.value = filter.kind;
  kinds.addEventListener("change", () => { filter.kind = kinds.value; setParameters({ kind: filter.kind === "fold" ? "" : filter.kind || "all" }); table.refresh(); });
  const hold = h("button", { type: "button", "aria-pressed": "false" }, "Hold");
  hold.addEventListener("click", () => {
    paused = !paused;
    held = 0;
    hold.setAttribute("aria-pressed", String(paused));
    hold.textContent = "Hold";
    if (!paused) table.refresh();
  });
  // announceNew makes a screen reader read new events, at most every few seconds.
  function announceNew() {
    if (announceTimer || !unannounced.length) return;
    announce(unannounced.length === 1 ? h("p", {}, sentence(unannounced[0])).textContent : `${unannounced.length} events`);
    unannounced = [];
    announceTimer = setTimeout(() => { announceTimer = undefined; announceNew(); }, 5000);
  }
  page.replaceChildren(h("h1", { class: "visually-hidden" }, "Events"), panel("Events", [find.field, kinds, hold], table.element));
  const tick = setInterval(table.redraw, 1000);
  return {
    title: "Events",
    on: {
      refresh: () => { if (!paused) table.changed(); },
      incidents: () => { if (!paused && filter.kind !== "") table.changed(); },
      change: (change) => {
        if (!change.events.length) return;
        if (paused) {
          held += change.events.length;
          hold.textContent = `Hold (${held} new)`;
          return;
        }
        table.changed();
        unannounced.push(...change.events);
        announceNew();
      },
    },
    close: () => { clearInterval(tick); clearTimeout(announceTimer); },
  };
}
