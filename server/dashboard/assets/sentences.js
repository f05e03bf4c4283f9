// An event as a sentence, and as an entry of a list.

import { reorder, h, inParts, inText, sign, visibleName } from "./dom.js";
import { action, ago, duration, lately, reason, shortTerm, unclean, whole, isLed } from "./format.js";

export const roleLink = (role) => `#/role/${encodeURIComponent(role)}`;

export const incidentLink = (id) => `#/incident/${encodeURIComponent(id)}`;

const kinds = {
  crash: "Crash", silence: "Silence", outage: "Outage", restart: "Server restart", drain: "Drain", shutdown: "Stop", deployment: "Deployment", rebalance: "Rebalance",
  change: "Change",
};
export const kindOf = (kind) => kinds[kind] ?? kind;

const term = (number) => h("span", { class: "whole" }, shortTerm(number));

// sentence describes an event, as parts of an element. An incident has a link, unless it is shown
// elsewhere.
export function sentence(event, linked = true) {
  const who = h("b", {}, inText(event.node_name));
  const role = event.role && inText(event.role, roleLink(event.role));
  const requested = event.requested_by ? [", requested by ", inText(event.requested_by)] : [];
  switch (event.kind) {
    case "began":
      return [who, " leads ", role, " in term ", term(event.term), event.without_leader_seconds !== undefined ? `, after ${duration(event.without_leader_seconds)} without a leader` : ""];
    case "ended":
      return ["Term ", term(event.term), " of ", role, " ended: ", who, " ", reason(event.end_reason), ...requested].flat();
    case "node":
      if (!event.previous && event.status !== "left") return [who, " joined"];
      if (event.status === "left") return [who, " left"];
      if (event.status === "dead") return [who, " was marked dead"];
      return event.status === event.previous ? [who, " has a new session"] : [who, ` is ${event.status}, was ${event.previous}`, ...requested];
    case "incident":
      return [h("b", {}, kindOf(event.status)), ": ", timed(event.detail), linked ? [" ", h("a", { href: incidentLink(event.incident) }, "Details")] : ""].flat();
    default: {
      const about = role ?? (event.node_name ? inText(event.node_name) : event.detail ? inText(event.detail) : "");
      return [h("b", {}, inText(event.requested_by)), ` asked to ${action(event.status)}`, about ? [": ", about] : ""].flat();
    }
  }
}

// timed returns a sentence of the server with its marked times formatted, and its names, which
// are isolated, cut if they are long. What has more letters than a name in a sentence is the text of
// an error or a cause, and is shown in full.
export const timed = (text, show = lately) => text.split(/\u0001(.*?)\u0002/).map((part, i) => (i % 2 ? h("time", { datetime: part, title: whole(part) }, show(part)) : named(part)));

const longestName = 41; // with its ellipsis
const named = (text) => text.split(/\u2068(.*?)\u2069/).map((part, i) => (i % 2 ? ["\u2068", [...part].length > longestName ? h("bdi", {}, part) : h("bdi", { class: "in-text", title: part }, inParts(part)), "\u2069"] : part));

// appearance returns the shape and the color of an event.
export function appearance(event) {
  if (event.kind === "incident") return event.unplanned ? ["critical", "is-critical"] : ["ended", "is-faint"];
  if (event.kind === "began") return ["began", "is-good"];
  if (event.kind === "action") return ["action", "is-faint"];
  if (event.kind === "ended") return unclean(event.end_reason) ? ["critical", "is-critical"] : ["ended", "is-faint"];
  return event.status === "dead" ? ["critical", "is-critical"] : event.status === "draining" ? ["paused", "is-warning"] : ["faint", "is-faint"];
}

// keyOf identifies an event. Numbers begin again with the process, and an incident has
// the number of its last event.
const keyOf = (event) => [event.number, event.time, ...(event.kind === "incident" ? [event.incident, event.detail] : [])].join(" ");

function entry(event) {
  const [shape, color] = appearance(event);
  return h("li", { "data-key": keyOf(event) }, h("span", { class: color }, sign(shape)), h("span", { class: "what" }, sentence(event)),
    h("time", { datetime: event.time, title: whole(event.time) }, ago(event.time)));
}

// showEntries shows events in a list. It does not touch entries that the list already has,
// because the user may be reading them.
export function showEntries(list, events) {
  const known = new Map([...list.children].map((item) => [item.dataset.key, item]));
  reorder(list, events.length ? events.map((event) => known.get(keyOf(event)) ?? entry(event)) : [h("li", { class: "faint" }, h("span"), h("span", {}, "Nothing has happened yet."))]);
}

// lastChange states the reason for the last change of a role's leader.
export function lastChange(role) {
  const vacant = !isLed(role);
  if (vacant && !role.ended_at) return h("span", {}, "its node died or left");
  const [who, what, by] = vacant ? [role.node_name, role.end_reason, role.requested_by] : [role.previous, role.previous_end_reason, role.previous_requested_by];
  if (!who) return h("span", { class: "faint" }, "–");
  const text = reason(what) + (vacant && role.end_cause ? `: ${role.end_cause}` : ""), requested = by ? [", requested by ", inText(by)] : "";
  return h("span", { class: unclean(what) ? "is-critical" : "", title: `${visibleName(who)} ${text}${by ? `, requested by ${visibleName(by)}` : ""}` },
    unclean(what) ? [sign("critical"), " "] : "", inText(who), " ", text, requested);
}
