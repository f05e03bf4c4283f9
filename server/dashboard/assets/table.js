// A list of any length that creates elements only for the rows in view. It reads rows from
// the server in parts.

import { announce, reorder, updateElement, h } from "./dom.js";

const chunk = 100; // rows per request
const spare = 6; // rows beyond the edges
const tallest = 8_000_000; // pixels: browsers draw nothing beyond some height
const refreshDelay = 120; // milliseconds in which changes are combined

// lists holds the lists of the shown page, for printing.
export const lists = new Set();

const small = matchMedia("(max-width: 900px)"), phone = matchMedia("(max-width: 600px)"), medium = matchMedia("(max-width: 1350px)"), coarse = matchMedia("(pointer: coarse)");

// shownLines returns for how many lines a row has room, of those that it has on a phone.
const shownLines = (lines) => (phone.matches ? lines : Math.min(lines, 3));

// heightOf returns the height of a row, which grows with the font size.
function heightOf(lines) {
  const type = parseFloat(getComputedStyle(document.documentElement).fontSize);
  return Math.round(type * (small.matches ? Math.max(3.15, 1.3 * shownLines(lines) + 0.8) : coarse.matches ? 3.15 : 2.58));
}

// list creates a list. columns are [{title, width, number, wide, wider, sort, cell(row)}]. A wide
// column is not shown on a phone, and a wider one on a large screen only.
// fetch(offset, limit, order) returns {total, rows}. A row whose notable(row) changes is
// highlighted. ordered(order) is called when the user sorts. On a phone, a row has room for
// the given number of lines. With hold, rows keep their places while the list is "scrolled"
// or, with "used", also while it has the pointer or the focus: their content is updated, and
// a button shows the new order.
export function list({ label, columns, fetch, key, empty, lines = 1, order = {}, ordered, hold = "", notable = JSON.stringify }) {
  const element = h("div", { class: lines > 1 ? "list tall" : "list", role: "table", "aria-label": label, tabindex: "0" });
  const titles = h("div", { class: "cells titles", role: "row" });
  const body = h("div", { class: "rows", role: "rowgroup" });
  const nothing = h("div", { class: "empty" }, empty);
  nothing.hidden = true;
  element.append(h("div", { role: "rowgroup" }, titles), body);
  const show = h("button", { type: "button", class: "primary compact order", onclick: () => { element.scrollTop = 0; refresh(); } }, "Order has changed: show");
  show.hidden = true;
  const wrapper = h("div", { class: "list-frame" }, element, show, nothing);

  // Rows from before the last refresh are shown until new ones arrive.
  let rows = new Map(), old = new Map(), requested = new Set(), shown = new Map();
  let total = 0, generation = 0, reading = 0, began = 0, drawing = false, refreshAgain = false, complete = false, rowHeight = 0;

  function layout() {
    rowHeight = heightOf(lines);
    element.style.setProperty("--lines", shownLines(lines));
    element.style.setProperty("--row", `${rowHeight}px`);
    element.style.setProperty("--columns", columns.filter((c) => (!small.matches || !c.wide) && (!medium.matches || !c.wider)).map((c) => (small.matches && c.narrow) || c.width).join(" "));
    body.style.height = `${Math.min(total * rowHeight, tallest)}px`;
  }

  function drawTitles() {
    titles.replaceChildren(...columns.map((column) => {
      const sorted = column.sort && order.sort === column.sort;
      const content = column.sort
        ? h("button", { type: "button", onclick: () => sortBy(column.sort) }, column.title, sorted ? (order.down ? " ↑" : " ↓") : "")
        : column.title || h("span", { class: "visually-hidden" }, column.name ?? "Actions");
      return h("div", {
        class: classes(column), role: "columnheader", "aria-sort": sorted ? (order.down ? "descending" : "ascending") : undefined,
      }, content);
    }));
  }

  function sortBy(column) {
    order = { sort: column, down: order.sort === column && !order.down };
    ordered?.(order);
    drawTitles();
    titles.querySelectorAll("button")[columns.filter((c) => c.sort).findIndex((c) => c.sort === column)]?.focus();
    refresh();
  }

  const classes = (column) => `cell${column.number ? " number" : ""}${column.wide ? " wide" : ""}${column.wider ? " wider" : ""}${column.pale ? " pale" : ""}`;

  const cells = (row) => columns.map((column) => h("div", { class: classes(column), role: "cell" }, row ? column.cell(row) : column === columns[0] ? "…" : ""));

  const update = (element, row) => cells(row).forEach((next, i) => updateElement(element.children[i], next));

  // rowElement returns the element of a row. A row that had one keeps it, and thereby the
  // focus.
  function rowElement(row, before) {
    const text = row ? JSON.stringify(row) : "";
    if (!before) return { element: h("div", { class: "cells row", role: "row" }, cells(row)), text, row };
    if (before.text !== text) {
      update(before.element, row);
      if (notable(row) !== notable(before.row)) {
        before.element.classList.remove("fresh");
        void before.element.offsetWidth; // restarts the animation
        before.element.classList.add("fresh");
      }
    }
    return { element: before.element, text, row };
  }

  function draw() {
    drawing = false;
    if (!element.isConnected) return;
    const first = complete ? 0 : Math.max(0, Math.floor(element.scrollTop / rowHeight) - spare);
    const last = complete ? total : Math.min(total, Math.ceil((element.scrollTop + element.clientHeight) / rowHeight) + spare);
    const byKey = new Map([...shown.values()].filter(({ row }) => row).map((one) => [key(one.row), one]));
    shown = new Map();
    for (let index = first; index < last; index++) {
      let row = rows.get(index);
      if (!row) {
        ask(index);
        row = old.get(index);
      }
      const one = rowElement(row, row && byKey.get(key(row)));
      if (row) byKey.delete(key(row)); // a key can occur twice while some rows are older
      one.element.setAttribute("aria-rowindex", index + 2);
      one.element.style.transform = `translateY(${index * rowHeight}px)`;
      shown.set(index, one);
    }
    const held = body.contains(document.activeElement);
    reorder(body, [...shown.values()].map((one) => one.element));
    if (held && !body.contains(document.activeElement)) element.focus({ preventScroll: true }); // its row went out of view
  }

  function schedule() {
    if (drawing) return;
    drawing = true;
    requestAnimationFrame(draw);
  }

  async function ask(index) {
    const offset = Math.floor(index / chunk) * chunk;
    if (requested.has(offset)) return;
    requested.add(offset);
    const mine = generation;
    try {
      const page = await fetch(offset, chunk, order);
      if (mine !== generation) return;
      put(offset, page);
    } catch {
      if (mine === generation) setTimeout(() => { requested.delete(offset); schedule(); }, 2000);
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

  const held = () => total > 0 && Boolean(hold) && (element.scrollTop > 0 || (hold === "used" && (element.matches(":hover") || element.contains(document.activeElement))));

  // moves reports whether rows in view would change their places.
  function moves(offset, page) {
    const first = Math.floor(element.scrollTop / rowHeight), last = Math.min(total, Math.ceil((element.scrollTop + element.clientHeight) / rowHeight));
    for (let index = first; index < last; index++) {
      const row = rows.get(index), next = page.rows[index - offset];
      if (row && index - offset < chunk && (!next || key(next) !== key(row))) return true;
    }
    return false;
  }

  // refresh reads the rows in view again; the shown rows stay until then. A quiet
  // refresh does not move rows that the user may be reading.
  async function refresh(quiet = false) {
    const mine = ++generation;
    const offset = Math.floor(Math.max(0, element.scrollTop / rowHeight) / chunk) * chunk;
    requested = new Set([offset]);
    reading++;
    began = performance.now();
    try {
      const page = await fetch(offset, chunk, order);
      if (mine !== generation) return;
      if (quiet && held() && moves(offset, page)) {
        if (show.hidden) announce(show.textContent);
        show.hidden = false;
        patch(page.rows);
        return;
      }
      show.hidden = true;
      [old, rows] = [rows, new Map()];
      put(offset, page);
    } catch {
      byUser ||= !quiet;
      if (mine === generation) setTimeout(() => { if (element.isConnected && mine === generation) refresh(quiet); }, 2000);
    } finally {
      reading--;
      if (refreshAgain && !reading) {
        refreshAgain = false;
        refreshSoon(true); // for the changes during the read, byUser if the user requested one of them
      }
    }
  }

  // refreshSoon refreshes after a short delay, for changes in quick succession. A read in
  // progress is not interrupted: otherwise none would end while there are many changes. A
  // read that takes long may belong to a lost connection.
  let timer, byUser = false;
  const refreshSoon = (quiet = false) => {
    byUser ||= !quiet;
    if (reading && performance.now() - began < 3000) refreshAgain = true;
    else timer ??= setTimeout(() => { timer = undefined; const silent = !byUser; byUser = false; refresh(silent); }, refreshDelay);
  };
  // changed refreshes after a change that the user did not request.
  const changed = () => refreshSoon(true);
  element.addEventListener("pointerleave", () => { if (!show.hidden && !held()) refresh(); });

  // patch replaces known rows and reports whether all were known.
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

  // redraw updates ages and everything else that depends on more than the rows.
  const redraw = () => shown.forEach(({ element: made, row }) => { if (row) update(made, row); });

  // drawAll draws every row, for printing, until drawPart.
  async function drawAll() {
    const mine = generation;
    for (let offset = 0; offset < total; offset += chunk) {
      if (rows.has(offset) && rows.has(Math.min(total, offset + chunk) - 1)) continue;
      const page = await fetch(offset, chunk, order);
      if (mine === generation) put(offset, page);
    }
    complete = true;
    draw();
  }
  const drawPart = () => { complete = false; draw(); };

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
  for (const one of lists) if (!one.element.isConnected) lists.delete(one);
  lists.add({ element: wrapper, drawAll, drawPart });
  return { element: wrapper, refresh: () => refresh(), refreshSoon: () => refreshSoon(), changed, patch, redraw };
}
