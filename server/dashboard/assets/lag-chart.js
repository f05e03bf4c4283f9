// The lag of a processor over time.

import { h } from "./dom.js";
import { prepare } from "./canvas.js";
import { clock, count, grouped } from "./format.js";

const height = 150, left = 58, bottom = 24;

// lagChart shows points of [milliseconds, waiting events].
export function lagChart() {
  const canvas = h("canvas", { class: "chart", role: "img", "aria-label": "No measurement yet" });
  const element = h("div", {}, canvas);
  let points = [];

  function draw() {
    const width = element.clientWidth;
    if (!width || !points.length) return;
    const { c, color } = prepare(canvas, width, height);
    const first = points[0][0], last = Math.max(points.at(-1)[0], first + 60_000);
    const most = Math.max(1, ...points.map(([, behind]) => behind));
    const x = (at) => left + ((at - first) / (last - first)) * (width - left - 14);
    const y = (behind) => 10 + (1 - behind / most) * (height - bottom - 16);
    c.textAlign = "right";
    for (const mark of most > 1 ? [0, Math.round(most / 2), most] : [0, most]) {
      c.fillStyle = color("--line");
      c.fillRect(left, y(mark), width - left, 1);
      c.fillStyle = color("--faint");
      c.fillText(grouped(mark), left - 8, y(mark));
    }
    c.textAlign = "center";
    const marks = Math.max(2, Math.min(6, Math.floor((width - left) / 120)));
    for (let i = 0; i < marks; i++) {
      const at = first + ((last - first) * (i + 0.5)) / marks;
      c.fillText(clock(at), x(at), height - bottom / 2);
    }
    c.strokeStyle = color("--accent");
    c.lineWidth = 1.5;
    c.beginPath();
    points.forEach(([at, behind], i) => (i ? c.lineTo(x(at), y(behind)) : c.moveTo(x(at), y(behind))));
    if (points.length === 1) c.lineTo(x(last), y(points[0][1]));
    c.stroke();
  }

  function set(next) {
    points = next;
    if (points.length) {
      const most = points.reduce((a, b) => (b[1] > a[1] ? b : a));
      canvas.setAttribute("aria-label", `From ${clock(points[0][0])} to ${clock(points.at(-1)[0])}, at most ${count(most[1], "event")} waited, at ${clock(most[0])}; ${grouped(points.at(-1)[1])} wait now.`);
    }
    draw();
  }
  const observer = new ResizeObserver(draw);
  observer.observe(element);
  return { element, set, redraw: draw, close: () => observer.disconnect() };
}
