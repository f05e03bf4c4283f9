// Audit: who did what, the latest first.

import { h, name, panel, prose } from "./dom.js";
import { parameter, setParameters } from "./address.js";
import { get } from "./api.js";
import { ago, moment, whole } from "./format.js";
import { list } from "./table.js";

const result = (e) => (e.done ? h("span", { class: "is-good" }, "Done") : h("span", { class: "is-warning" }, "Requested; no effect recorded"));

function what(e) {
  return h("span", { class: "lines" }, h("b", {}, e.action.replaceAll("_", " ")), ` ${e.kind} `, name(e.name),
    e.detail ? [" ", h("span", { class: "small faint" }, prose(e.detail))] : "", h("span", { class: "narrow small" }, " by ", name(e.by), ". ", result(e)));
}

export default function audit(page) {
  const filter = { search: parameter("search") };
  const table = list({
    label: "Actions of operators, the latest first", lines: 3, hold: "scrolled", key: (e) => e.number, empty: "No operator has changed anything.",
    columns: [
      { title: "When", width: "9.500rem", narrow: "4.700rem", cell: (e) => h("time", { datetime: e.at, title: whole(e.at) }, ago(e.at)) },
      { title: "Who", width: "14rem", wide: true, cell: (e) => name(e.by) },
      { title: "What", width: "minmax(0, 1fr)", cell: what },
      { title: "Result", width: "13rem", wide: true, cell: result },
      { title: "Time", width: "10rem", wide: true, pale: true, cell: (e) => h("time", { datetime: e.at, class: "figure" }, moment(e.at)) },
    ],
    fetch: (offset, limit) => get("audit", { offset, limit, search: filter.search }),
  });
  const find = h("input", { type: "search", placeholder: "Find a user, action or name", "aria-label": "Find a user, action or name" });
  find.value = filter.search;
  find.addEventListener("input", () => { filter.search = find.value.trim(); setParameters({ search: filter.search }); table.refreshSoon(); });
  page.replaceChildren(h("h1", { class: "visually-hidden" }, "Audit"), panel("Audit", [find], table.element));
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
