// The cluster over time, from the stored samples.

import { h } from "./dom.js";
import { graphs } from "./graphs.js";

export default function metrics(page) {
  const all = graphs();
  page.replaceChildren(h("div", { class: "head" }, h("h1", { tabindex: "-1" }, "Metrics"), all.tools), all.element);
  return { title: "Metrics", on: { refresh: all.read, theme: all.redraw }, close: all.close };
}
