// The title and the icon of the window: they show trouble also while the window is hidden.

import { named } from "./dom.js";
import { session } from "./api.js";
import { staleFor } from "./fresh.js";
import { live, state } from "./live.js";

const icon = document.querySelector('link[rel="icon"]');
const marks = { critical: "✖ ", warning: "⚠ " };
let title = "";

// levelNow is the state of the cluster, or critical if it is not known.
const levelNow = () => (staleFor() ? "critical" : state.now?.health.level ?? "good");

function draw() {
  const level = levelNow();
  const text = named(`${marks[level] ?? ""}${title} · ${session.current.title}`);
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
