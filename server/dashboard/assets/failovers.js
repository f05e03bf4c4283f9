// How long roles were vacant. Each failover is a point.

import { figures, h, name, visibleName, panel, status } from "./dom.js";
import { get } from "./api.js";
import { count, duration, grouped, minute, moment, reason, unclean, whole } from "./format.js";
import { list } from "./table.js";
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
  const high = Math.max(low + 1, Math.ceil(Math.log10(Math.max(1e-3, data.max_seconds) * 1.05)));
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
  for (const [value, text, at] of [[data.median_seconds, "median", left + 6], [data.p99_seconds, "99 %", width - 6]]) {
    c.strokeStyle = color("--warning");
    c.setLineDash([5, 4]);
    c.beginPath();
    c.moveTo(left, y(value));
    c.lineTo(width, y(value));
    c.stroke();
    c.setLineDash([]);
    c.fillStyle = color("--warning");
    c.textAlign = at > left + 6 ? "right" : "left"; // both may be at the same height
    c.fillText(`${text} ${duration(value)}`, at, y(value) - 8);
  }
}

function cause(f) {
  const why = unclean(f.reason) ? status("critical", reason(f.reason)) : f.reason ? reason(f.reason) : "–";
  return f.incident ? h("a", { href: incidentLink(f.incident) }, why) : why;
}
const outageLink = (f) => h("a", { href: incidentLink(f.incident) }, status("critical", `Outage of the database: ${count(f.roles, "role")} stood still`));
// vacancyAndSilence shows how long the lock was free, and how long no leader sent a heartbeat.
const vacancyAndSilence = (free, silent) => [duration(free), silent === null ? "" : h("span", { class: "under" }, `silent ${duration(silent)}`)];
const path = (f) => [f.previous ? [h("bdi", {}, visibleName(f.previous)), " → "] : "", h("bdi", {}, visibleName(f.node_name))];

export default function failovers(page) {
  const summary = h("div", {});
  const canvas = h("canvas", { class: "chart", role: "img", "aria-label": "Failovers" });
  const emptyText = h("p", { class: "empty" }, "No role has changed its leader yet.");
  const period = h("span", { class: "faint small" });
  let data = null;
  const table = list({
    label: "Failovers, the newest first", lines: 3, hold: "scrolled", key: (f) => `${f.role} ${f.term} ${f.at}`, empty: "No role has changed its leader yet.",
    columns: [
      { title: "When", width: "9.500rem", narrow: "5rem", cell: (f) => h("time", { datetime: f.at, title: whole(f.at) }, moment(f.at)) },
      { title: "Role", width: "minmax(7rem, 1.4fr)", narrow: "minmax(0, 1fr)", cell: (f) => f.kind ? h("span", { class: "lines" }, outageLink(f)) : [name(f.role, roleLink(f.role)), h("span", { class: "narrow small" }, path(f), f.reason ? [", ", cause(f)] : "")] },
      { title: "From", width: "minmax(6rem, 1fr)", wide: true, cell: (f) => (f.previous ? name(f.previous) : "–") },
      { title: "To", width: "minmax(6rem, 1fr)", wide: true, cell: (f) => (f.kind ? "–" : name(f.node_name)) },
      { title: "Why", width: "minmax(9rem, 1fr)", wide: true, cell: (f) => h("span", { class: "lines" }, f.kind ? "no node reached the database" : cause(f)) },
      { title: "Vacant for", width: "8rem", narrow: "4.800rem", number: true, cell: (f) => h("span", { class: "figure" }, duration(f.vacant_seconds)) },
      { title: "Silent for", width: "8rem", wide: true, number: true, cell: (f) => h("span", { class: "figure", title: "Since the last heartbeat of the previous leader, or since it stepped down" }, duration(f.silent_seconds)) },
    ],
    fetch: async (offset, limit) => {
      const page = await get("failovers", { offset, limit });
      if (offset === 0) {
        data = page;
        draw();
      }
      return { total: page.total + page.outages, rows: page.rows };
    },
  });
  function draw() {
    if (!data) return;
    summary.replaceChildren(figures([
      ["Failovers", grouped(data.total)], ["Last 24 h", grouped(data.day)],
      ...[["Median", "median_seconds"], ["95 % within", "p95_seconds"], ["99 % within", "p99_seconds"], ["Longest", "max_seconds"]]
        .map(([title, key]) => [title, data.total ? vacancyAndSilence(data[key], data.silent[key]) : "–"]),
    ]));
    period.textContent = data.since ? `since ${moment(data.since)}; each point is a change of leader` : "";
    canvas.hidden = !data.total;
    emptyText.hidden = Boolean(data.total);
    canvas.setAttribute("aria-label", data.total
      ? `${grouped(data.total)} failovers over time: half took at most ${duration(data.median_seconds)}, the longest ${duration(data.max_seconds)}. The table below lists them.` : "No failovers");
    if (canvas.parentElement?.clientWidth) plot(canvas, data);
  }
  page.replaceChildren(h("h1", { class: "visually-hidden" }, "Failovers"), summary,
    panel("Time without a leader", [period, h("a", { href: "#/timeline" }, "Timeline")], h("div", { class: "body" }, h("div", {}, canvas), emptyText)),
    panel("Failovers", h("span", { class: "faint small" }, "the newest first"), table.element));
  const observer = new ResizeObserver(draw);
  observer.observe(page);
  return {
    title: "Failovers",
    on: { refresh: () => table.changed(), incidents: () => table.changed(), theme: draw, change: (change) => { if (change.events.some((e) => e.kind === "began")) table.changed(); } },
    close: () => observer.disconnect(),
  };
}
