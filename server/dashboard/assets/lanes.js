// A timeline over several roles: a lane for each role, with a color for each node. It is
// drawn on a canvas; the tables beside it show the same data as text.

import { h, inText, visibleName } from "./dom.js";
import { get } from "./api.js";
import { delayedParameters, lastTime, timeParameter, timeText } from "./address.js";
import { truncate, prepare, showTip } from "./canvas.js";
import { clock, count, duration, long, moment, now, reason, unclean } from "./format.js";

const lane = 18, axis = 24, maxLanes = 40; // pixels, and lanes in view
const minSpan = 20; // milliseconds in view

// lanes shows the roles of an incident, or all, in a range of time.
export function lanes(incident, begin, end, whole = "Incident", search = () => "") {
  const canvas = h("canvas", { class: "chart", "aria-hidden": "true" });
  const legend = h("div", { class: "legend" });
  const tip = h("div", { class: "tip" });
  tip.hidden = true;
  const frame = h("div", { class: "timeline", tabindex: "0", role: "group", "aria-label": "Timeline of the leaders of roles. Left and right move, plus and minus zoom. The tables show the same data." }, canvas, tip);
  const element = h("div", {}, frame, legend);
  const first = new Date(begin).getTime(), last = new Date(end).getTime();
  const address = delayedParameters(), wanted = [timeParameter("from"), timeParameter("to")], inAddress = wanted.every((at) => at !== null) && wanted[1] - wanted[0] >= minSpan;
  let [from, to] = inAddress ? wanted : [first, last], view = { nodes: [], lanes: [], total: 0 }, boxes = [], gutter = 140, requests = 0, loading;

  async function load() {
    const request = ++requests;
    try {
      const next = await get("lanes", { incident, search: search(), from: Math.max(0, Math.floor(from)), to: Math.ceil(to) });
      if (request === requests) view = next;
    } catch { /* the earlier data stays */ }
    draw();
  }
  const reload = () => { clearTimeout(loading); loading = setTimeout(load, 120); };

  function move(nextFrom, nextTo) {
    if (nextTo - nextFrom < minSpan) return;
    [from, to] = [Math.max(0, nextFrom), Math.min(nextTo, lastTime)];
    const moved = from !== first || to !== last;
    address.write({ from: moved ? timeText(from) : "", to: moved ? timeText(to) : "" });
    draw();
    reload();
  }
  const zoom = (factor) => { const middle = (from + to) / 2, half = ((to - from) * factor) / 2; move(middle - half, middle + half); };

  function draw() {
    if (!element.isConnected) return;
    const shown = view.lanes.slice(0, maxLanes), width = frame.clientWidth, height = Math.max(1, shown.length) * lane + axis + 8;
    const { c, color, palette } = prepare(canvas, width, height);
    gutter = width < 560 ? 96 : 160;
    const x = (time) => gutter + ((time - from) / (to - from)) * (width - gutter - 8);
    boxes = [];
    drawAxis(c, x, width, height, color);
    shown.forEach((role, i) => {
      const y = 4 + i * lane;
      c.fillStyle = color("--text");
      c.textAlign = "left";
      c.fillText(truncate(c, visibleName(role.role), gutter - 20), 12, y + lane / 2);
      c.save();
      c.beginPath();
      c.rect(gutter, 0, width - gutter, height);
      c.clip();
      drawLane(c, role, x, y, palette, color);
      c.restore();
    });
    const more = view.total - shown.length;
    legend.replaceChildren(...view.nodes.slice(0, 12).map((node, i) => { const mark = h("span", { class: "swatch" }); mark.style.background = palette[i % palette.length]; return h("span", {}, mark, inText(node.name)); }),
      h("span", {}, "Red: no leader"), more > 0 ? h("span", {}, `${count(more, "more role")} not drawn`) : "");
  }

  function drawLane(c, role, x, y, palette, color) {
    let vacantSince = null; // when the role lost its leader
    for (const [began, ended, node, why, without] of role.spans) {
      const since = without === null ? vacantSince : began - without * 1000;
      if (since !== null && began > since) gap(c, role, since, began, x, y, color);
      const left = x(began), right = Math.max(x(ended ?? now()), left + 1);
      c.fillStyle = palette[node % palette.length];
      c.fillRect(left, y + 3, right - left, lane - 6);
      const lasted = long(((ended ?? now()) - began) / 1000);
      boxes.push({ left, right, top: y, text: `${visibleName(role.role)}: ${visibleName(view.nodes[node].name)}\n${moment(began)}, for ${lasted}${ended === null ? "" : `\n${reason(why)}`}` });
      if (ended !== null && unclean(why)) {
        c.fillStyle = color("--critical");
        c.fillRect(right - 2, y + 1, 3, lane - 2);
      }
      vacantSince = why === "completed" ? null : ended; // then the role is at rest
    }
    const until = role.retired ?? now();
    if (vacantSince !== null && vacantSince < until) gap(c, role, vacantSince, until, x, y, color);
  }

  function gap(c, role, began, ended, x, y, color) {
    const left = x(began), width = Math.max(x(ended) - left, 2);
    c.fillStyle = color("--critical-back");
    c.fillRect(left, y + 2, width, lane - 4);
    c.strokeStyle = color("--critical");
    c.strokeRect(left, y + 2.5, width, lane - 5);
    boxes.push({ left: left - 2, right: left + width + 2, top: y, text: `${visibleName(role.role)}: no leader for ${duration((ended - began) / 1000)}\nsince ${moment(began)}` });
  }

  function drawAxis(c, x, width, height, color) {
    const steps = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 30_000, 60_000, 300_000, 600_000, 1_800_000, 3_600_000, 21_600_000, 86_400_000];
    const step = steps.find((s) => (s / (to - from)) * (width - gutter) > 100) ?? steps.at(-1);
    c.textAlign = "center";
    for (let at = Math.ceil(from / step) * step; at < to; at += step) {
      c.fillStyle = color("--line");
      c.fillRect(x(at), 0, 1, height - axis + 4);
      c.fillStyle = color("--faint");
      const text = clock(at) + (step < 1000 ? `.${String(at % 1000).padStart(3, "0")}` : "");
      if (x(at) > gutter + 24 && x(at) < width - 34) c.fillText(text, x(at), height - axis / 2);
    }
  }

  frame.addEventListener("pointermove", (event) => showTip(tip, canvas, boxes, lane, event));
  frame.addEventListener("pointerleave", () => { tip.hidden = true; });
  frame.addEventListener("keydown", (event) => {
    const step = (to - from) * 0.2;
    const done = { ArrowLeft: () => move(from - step, to - step), ArrowRight: () => move(from + step, to + step), "+": () => zoom(0.6), "=": () => zoom(0.6), "-": () => zoom(1 / 0.6), Home: () => move(first, last) }[event.key];
    if (!done) return;
    event.preventDefault();
    done();
  });
  const observer = new ResizeObserver(draw);
  observer.observe(frame);
  load();
  const tools = h("div", { role: "group", "aria-label": "Range of the timeline" },
    h("button", { type: "button", class: "quiet compact", onclick: () => move(first, last) }, whole),
    h("button", { type: "button", class: "quiet compact", "aria-label": "Zoom in", onclick: () => zoom(0.5) }, "+"),
    h("button", { type: "button", class: "quiet compact", "aria-label": "Zoom out", onclick: () => zoom(2) }, "−"));
  return { element, tools, reload, redraw: draw, close: () => { address.close(); clearTimeout(loading); observer.disconnect(); } };
}
