// Audit: who did what, the latest first.

import { h, inText, name, panel } from "./dom.js";
import { get } from "./api.js";
import { ago, moment, whole } from "./format.js";
import { list } from "./table.js";
import { searchField } from "./search.js";

const result = (e) => (e.result === "failed" ? h("span", { class: "is-critical" }, "Failed") : e.result === "done" ? h("span", { class: "is-good" }, "Done") : h("span", { class: "is-warning" }, "Requested; no effect recorded"));

// what states an action and what it was about; on a phone, all else too.
function what(e) {
  const detail = e.detail ? h("span", { class: "detail faint small", title: e.detail }, e.detail) : "";
  return h("span", { class: "stack" }, h("span", { class: "subject" }, h("span", {}, h("b", {}, e.action.replaceAll("_", " ")), ` ${e.kind} `), inText(e.name)), detail,
    h("span", { class: "narrow small" }, "by ", inText(e.requested_by)), h("span", { class: "narrow small" }, result(e)));
}

export default function audit(page) {
  const find = searchField("Find a user, action or name", () => table.refreshSoon());
  const table = list({
    label: "Actions of operators, the latest first", lines: 4, hold: "scrolled", key: (e) => e.number, empty: "No operator has changed anything.",
    columns: [
      { title: "When", width: "9.500rem", narrow: "4.700rem", cell: (e) => h("time", { datetime: e.time, title: whole(e.time) }, ago(e.time)) },
      { title: "Who", width: "14rem", wide: true, cell: (e) => name(e.requested_by) },
      { title: "What", width: "minmax(0, 1fr)", cell: what },
      { title: "Result", width: "13rem", wide: true, cell: result },
      { title: "Time", width: "10rem", wide: true, pale: true, cell: (e) => h("time", { datetime: e.time, class: "figure" }, moment(e.time)) },
    ],
    fetch: (offset, limit) => get("audit", { offset, limit, search: find.text() }),
  });
  page.replaceChildren(h("h1", { class: "visually-hidden" }, "Audit"), panel("Audit", [find.field], table.element));
  const tick = setInterval(table.redraw, 1000);
  // The server shares a reading for 2 s, so what an event announces can be missing in
  // it. Some records come without an event.
  const again = setInterval(table.changed, 3000);
  return {
    title: "Audit",
    on: { refresh: () => table.changed(), change: () => table.changed(), work: () => table.changed(), alerts: () => table.changed() },
    close: () => { clearInterval(tick); clearInterval(again); },
  };
}
