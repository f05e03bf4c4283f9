// Links to other sites: logs, traces, graphs and runbooks.

import { h } from "./dom.js";

// isWeb reports whether an address can be a link.
export const isWeb = (address) => URL.canParse(address) && ["https:", "http:"].includes(new URL(address).protocol);

// outward shows links in a list, or nothing.
export function outward(links) {
  const shown = (links ?? []).filter((link) => isWeb(link.url));
  return shown.length ? h("nav", { class: "small", "aria-label": "Links to other sites" }, shown.map((link) => [h("a", { class: "outward", href: link.url, rel: "noreferrer" }, link.name), " "])) : "";
}
