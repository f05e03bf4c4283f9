// A timeline over the roles of the cluster, in a range of time.

import { h, panel } from "./dom.js";
import { parameter, setParameters } from "./address.js";
import { now } from "./format.js";
import { lanes } from "./lanes.js";
import { searchField } from "./search.js";

const ranges = [["600", "10 min"], ["3600", "1 h"], ["21600", "6 h"], ["86400", "24 h"], ["604800", "7 d"]];

export default function clusterTimeline(page) {
  const range = h("select", { "aria-label": "Range" }, ranges.map(([value, text]) => h("option", { value }, text)));
  range.value = parameter("range", "3600", ranges.map(([value]) => value));
  const find = searchField("Find a role", () => line.reload());
  let line = null, timer;
  function draw() {
    line?.close();
    line = lanes("", new Date(now() - Number(range.value) * 1000), new Date(now()), "Range", find.text);
    page.replaceChildren(h("h1", { class: "visually-hidden" }, "Timeline"), panel("Who led which role", [find.field, range, line.tools], line.element));
  }
  range.addEventListener("change", () => {
    setParameters({ range: range.value, from: "", to: "" });
    draw();
    range.focus();
  });
  draw();
  const reloadSoon = () => { clearTimeout(timer); timer = setTimeout(() => line.reload(), 300); };
  return {
    title: "Timeline",
    on: { theme: () => line.redraw(), refresh: reloadSoon, change: (change) => { if (change.events.length) reloadSoon(); } },
    close: () => { clearTimeout(timer); line.close(); },
  };
}
