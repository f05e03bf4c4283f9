// The age of the shown state, which may have changed while the server cannot read the
// database or while nothing arrives from the server.

import { h, status } from "./dom.js";
import { short, since } from "./format.js";
import { silenceLimit, state } from "./live.js";

// staleSeconds returns for how many seconds the state may have changed, or 0. The part work
// or alerts may be older than the rest.
export function staleSeconds(part) {
  const unread = [state.now?.unread_since, part && state.now?.[`${part}_unread_since`]];
  const sinceRead = Math.max(...unread.map((at) => (at ? since(at) : 0)));
  const sinceMessage = state.lastMessageAt ? (Date.now() - state.lastMessageAt) / 1000 : 0;
  return Math.max(sinceRead, sinceMessage > silenceLimit / 1000 ? sinceMessage : 0, 0);
}

// ageText returns the age of the state, or "" while the state is current.
export function ageText(part) {
  const age = staleSeconds(part);
  return age ? `as of ${short(age)} ago` : "";
}

// statusWithAge returns a status, in gray and with its age if it may have changed.
export function statusWithAge(level, text, shape, part) {
  const age = ageText(part);
  return age ? h("span", { class: "with-age" }, status("faint", text), h("span", { class: "small" }, age)) : status(level, text, shape);
}
