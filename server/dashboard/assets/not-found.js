// The page for an address that does not exist.

import { h } from "./dom.js";

export function notFound(page, text = "There is no such page.", [href, label] = ["#/", "Overview"]) {
  page.replaceChildren(h("h1", { tabindex: "-1" }, "Not found"), h("p", { class: "panel empty" }, text, " ", h("a", { href }, label)));
  return { title: "Not found", on: {}, close: () => {} };
}
