// An event as a sentence, and as an entry of a list.

import { h, name, sign } from "./dom.js";
import { action, ago, duration, reason, unclean, whole } from "./format.js";

export const roleLink = (role) => `#/role/${encodeURIComponent(role)}`;

function called(text, href) {
  return href ? h("a", { href, dir: "auto" }, h("bdi", {}, text)) : h("bdi", {}, text || "(no name)");
}

// sentence tells of an event, as parts of an element.
export function sentence(event) {
  const who = h("b", {}, called(event.node_name));
  const role = event.role && called(event.role, roleLink(event.role));
  const asked = event.by ? [", asked by ", called(event.by)] : [];
  switch (event.kind) {
    case "began":
      return [who, " leads ", role, ` in term ${event.term}`, event.vacant_seconds !== undefined ? `, after ${duration(event.vacant_seconds)} without a leader` : ""];
    case "ended":
      return ["Term ", String(event.term), " of ", role, " ended: ", who, " ", reason(event.reason), ...asked].flat();
    case "node":
      if (!event.previous && event.status !== "left") return [who, " joined"];
      if (event.status === "left") return [who, " left"];
      if (event.status === "dead") return [who, " was found dead"];
      return event.status === event.previous ? [who, " has a new session"] : [who, ` is ${event.status}, was ${event.previous}`, ...asked];
    default: {
      const about = role ?? (event.node_name ? called(event.node_name) : event.detail ? called(event.detail) : "");
      return [h("b", {}, called(event.by)), ` asked to ${action(event.status)}`, about ? [": ", about] : ""].flat();
    }
  }
}

// look is the shape and the colour of an event.
export function look(event) {
  if (event.kind === "began") return ["began", "is-good"];
  if (event.kind === "action") return ["action", "is-faint"];
  if (event.kind === "ended") return unclean(event.reason) ? ["critical", "is-critical"] : ["ended", "is-faint"];
  return event.status === "dead" ? ["critical", "is-critical"] : event.status === "draining" ? ["paused", "is-warning"] : ["faint", "is-faint"];
}

export function entry(event) {
  const [shape, colour] = look(event);
  return h("li", {}, h("span", { class: colour }, sign(shape)), h("span", { class: "what" }, sentence(event)),
    h("time", { datetime: event.at, title: whole(event.at) }, ago(event.at)));
}
