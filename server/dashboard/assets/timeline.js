// The leaders of a role over time: a lane for each node, and one for the time without a
// leader. It is drawn on a canvas; the table beside it shows the same data as text.

import { h, visibleName } from "./dom.js";
import { get } from "./api.js";
import { delayedParameters, parameter, timeParameter, timeText } from "./address.js";
import { truncate, prepare, showTip } from "./canvas.js";
import { clock, date, duration, long, moment, now, reason, shortTerm, unclean, zoneOffset } from "./format.js";

const lane = 26, axis = 24, maxLanes = 14; // pixels, and lanes
const minSpan = 2_000, maxSpan = 3_155_760_000_000; // milliseconds in view: up to a century

export function timeline(role) {
  const canvas = h("canvas", { class: "chart", "aria-hidden": "true" });
  const tip = h("div", { class: "tip" });
  tip.hidden = true;
  const element = h("div", { class: "timeline", tabindex: "0", role: "group", "aria-label": "Timeline of leaders. Left and right move, plus and minus zoom, Home shows everything, End goes to now. The table below shows the same data." }, canvas, tip);
  const address = delayedParameters(), wanted = Number(parameter("span")) * 1000;
  let span = wanted >= minSpan && wanted <= maxSpan ? wanted : 3_600_000, end = timeParameter("end"); // end null: now
  if (end >= now()) end = null;
  let view = { nodes: [], spans: [], first: 0 }, lanes = [], boxes = [], requests = 0, moved = span === wanted, loading, loadedTo = 0, vacantSince = null, drawing = false, gutter = 120;

  const to = () => end ?? now() + span * 0.02;
  const from = () => to() - span;
  const everything = () => (view.first ? Math.max(60_000, (now() - view.first) * 1.04) : 3_600_000);

  async function load() {
    const wantedFrom = from() - span * 0.5, wantedTo = to() + span * 0.5, request = ++requests;
    try {
      const next = await get("timeline", { role, from: Math.max(0, Math.floor(wantedFrom)), to: Math.ceil(wantedTo), spans: 1600 });
      if (request !== requests) return; // the user has moved to another part
      view = next;
      loadedTo = wantedTo;
    } catch { /* the earlier data stays */ }
    schedule();
  }

  function reload(wait = 120) {
    clearTimeout(loading);
    loading = setTimeout(load, wait);
  }

  function move(nextSpan, nextEnd, byUser = true) {
    moved = true;
    span = Math.min(Math.max(nextSpan, minSpan), Math.max(everything(), 3_600_000) * 1.2);
    end = nextEnd === null || nextEnd >= now() ? null : nextEnd;
    if (byUser) address.write({ span: +(span / 1000).toFixed(3), end: timeText(end) });
    schedule();
    reload();
  }

  function zoom(factor, at = 0.5) {
    const fixed = from() + span * at;
    const next = Math.min(Math.max(span * factor, minSpan), Math.max(everything(), 3_600_000) * 1.2);
    move(next, end === null && at > 0.9 ? null : fixed + next * (1 - at));
  }

  function schedule() {
    if (drawing) return;
    drawing = true;
    requestAnimationFrame(draw);
  }

  function findLanes() {
    const seen = new Map();
    for (const [began, ended, node] of view.spans) {
      if (node < 0) continue;
      const nodeName = view.nodes[node].name;
      const visible = Math.min(ended ?? now(), to()) - Math.max(began, from());
      seen.set(nodeName, (seen.get(nodeName) ?? 0) + Math.max(0, visible) + 1e-3);
    }
    const order = [...new Set(view.nodes.map((n) => n.name))].filter((n) => seen.has(n));
    const chosen = new Set([...seen].sort((a, b) => b[1] - a[1]).slice(0, maxLanes).map(([n]) => n));
    lanes = order.filter((n) => chosen.has(n));
    return order.length > lanes.length;
  }

  function draw() {
    drawing = false;
    if (!element.isConnected) return;
    const others = findLanes();
    const rows = lanes.length + 1 + (others || view.spans.some((s) => s[2] < 0) ? 1 : 0);
    const width = element.clientWidth, height = Math.max(rows, 3) * lane + axis + 8;
    const { c, color, palette } = prepare(canvas, width, height);
    gutter = width < 560 ? 84 : 148;
    const x = (time) => gutter + ((time - from()) / span) * (width - gutter - 8);
    drawAxis(c, x, width, height, color);
    const names = [...lanes, ...(rows > lanes.length + 1 ? ["several"] : []), "no leader"]; // a node may have the same name
    names.forEach((nodeName, i) => {
      const y = 4 + i * lane;
      c.fillStyle = color("--line");
      c.fillRect(0, y + lane - 1, width, 1);
      c.fillStyle = i >= lanes.length ? color("--faint") : color("--text");
      c.fillText(truncate(c, visibleName(nodeName), gutter - 22), 12, y + lane / 2);
    });
    boxes = [];
    c.save();
    c.beginPath();
    c.rect(gutter, 0, width - gutter, height);
    c.clip();
    const vacantY = 4 + (names.length - 1) * lane;
    for (const s of view.spans) drawSpan(c, s, x, palette, color, vacantY);
    if (vacantSince && vacantSince < to()) {
      drawVacancy(c, x(vacantSince), x(now()), vacantY, color);
      boxes.push({ left: x(vacantSince), right: x(now()), top: vacantY, text: `No node leads since ${moment(vacantSince)}` });
    }
    c.fillStyle = color("--accent");
    c.fillRect(x(now()), 0, 1.5, height - axis);
    c.restore();
  }

  function drawSpan(c, s, x, palette, color, vacantY) {
    const [began, ended, node, , , why, without] = s;
    const last = ended ?? now();
    if (without !== null && began - without * 1000 < to() && began > from()) {
      drawVacancy(c, x(began - without * 1000), x(began), vacantY, color);
      boxes.push({ left: x(began - without * 1000) - 3, right: x(began) + 3, top: vacantY, text: `No node led for ${duration(without)}\nuntil ${moment(began)}` });
    }
    if (last < from() || began > to()) return;
    const laneOfNode = node < 0 ? -1 : lanes.indexOf(view.nodes[node].name), row = laneOfNode < 0 ? lanes.length : laneOfNode;
    const y = 4 + row * lane, left = x(began), right = Math.max(x(last), left + 1.5);
    c.fillStyle = laneOfNode < 0 ? color("--strong-line") : palette[row % palette.length];
    c.beginPath();
    c.roundRect(left, y + 5, right - left, lane - 11, Math.min(3, (right - left) / 2));
    c.fill();
    if (ended !== null && unclean(why) && right - left > 3) { // an unplanned end has a notch
      c.fillStyle = color("--critical");
      c.fillRect(right - 3, y + 2, 3, lane - 5);
    }
    boxes.push({ left, right: Math.max(right, left + 4), top: y, text: describe(s) });
  }

  function drawVacancy(c, left, right, y, color) {
    const width = Math.max(right - left, 2);
    c.fillStyle = color("--critical-back");
    c.fillRect(left, y + 4, width, lane - 9);
    c.strokeStyle = color("--critical");
    c.lineWidth = 1;
    c.beginPath();
    if (width > 8) {
      for (let at = left - lane; at < right; at += 6) {
        const a = Math.max(left, at), b = Math.min(right, at + lane - 9);
        if (b > a) {
          c.moveTo(a, y + lane - 5 - (a - at));
          c.lineTo(b, y + lane - 5 - (b - at));
        }
      }
    }
    c.rect(left, y + 4, width, lane - 9);
    c.stroke();
  }

  function describe([began, ended, node, term, count, why]) {
    const when = `${moment(began)} to ${ended === null ? "now" : moment(ended)}`;
    const length = long(((ended ?? now()) - began) / 1000);
    if (count > 1) return `${count} terms from ${shortTerm(term)} on, too short to be shown separately\n${when}`;
    return `${visibleName(view.nodes[node].name)}, term ${shortTerm(term)}\n${when} (${length})${ended === null ? "" : "\n" + reason(why)}`;
  }

  function drawAxis(c, x, width, height, color) {
    const steps = [1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 43200, 86400, 172800, 604800, 2592000, 7776000, 31536000].map((s) => s * 1000);
    const step = steps.find((s) => (s / span) * (width - gutter) > 92) ?? steps.at(-1);
    const zone = zoneOffset();
    c.textAlign = "center";
    for (let at = Math.ceil((from() - zone) / step) * step + zone; at < to(); at += step) {
      c.fillStyle = color("--line");
      c.fillRect(x(at), 0, 1, height - axis + 4);
      c.fillStyle = color("--faint");
      const text = step >= 86_400_000 ? date(at) : step < 60_000 ? clock(at) : clock(at).slice(0, 5);
      if (x(at) > gutter + 12 && x(at) < width - 26) c.fillText(text, x(at), height - axis / 2);
    }
    c.textAlign = "left";
  }

  let drag = null;
  element.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    drag = { x: event.clientX, end: to() };
    element.setPointerCapture(event.pointerId);
  });
  element.addEventListener("pointermove", (event) => {
    if (drag) {
      tip.hidden = true;
      return move(span, drag.end - ((event.clientX - drag.x) / (canvas.getBoundingClientRect().width - gutter)) * span);
    }
    showTip(tip, canvas, boxes, lane, event);
  });
  element.addEventListener("pointerup", () => { drag = null; });
  element.addEventListener("pointercancel", () => { drag = null; });
  element.addEventListener("pointerleave", () => { tip.hidden = true; });
  element.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey && !event.shiftKey) return; // the page scrolls
    event.preventDefault();
    const bounds = canvas.getBoundingClientRect();
    zoom(event.deltaY > 0 || event.deltaX > 0 ? 1.25 : 0.8, Math.min(1, Math.max(0, (event.clientX - bounds.left - gutter) / (bounds.width - gutter - 8))));
  }, { passive: false });
  element.addEventListener("keydown", (event) => {
    const done = {
      ArrowLeft: () => move(span, to() - span * 0.2), ArrowRight: () => move(span, to() + span * 0.2),
      "+": () => zoom(0.6), "=": () => zoom(0.6), "-": () => zoom(1 / 0.6), Home: () => move(everything(), null), End: () => move(span, null),
    }[event.key];
    if (!done) return;
    event.preventDefault();
    done();
  });
  const observer = new ResizeObserver(schedule);
  observer.observe(element);
  const tick = setInterval(() => {
    if (end === null) schedule();
    if (end === null && to() > loadedTo) reload(0);
  }, 1000);
  load().then(() => { if (view.first && !moved) move(Math.min(everything(), 86_400_000), end, false); });

  const preset = (text, milliseconds) => h("button", { type: "button", class: "quiet compact", onclick: () => move(milliseconds ?? everything(), null) }, text);
  const tools = h("div", { role: "group", "aria-label": "Range of the timeline" },
    preset("1 h", 3_600_000), preset("24 h", 86_400_000), preset("7 d", 604_800_000), preset("All"),
    h("button", { type: "button", class: "quiet compact", "aria-label": "Zoom in", onclick: () => zoom(0.5, 0.95) }, "+"),
    h("button", { type: "button", class: "quiet compact", "aria-label": "Zoom out", onclick: () => zoom(2, 0.95) }, "−"));
  const setVacant = (since) => {
    vacantSince = since;
    schedule();
  };
  return { element, tools, reload, setVacant, redraw: schedule, close: () => { address.close(); clearInterval(tick); clearTimeout(loading); observer.disconnect(); } };
}
