// The title and the icon of the window, which show problems even while the window is hidden.

import { visibleName } from "./dom.js";
import { session } from "./api.js";
import { staleSeconds } from "./staleness.js";
import { live, state } from "./live.js";

const icon = document.querySelector('link[rel="icon"]');
const marks = { critical: "✖ ", warning: "⚠ " };
let title = "";

// levelNow returns the health of the cluster, or critical if it is not known.
const levelNow = () => (staleSeconds() ? "critical" : state.now?.health.level ?? "good");

function draw() {
  const level = levelNow();
  const text = visibleName(`${marks[level] ?? ""}${title} · ${session.current.title}`);
  if (document.title !== text) document.title = text;
  const href = `assets/icon${marks[level] ? `-${level}` : ""}.svg`;
  if (icon.getAttribute("href") !== href) icon.setAttribute("href", href);
}

// setTitle sets the title of the shown page.
export function setTitle(next) {
  title = next;
  draw();
}

["now", "stale", "connection"].forEach((kind) => live.addEventListener(kind, draw));
