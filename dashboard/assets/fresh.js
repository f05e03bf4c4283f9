// How old the shown state is. While the server cannot read the database, or nothing
// arrives from the server, the state may have changed.

import { h, status } from "./dom.js";
import { short, since } from "./format.js";
import { patience, state } from "./live.js";

// staleFor returns for how many seconds the state may have changed, or 0.
export function staleFor() {
  const unread = state.now?.unread_since ? since(state.now.unread_since) : 0;
  const unheard = state.heard ? (Date.now() - state.heard) / 1000 : 0;
  return Math.max(unread, unheard > patience / 1000 ? unheard : 0, 0);
}

// asOf states the age, or is empty while the state is fresh.
export function asOf() {
  const age = staleFor();
  return age ? `as of ${short(age)} ago` : "";
}

// aged is a status, in gray and with its age if it may have changed.
export function aged(level, text, shape) {
  const age = asOf();
  return age ? h("span", { class: "aged" }, status("faint", text), h("span", { class: "small" }, age)) : status(level, text, shape);
}
