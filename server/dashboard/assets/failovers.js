// For how long roles were without a leader. Each failover is a point.

import { figures, h, inText, lines, name, panel, status } from "./dom.js";
import { parameter, setParameters } from "./address.js";
import { get } from "./api.js";
import { count, duration, grouped, minute, moment, parts, reason, unclean, whole } from "./format.js";
import { list } from "./table.js";
import { searchField } from "./search.js";
import { incidentLink, roleLink } from "./sentences.js";

const height = 260, left = 58, bottom = 26;

// plot draws the points over time, on a logarithmic scale.
function plot(canvas, data) {
  const ratio = devicePixelRatio || 1, width = canvas.parentElement.clientWidth;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.height = `${height}px`;
  const style = getComputedStyle(document.documentElement);
  const color = (key) => style.getPropertyValue(key).trim();
  const c = canvas.getContext("2d");
  c.setTransform(ratio, 0, 0, ratio, 0, 0);
  c.font = `12px ${style.getPropertyValue("--text-font")}`;
  c.textBaseline = "middle";
  const points = data.points ?? [];
  if (!points.length) return;
  const times = points.map((p) => p[0]);
  const first = times.reduce((a, b) => Math.min(a, b)), last = Math.max(times.reduce((a, b) => Math.max(a, b)), first + 60_000);
  const low = Math.floor(Math.log10(Math.max(1e-4, points.reduce((least, p) => Math.min(least, p[1]), Infinity))));
  const high = Math.max(low + 1, Math.ceil(Math.log10(Math.max(1e-3, data.max.without_leader_seconds) * 1.05)));
  const x = (time) => left + 10 + ((time - first) / (last - first)) * (width - left - 28);
  const y = (seconds) => 10 + (1 - (Math.log10(Math.max(seconds, 10 ** low)) - low) / (high - low)) * (height - bottom - 18);
  c.textAlign = "right";
  for (let power = low; power <= high; power++) {
    c.fillStyle = color("--line");
    c.fillRect(left, y(10 ** power), width - left, 1);
    c.fillStyle = color("--faint");
    c.fillText(power < 0 ? duration(10 ** power) : `${grouped(10 ** power)} s`, left - 8, y(10 ** power));
  }
  c.textAlign = "center";
  const marks = Math.max(2, Math.min(8, Math.floor((width - left) / 150)));
  const label = last - first < 2 * 86_400_000 ? moment : minute;
  for (let i = 0; i < marks; i++) {
    const at = first + ((last - first) * (i + 0.5)) / marks;
    c.fillText(label(at), x(at), height - bottom / 2);
  }
  c.fillStyle = color("--accent");
  for (const [at, seconds, failoverCount] of points) {
    c.globalAlpha = failoverCount > 1 ? 0.75 : 0.55;
    c.beginPath();
    c.arc(x(at), y(seconds), Math.min(9, 3 + Math.log2(failoverCount)), 0, 7);
    c.fill();
  }
  c.globalAlpha = 1;
  c.textAlign = "left";
  for (const [gap, text, at] of [[data.median, "median", left + 6], [data.p99, "99 %", width - 6]]) {
    if (!gap) continue; // there are too few failovers
    const value = gap.without_leader_seconds;
    c.strokeStyle = color("--warning");
    c.setLineDash([5, 4]);
    c.beginPath();
    c.moveTo(left, y(value));
    c.lineTo(width, y(value));
    c.stroke();
    c.setLineDash([]);
    c.textAlign = at > left + 6 ? "right" : "left"; // both may be at the same height
    const label = `${text} ${duration(value)}`, wide = c.measureText(label).width + 6;
    c.fillStyle = color("--panel"); // over the points, which are not readable through the text
    c.fillRect(c.textAlign === "right" ? at - wide + 3 : at - 3, y(value) - 15, wide, 13);
    c.fillStyle = color("--warning");
    c.fillText(label, at, y(value) - 8);
  }
}

function cause(f) {
  const why = unclean(f.end_reason) ? status("critical", reason(f.end_reason)) : f.end_reason ? reason(f.end_reason) : "–";
  return f.incident ? h("a", { href: incidentLink(f.incident) }, why) : why;
}
const outageLink = (f) => h("a", { href: incidentLink(f.incident) }, status("critical", `Outage of the database: ${count(f.roles, "role")} stood still`));
// withParts shows a time without a leader, and its parts below it.
const withParts = (gap) => [duration(gap.without_leader_seconds), parts(gap) ? h("span", { class: "under" }, parts(gap)) : ""];
const path = (f) => h("span", { class: "path" }, f.previous ? [inText(f.previous), " → "] : "", inText(f.node_name));
const kinds = [["", "All"], ["failover", "Failovers"], ["move", "Planned moves"], ["outage", "Outages"]];

