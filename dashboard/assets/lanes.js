// A timeline over several roles: a lane for each role, with a color for each node. It is
// drawn on a canvas; the tables beside it have the same as text.

import { h, named } from "./dom.js";
import { get } from "./api.js";
import { clock, count, duration, long, moment, now, reason, unclean } from "./format.js";

const lane = 18, axis = 24, most = 40; // pixels, and lanes in view
const lightLanes = ["#2f6fc4", "#b8620a", "#1f8a63", "#9a4f9e", "#6b7280", "#0e7f93", "#a3445a", "#6a7d1f"];
const darkLanes = ["#7fb0ff", "#eda75c", "#62c99d", "#d39ad8", "#a6b0bf", "#5fc3d6", "#ee93a6", "#b7cb66"];

// lanes shows the roles of an incident, or all, in a range of time.
export function lanes(incident, begin, over) {
  const canvas = h("canvas", { class: "chart", "aria-hidden": "true" });
  const legend = h("div", { class: "legend" });
  const tip = h("div", { class: "tip" });
  tip.hidden = true;
  const frame = h("div", { class: "timeline", tabindex: "0", role: "group", "aria-label": "Timeline of the leaders of roles. Left and right move, plus and minus zoom. The tables have the same in words." }, canvas, tip);
  const element = h("div", {}, frame, legend);
  let from = Date.parse(begin), to = Date.parse(over), view = { nodes: [], lanes: [], total: 0 }, boxes = [], gutter = 140, asked = 0, loading;

  async function load() {
    const mine = ++asked;
    try {
      const next = await get("lanes", { incident, from: Math.max(0, Math.floor(from)), to: Math.ceil(to) });
      if (mine === asked) view = next;
    } catch { /* the earlier data stays */ }
    draw();
  }
  const reload = () => { clearTimeout(loading); loading = setTimeout(load, 120); };

  function move(nextFrom, nextTo) {
    if (nextTo - nextFrom < 20) return;
    from = nextFrom;
    to = nextTo;
    draw();
    reload();
  }
  const zoom = (factor) => { const middle = (from + to) / 2, half = ((to - from) * factor) / 2; move(middle - half, middle + half); };

  function draw() {
    if (!element.isConnected) return;
    const shown = view.lanes.slice(0, most), ratio = devicePixelRatio || 1, width = frame.clientWidth, height = Math.max(1, shown.length) * lane + axis + 8;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.height = `${height}px`;
    const style = getComputedStyle(document.documentElement), color = (key) => style.getPropertyValue(key).trim();
    const palette = document.documentElement.dataset.theme === "dark" ? darkLanes : lightLanes;
    const c = canvas.getContext("2d");
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.font = `12px ${style.getPropertyValue("--text-font")}`;
    c.textBaseline = "middle";
    gutter = width < 560 ? 96 : 160;
    const x = (time) => gutter + ((time - from) / (to - from)) * (width - gutter - 8);
    boxes = [];
    drawAxis(c, x, width, height, color);
    shown.forEach((role, i) => {
      const y = 4 + i * lane;
      c.fillStyle = color("--text");
      c.textAlign = "left";
      c.fillText(fit(c, named(role.role), gutter - 20), 12, y + lane / 2);
      c.save();
      c.beginPath();
      c.rect(gutter, 0, width - gutter, height);
      c.clip();
      drawLane(c, role, x, y, palette, color);
      c.restore();
    });
    const more = view.total - shown.length;
    legend.replaceChildren(...view.nodes.slice(0, 12).map((node, i) => { const mark = h("span", { class: "swatch" }); mark.style.background = palette[i % palette.length]; return h("span", {}, mark, h("bdi", {}, named(node.name))); }),
      h("span", {}, "Red: no leader"), more > 0 ? h("span", {}, `${count(more, "more role")} not drawn`) : "");
  }

  function drawLane(c, role, x, y, palette, color) {
    let free = null; // when the role lost its leader
    for (const [began, ended, node, why] of role.spans) {
      if (free !== null && began > free) gap(c, role, free, began, x, y, color);
      const left = x(began), right = Math.max(x(ended ?? now()), left + 1);
      c.fillStyle = palette[node % palette.length];
      c.fillRect(left, y + 3, right - left, lane - 6);
      const lasted = long(((ended ?? now()) - began) / 1000);
      boxes.push({ left, right, top: y, text: `${named(role.role)}: ${named(view.nodes[node].name)}\n${moment(began)}, for ${lasted}${ended === null ? "" : `\n${reason(why)}`}` });
      if (ended !== null && unclean(why)) {
        c.fillStyle = color("--critical");
        c.fillRect(right - 2, y + 1, 3, lane - 2);
      }
      free = ended;
    }
    if (free !== null && free < now()) gap(c, role, free, now(), x, y, color);
  }

  function gap(c, role, began, ended, x, y, color) {
    const left = x(began), width = Math.max(x(ended) - left, 2);
    c.fillStyle = color("--critical-back");
    c.fillRect(left, y + 2, width, lane - 4);
    c.strokeStyle = color("--critical");
    c.strokeRect(left, y + 2.5, width, lane - 5);
    boxes.push({ left: left - 2, right: left + width + 2, top: y, text: `${named(role.role)}: no leader for ${duration((ended - began) / 1000)}\nsince ${moment(began)}` });
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

  function fit(c, text, width) {
    if (c.measureText(text).width <= width) return text;
    const letters = [...text].slice(0, 40);
    while (letters.length && c.measureText(letters.join("") + "…").width > width) letters.pop();
    return letters.join("") + "…";
  }

  frame.addEventListener("pointermove", (event) => {
    const bounds = canvas.getBoundingClientRect(), px = event.clientX - bounds.left, py = event.clientY - bounds.top;
    const box = boxes.findLast((b) => px >= b.left && px <= b.right && py >= b.top && py < b.top + lane);
    tip.hidden = !box;
    if (!box) return;
    tip.textContent = box.text;
    tip.style.left = `${Math.max(4, Math.min(px + 12, bounds.width - tip.offsetWidth - 8))}px`;
    tip.style.top = `${py + 16}px`;
  });
  frame.addEventListener("pointerleave", () => { tip.hidden = true; });
  frame.addEventListener("keydown", (event) => {
    const step = (to - from) * 0.2;
    const done = { ArrowLeft: () => move(from - step, to - step), ArrowRight: () => move(from + step, to + step), "+": () => zoom(0.6), "=": () => zoom(0.6), "-": () => zoom(1 / 0.6), Home: () => move(Date.parse(begin), Date.parse(over)) }[event.key];
    if (!done) return;
    event.preventDefault();
    done();
  });
  const observer = new ResizeObserver(draw);
  observer.observe(frame);
  load();
  const tools = h("div", { role: "group", "aria-label": "What the timeline shows" },
    h("button", { type: "button", class: "quiet compact", onclick: () => move(Date.parse(begin), Date.parse(over)) }, "Incident"),
    h("button", { type: "button", class: "quiet compact", "aria-label": "Zoom in", onclick: () => zoom(0.5) }, "+"),
    h("button", { type: "button", class: "quiet compact", "aria-label": "Zoom out", onclick: () => zoom(2) }, "−"));
  return { element, tools, reload, redraw: draw, close: () => { clearTimeout(loading); observer.disconnect(); } };
}
