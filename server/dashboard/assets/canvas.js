// Shared by the timelines: colors, sizes, truncated names and the tip under the pointer.

import { ends } from "./dom.js";

const lightLanes = ["#2f6fc4", "#b8620a", "#1f8a63", "#9a4f9e", "#6b7280", "#0e7f93", "#a3445a", "#6a7d1f"];
const darkLanes = ["#7fb0ff", "#eda75c", "#62c99d", "#d39ad8", "#a6b0bf", "#5fc3d6", "#ee93a6", "#b7cb66"];
const forced = matchMedia("(forced-colors: active)"); // the system limits the colors, so all bars have the same

// prepare clears a canvas, sets its size, and returns its context and colors.
export function prepare(canvas, width, height) {
  const ratio = devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.height = `${height}px`;
  }
  const style = getComputedStyle(document.documentElement), c = canvas.getContext("2d");
  const color = (name) => style.getPropertyValue(name).trim();
  c.setTransform(ratio, 0, 0, ratio, 0, 0);
  c.clearRect(0, 0, width, height);
  c.font = `12px ${style.getPropertyValue("--text-font")}`;
  c.textBaseline = "middle";
  const palette = forced.matches ? [color("--text")] : document.documentElement.dataset.theme === "dark" ? darkLanes : lightLanes;
  return { c, color, palette };
}

// truncate shortens a text to a width. A long name keeps its end.
export function truncate(c, text, width) {
  if (c.measureText(text).width <= width) return text;
  const [start, end] = ends(text), letters = [...start].slice(0, 40);
  while (letters.length && c.measureText(letters.join("") + "…" + end).width > width) letters.pop();
  return letters.join("") + "…" + end;
}

// showTip shows the text of the box under the pointer, if there is one. A box is as high
// as a lane.
export function showTip(tip, canvas, boxes, lane, event) {
  const bounds = canvas.getBoundingClientRect(), px = event.clientX - bounds.left, py = event.clientY - bounds.top;
  const box = boxes.findLast((b) => px >= b.left && px <= b.right && py >= b.top && py < b.top + lane);
  tip.hidden = !box;
  if (!box) return;
  tip.textContent = box.text;
  tip.style.left = `${Math.max(4, Math.min(px + 12, bounds.width - tip.offsetWidth - 8))}px`;
  tip.style.top = `${py + 16}px`;
}
