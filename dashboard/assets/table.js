// A list of any length, of which only the rows in view exist. Rows come from the
// server, some at a time.

import { become, h } from "./dom.js";

const chunk = 100; // rows asked for at once
const spare = 6; // rows beyond the edges
const tallest = 8_000_000; // pixels: browsers draw nothing beyond some height

// list makes one. columns are [{title, width, number, wide, sort, cell(row)}];
// fetch(offset, limit, order) returns {total, rows}; a row whose notable(row)
// changes is shown as fresh.
export function list({ label, columns, fetch, key, empty, order = {}, notable = JSON.stringify }) {
  const rowHeight = matchMedia("(pointer: coarse)").matches ? 44 : 36;
  const element = h("div", { class: "list", role: "table", "aria-label": label, tabindex: "0" });
  const titles = h("div", { class: "cells titles", role: "row" });
  const body = h("div", { class: "rows", role: "rowgroup" });
  const nothing = h("div", { class: "empty" }, empty);
  nothing.hidden = true;
  element.append(h("div", { role: "rowgroup" }, titles), body);
  const wrapper = h("div", {}, element, nothing);

  let rows = new Map(), asked = new Set(), shown = new Map(), total = 0, generation = 0, drawing = false;

  function layout() {
    const small = matchMedia("(max-width: 760px)").matches;
    element.style.setProperty("--columns", columns.filter((c) => !small || !c.wide).map((c) => (small && c.narrow) || c.width).join(" "));
  }

  function drawTitles() {
    titles.replaceChildren(...columns.map((column) => {
      const sorted = column.sort && order.sort === column.sort;
      const content = column.sort
        ? h("button", { type: "button", onclick: () => sortBy(column.sort) }, column.title, sorted ? (order.down ? " ↑" : " ↓") : "")
        : column.title || h("span", { class: "unseen" }, column.name ?? "Actions");
      return h("div", {
        class: classes(column), role: "columnheader", "aria-sort": sorted ? (order.down ? "descending" : "ascending") : undefined,
      }, content);
    }));
  }

  function sortBy(column) {
    order = { sort: column, down: order.sort === column && !order.down };
    drawTitles();
    titles.querySelectorAll("button")[columns.filter((c) => c.sort).findIndex((c) => c.sort === column)]?.focus();
    refresh();
  }

  const classes = (column) => `cell${column.number ? " number" : ""}${column.wide ? " wide" : ""}${column.pale ? " pale" : ""}`;

  const cells = (row) => columns.map((column) => h("div", { class: classes(column), role: "cell" }, row ? column.cell(row) : column === columns[0] ? "…" : ""));

  function make(index, row) {
    const made = h("div", { class: "cells row", role: "row", "aria-rowindex": index + 2 }, cells(row));
    made.style.transform = `translateY(${index * rowHeight}px)`;
    return made;
  }

  const update = (element, row) => cells(row).forEach((next, i) => become(element.children[i], next));

  function draw() {
    drawing = false;
    if (!element.isConnected) return;
    const first = Math.max(0, Math.floor(element.scrollTop / rowHeight) - spare);
    const last = Math.min(total, Math.ceil((element.scrollTop + element.clientHeight) / rowHeight) + spare);
    for (const [index, { element: old }] of shown) {
      if (index < first || index >= last) {
        old.remove();
        shown.delete(index);
      }
    }
    for (let index = first; index < last; index++) {
      const row = rows.get(index);
      if (!row) ask(index);
      const before = shown.get(index);
      const text = row ? JSON.stringify(row) : "";
      if (before?.text === text) continue;
      const same = before?.row && row && key(row) === key(before.row);
      let drawn = before?.element;
      if (same) {
        update(drawn, row);
        if (notable(row) !== notable(before.row)) {
          drawn.classList.remove("fresh");
          void drawn.offsetWidth; // so that it begins again
          drawn.classList.add("fresh");
        }
      } else {
        drawn = make(index, row);
        if (before) before.element.replaceWith(drawn);
        else body.append(drawn);
      }
      shown.set(index, { element: drawn, text, row });
    }
  }

  function schedule() {
    if (drawing) return;
    drawing = true;
    requestAnimationFrame(draw);
  }

  async function ask(index) {
    const offset = Math.floor(index / chunk) * chunk;
    if (asked.has(offset)) return;
    asked.add(offset);
    const mine = generation;
    try {
      const page = await fetch(offset, chunk, order);
      if (mine !== generation) return;
      put(offset, page);
    } catch {
      if (mine === generation) setTimeout(() => { asked.delete(offset); schedule(); }, 2000);
    }
  }

  function put(offset, page) {
    page.rows.forEach((row, i) => rows.set(offset + i, row));
    total = page.total;
    body.style.height = `${Math.min(total * rowHeight, tallest)}px`;
    element.setAttribute("aria-rowcount", total + 1);
    element.hidden = total === 0;
    nothing.hidden = total !== 0;
    schedule();
  }

  // refresh reads again what is in view; what is shown stays until it comes.
  async function refresh() {
    const mine = ++generation;
    const offset = Math.floor(Math.max(0, element.scrollTop / rowHeight) / chunk) * chunk;
    asked = new Set([offset]);
    try {
      const page = await fetch(offset, chunk, order);
      if (mine !== generation) return;
      rows = new Map();
      put(offset, page);
    } catch {
      if (mine === generation) setTimeout(() => { if (element.isConnected && mine === generation) refresh(); }, 2000);
    }
  }

  let timer;
  const later = () => {
    if (timer) return;
    timer = setTimeout(() => { timer = undefined; refresh(); }, 120);
  };

  // patch replaces rows that are known and reports whether all were.
  function patch(changed) {
    const byKey = new Map(changed.map((row) => [key(row), row]));
    for (const [index, row] of rows) {
      const next = byKey.get(key(row));
      if (next) {
        rows.set(index, next);
        byKey.delete(key(row));
      }
    }
    schedule();
    return byKey.size === 0;
  }

  // each calls back for every row in view, to bring what ages up to date.
  const each = (visit) => shown.forEach(({ element: made, row }) => { if (row) visit(made, row); });

  layout();
  drawTitles();
  element.addEventListener("scroll", schedule, { passive: true });
  addEventListener("resize", function resized() {
    if (!wrapper.isConnected) return removeEventListener("resize", resized);
    layout();
    schedule();
  });
  element.addEventListener("keydown", (event) => {
    if (event.target !== element) return;
    const step = { ArrowDown: rowHeight, ArrowUp: -rowHeight, PageDown: element.clientHeight - 40, PageUp: 40 - element.clientHeight }[event.key];
    if (step) element.scrollTop += step;
    else if (event.key === "Home") element.scrollTop = 0;
    else if (event.key === "End") element.scrollTop = element.scrollHeight;
    else return;
    event.preventDefault();
  });
  refresh();
  return { element: wrapper, refresh, later, patch, each };
}