export default function failovers(page) {
  const summary = h("div", {});
  const canvas = h("canvas", { class: "chart", role: "img", "aria-label": "Failovers" });
  const emptyText = h("p", { class: "empty" }, "No role has failed over yet.");
  const period = h("span", { class: "faint small" });
  const filter = { kind: parameter("kind", "", kinds.map(([kind]) => kind)) };
  let data = null;
  const find = searchField("Find a role or node", () => table.refreshSoon());
  const table = list({
    label: "Changes of leaders, the newest first", lines: 4, hold: "scrolled", key: (f) => `${f.role} ${f.term} ${f.time}`, empty: "No change of a leader matches.",
    columns: [
      { title: "When", width: "9.500rem", narrow: "5rem", cell: (f) => h("time", { datetime: f.time, title: whole(f.time) }, moment(f.time)) },
      { title: "Role", width: "minmax(7rem, 1.4fr)", narrow: "minmax(0, 1fr)", cell: (f) => (f.kind === "outage" ? h("span", { class: "lines" }, outageLink(f)) : [name(f.role, roleLink(f.role)), h("span", { class: "narrow small" }, path(f), f.end_reason ? cause(f) : "")]) },
      { title: "From", width: "minmax(6rem, 1fr)", wide: true, cell: (f) => (f.previous ? name(f.previous) : "–") },
      { title: "To", width: "minmax(6rem, 1fr)", wide: true, cell: (f) => (f.kind === "outage" ? "–" : name(f.node_name)) },
      { title: "Why", width: "minmax(9rem, 1fr)", wide: true, cell: (f) => h("span", { class: "lines" }, f.kind === "outage" ? "no node reached the database" : cause(f)) },
      { title: "No leader", width: "8rem", narrow: "4.800rem", number: true, cell: (f) => h("span", { class: "figure", title: parts(f) || null }, duration(f.without_leader_seconds)) },
      { title: "Parts", width: "minmax(8rem, 1fr)", wider: true, pale: true, cell: (f) => lines(parts(f) || "–") },
    ],
    fetch: async (offset, limit) => {
      const page = await get("failovers", { offset, limit, ...filter, search: find.text() });
      if (offset === 0) {
        data = page; // its figures are of all, whatever the filter
        draw();
      }
      return page;
    },
  });
  function draw() {
    if (!data) return;
    summary.replaceChildren(figures([
      ["Failovers", grouped(data.failovers), data.outages ? `and ${count(data.outages, "outage")}` : ""], ["Last 24 h", grouped(data.day)], ["Planned moves", grouped(data.moves)],
      ...[["Median", "median"], ["95 % within", "p95"], ["99 % within", "p99"], ["Longest", "max"]]
        .map(([title, key]) => [title, data[key] ? withParts(data[key]) : data.failovers ? ["–", h("span", { class: "under" }, "fewer than 20 failovers")] : "–"]),
    ]));
    period.textContent = data.since ? `since ${moment(data.since)}; each point is a failover` : "";
    canvas.hidden = !data.failovers;
    emptyText.hidden = Boolean(data.failovers);
    canvas.setAttribute("aria-label", data.failovers
      ? `${grouped(data.failovers)} failovers over time: half took at most ${duration(data.median.without_leader_seconds)}, the longest ${duration(data.max.without_leader_seconds)}. The table below lists them.` : "No failovers");
    if (canvas.parentElement?.clientWidth) plot(canvas, data);
  }
  const kind = h("select", { "aria-label": "Kind" }, kinds.map(([value, text]) => h("option", { value }, text)));
  kind.value = filter.kind;
  kind.addEventListener("change", () => { filter.kind = kind.value; setParameters({ kind: filter.kind }); table.refresh(); });
  page.replaceChildren(h("h1", { class: "visually-hidden" }, "Failovers"), summary,
    panel("Time without a leader", period, h("div", { class: "body" }, h("div", {}, canvas), emptyText)),
    panel("Changes of leaders", [find.field, kind], table.element));
  const observer = new ResizeObserver(draw);
  observer.observe(page);
  return {
    title: "Failovers",
    on: { refresh: () => table.changed(), incidents: () => table.changed(), theme: draw, change: (change) => { if (change.events.some((e) => e.kind === "began")) table.changed(); } },
    close: () => observer.disconnect(),
  };
}
