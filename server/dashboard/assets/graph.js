// A graph of figures over time. It is drawn on a canvas; the tip and the table below it
// have the same values as text.

import { announce, h, visibleName } from "./dom.js";
import { prepare } from "./canvas.js";
import { clock, grouped, minute, moment } from "./format.js";

const height = 170, left = 58, bottom = 24, top = 10;
const dashes = [[], [6, 4], [2, 3]]; // lines differ without color
const steps = [1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440, 2880, 7200].map((minutes) => minutes * 60_000); // between times of the axis
const mostRows = 60; // of the table

export const valueText = (unit, value) => (value === null ? "no sample" : unit === "ratio" ? `${+(100 * value).toFixed(1)} %` : grouped(Math.round(value * 10) / 10));

// nice returns a round number that is not below another, and whose half is whole from 2 on.
function nice(most) {
  const power = 10 ** Math.floor(Math.log10(most));
  return [1, 2, 4, 6, 10].map((n) => n * power).find((n) => n >= most);
}

// graph shows series of points [milliseconds, value or null]. titles names the series. With
// step, each value is a number in the time from its point.
export function graph(title, titles) {
  const canvas = h("canvas", { class: "chart", "aria-hidden": "true" });
  const tip = h("div", { class: "tip" });
  tip.hidden = true;
  const frame = h("div", { class: "timeline", tabindex: "0", role: "group", "aria-label": title }, canvas, tip);
  const legend = h("div", { class: "legend" }), body = h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `${title} as a table` });
  const table = h("details", { class: "values" }, h("summary", {}, "Table"), body);
  const element = h("div", { class: "graph" }, frame, legend, table);
  let data = { unit: "count", step: 0, series: [] }, from = 0, to = 1, daily = false, times = [], cursor = -1, plot = null, rowsOf = null;

  const label = (at) => (daily ? minute(at) : to - from > 86_400_000 ? moment(at) : clock(at));

  function draw() {
    const width = frame.clientWidth;
    if (!width) return;
    const { c, color, palette } = prepare(canvas, width, height);
    const x = (at) => left + ((at - from) / (to - from)) * (width - left - 14);
    const values = data.series.flatMap((s) => s.points.map(([, value]) => value ?? 0));
    const most = data.unit === "ratio" ? Math.max(1, nice(Math.max(1, ...values))) : nice(Math.max(1, ...values));
    const y = (value) => top + (1 - value / most) * (height - bottom - top - 6);
    c.textAlign = "right";
    for (const mark of most === 1 && data.unit === "count" ? [0, 1] : [0, most / 2, most]) {
      c.fillStyle = color("--line");
      c.fillRect(left, y(mark), width - left, 1);
      c.fillStyle = color("--faint");
      c.fillText(valueText(data.unit, mark), left - 8, y(mark));
    }
    c.textAlign = "center";
    const step = steps.find((s) => (s / (to - from)) * (width - left) > 110) ?? steps.at(-1);
    for (let at = Math.ceil(from / step) * step; at < to; at += step) {
      if (x(at) > left + 30 && x(at) < width - 40) c.fillText(label(at), x(at), height - bottom / 2);
    }
    data.series.forEach((series, i) => {
      c.strokeStyle = c.fillStyle = palette[i % palette.length];
      c.lineWidth = 1.75;
      if (data.step) bars(c, series, x, y);
      else lines(c, series, x, y, dashes[i % dashes.length]);
    });
    plot = { x, y, width };
    if (cursor >= 0 && times[cursor] !== undefined) {
      c.fillStyle = color("--faint");
      c.fillRect(x(times[cursor]), top, 1, height - bottom - top);
    }
  }

  // lines draws a line, which is broken where samples are missing.
  function lines(c, series, x, y, dash) {
    c.setLineDash(dash);
    c.beginPath();
    let before = null;
    series.points.forEach(([at, value], i) => {
      if (value !== null && before === null && (series.points[i + 1]?.[1] ?? null) === null) c.fillRect(x(at) - 2, y(value) - 2, 4, 4); // alone
      if (value !== null) before === null ? c.moveTo(x(at), y(value)) : c.lineTo(x(at), y(value));
      before = value;
    });
    c.stroke();
    c.setLineDash([]);
  }

  function bars(c, series, x, y) {
    for (const [at, value] of series.points) {
      const width = Math.max(2, x(at + data.step) - x(at) - 2);
      if (value) c.fillRect(x(at) + 1, y(value), width, y(0) - y(value));
    }
  }

  const at = (time) => data.series.map((s) => [s.name, s.points.find((p) => p[0] === time)?.[1] ?? null]);
  const named = (name) => titles[name] ?? visibleName(name);

  function summary() {
    const parts = data.series.map((series) => {
      const known = series.points.filter(([, value]) => value !== null);
      if (!known.length) return `${named(series.name)}: no sample`;
      const values = known.map(([, value]) => value);
      const [least, most] = [values.reduce((a, b) => Math.min(a, b)), values.reduce((a, b) => Math.max(a, b))];
      return `${named(series.name)}: ${valueText(data.unit, least)} to ${valueText(data.unit, most)}, last ${valueText(data.unit, values.at(-1))}`;
    });
    return `${title}. ${parts.join("; ")}. The table below shows the values; left and right show single ones.`;
  }

  function drawTable() {
    if (!table.open || rowsOf === data) return;
    rowsOf = data;
    const every = Math.ceil(times.length / mostRows);
    const chosen = times.filter((_, i) => (times.length - 1 - i) % every === 0).reverse();
    body.replaceChildren(h("table", { class: "table" },
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, data.step ? "From" : "Time"), data.series.map((s) => h("th", { scope: "col", class: "number" }, named(s.name))))),
      h("tbody", {}, chosen.map((time) => h("tr", {}, h("td", {}, h("time", { datetime: new Date(time).toISOString() }, moment(time))), at(time).map(([, value]) => h("td", { class: "number figure" }, valueText(data.unit, value))))))));
  }

  function show(index) {
    cursor = index;
    tip.hidden = index < 0;
    draw();
    if (index < 0 || !plot) return;
    const time = times[index];
    tip.textContent = [moment(time), ...at(time).map(([name, value]) => `${named(name)}: ${valueText(data.unit, value)}`)].join("\n");
    tip.style.left = `${Math.max(4, Math.min(plot.x(time) + 12, plot.width - tip.offsetWidth - 8))}px`;
    tip.style.top = `${top}px`;
  }

  frame.addEventListener("pointermove", (event) => {
    if (!plot || !times.length) return;
    const px = event.clientX - canvas.getBoundingClientRect().left;
    show(times.reduce((best, time, i) => (Math.abs(plot.x(time) - px) < Math.abs(plot.x(times[best]) - px) ? i : best), 0));
  });
  frame.addEventListener("pointerleave", () => show(-1));
  frame.addEventListener("blur", () => show(-1));
  frame.addEventListener("keydown", (event) => {
    const last = times.length - 1, next = { ArrowLeft: cursor < 0 ? last : Math.max(0, cursor - 1), ArrowRight: cursor < 0 ? last : Math.min(last, cursor + 1), Home: 0, End: last }[event.key];
    if (next === undefined || !times.length) return;
    event.preventDefault();
    show(next);
    announce(tip.textContent.replaceAll("\n", ", "));
  });
  table.addEventListener("toggle", drawTable);
  const observer = new ResizeObserver(draw);
  observer.observe(frame);

  function set(next, range) {
    [data, from, to, daily] = [next, range.from, range.to, range.daily];
    const kept = times[cursor];
    times = [...new Set(data.series.flatMap((s) => s.points.map(([time]) => time)))].sort((a, b) => a - b);
    cursor = kept === undefined ? -1 : times.indexOf(kept);
    frame.setAttribute("aria-label", summary());
    legend.replaceChildren(...data.series.map((series, i) => h("span", {}, swatch(i, data.step), named(series.name), " ", h("b", {}, valueText(data.unit, series.points.at(-1)?.[1] ?? null)))));
    drawTable();
    draw();
    if (cursor >= 0) show(cursor);
  }

  // swatch shows how the line of a series is drawn.
  function swatch(i, bar) {
    const mark = h("canvas", { class: "line-swatch", "aria-hidden": "true" });
    mark.width = 56;
    mark.height = 20;
    const { palette } = prepare(h("canvas"), 1, 1), c = mark.getContext("2d");
    c.strokeStyle = c.fillStyle = palette[i % palette.length];
    c.lineWidth = 4;
    c.setLineDash(dashes[i % dashes.length].map((n) => 2 * n));
    if (bar) c.fillRect(18, 2, 20, 16);
    else {
      c.moveTo(0, 10);
      c.lineTo(56, 10);
      c.stroke();
    }
    return mark;
  }

  return { element, set, redraw: () => set(data, { from, to, daily }), close: () => observer.disconnect() };
}
