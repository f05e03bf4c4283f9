// What is shown where there is nothing of an address.

import { h } from "./dom.js";

export function unknown(page, text = "There is no such page.", [href, label] = ["#/", "Overview"]) {
  page.replaceChildren(h("h1", { tabindex: "-1" }, "Not found"), h("p", { class: "panel empty" }, text, " ", h("a", { href }, label)));
  return { title: "Not found", on: {}, close: () => {} };
}
