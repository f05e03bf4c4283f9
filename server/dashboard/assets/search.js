// The field that searches the list of a page. The key / moves the focus to it.

import { h } from "./dom.js";
import { parameter, setParameters } from "./address.js";

// searchField returns a field, and the text in it, which is a parameter of the address. changed()
// is called after each change.
export function searchField(label, changed) {
  const field = h("input", { type: "search", placeholder: label, "aria-label": label, "aria-keyshortcuts": "/", title: `${label} (press / to go here)`, value: parameter("search") });
  const text = () => field.value.trim();
  field.addEventListener("input", () => { setParameters({ search: text() }); changed(); });
  return { field, text };
}

// mentions returns a function that reports whether one of some texts contains the wanted one.
export const mentions = (wanted) => (...texts) => !wanted || texts.some((text) => String(text ?? "").toLowerCase().includes(wanted.toLowerCase()));

addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.("input, select, textarea, dialog")) return;
  const field = document.querySelector('main input[type="search"]');
  if (!field || document.querySelector("dialog")) return;
  event.preventDefault();
  field.focus();
  field.select();
});
