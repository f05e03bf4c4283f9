// Shared by the pages of processors and schedules.

import { h, name } from "./dom.js";
import { action, moment, whole } from "./format.js";

export const region = (label, content) => h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label }, content);

// table returns a table with columns [title, class] and rows.
export const table = (label, columns, rows) => region(label, h("table", { class: "table" },
  h("thead", {}, h("tr", {}, columns.map(([title, className]) => h("th", { scope: "col", class: className }, title || h("span", { class: "visually-hidden" }, "Actions"))))),
  h("tbody", {}, rows)));

export const time = (at) => (at ? h("time", { datetime: at, title: whole(at) }, moment(at)) : "–");

// changesTable returns a table of who changed what.
export const changesTable = (changes) => (changes.length ? table("Changes by operators", [["When"], ["Who"], ["What"], ["Detail", "wide"]], changes.map((c) => h("tr", {},
  h("td", {}, time(c.time)), h("td", {}, name(c.requested_by)), h("td", {}, action(c.action)), h("td", { class: "wide" }, c.detail || "–"))))
  : h("p", { class: "empty" }, "No operator has changed it."));

// keepCurrent draws and reads a page, draws it every second, and reads it again when the
// state that the stream sends has changed.
export function keepCurrent(current, draw, read) {
  let timer, lastState = "";
  const readSoon = () => { clearTimeout(timer); timer = setTimeout(read, 1200); }; // an earlier result is used for a second
  draw();
  read();
  const tick = setInterval(draw, 1000);
  return {
    on: {
      work: () => {
        draw();
        const state = JSON.stringify(current());
        if (state !== lastState) readSoon();
        lastState = state;
      },
      refresh: readSoon, stale: draw,
    },
    close: () => { clearInterval(tick); clearTimeout(timer); },
  };
}
