// Graphs of the stored samples of the cluster or of a node, in a range that is in the
// address.

import { h, panel } from "./dom.js";
import { get } from "./api.js";
import { parameter, setParameters } from "./address.js";
import { clock, long, moment } from "./format.js";
import { graph } from "./graph.js";

const ranges = [["1h", "1 h"], ["6h", "6 h"], ["24h", "24 h"], ["7d", "7 d"], ["30d", "30 d"]];
const nodeRanges = ranges.slice(0, 3); // daily totals are of all nodes together
const readInterval = 10_000; // nodes write samples that often

const titles = {
  nodes: "Nodes", roles: "Roles with a leader", failovers: "Failovers", load: "Load", work: "Work",
  cpu: "processors", memory: "memory", connections: "connections", jobs: "jobs", in_flight: "in flight",
  active: "active", draining: "draining", dead: "dead", led: "led roles", mean: "mean", highest: "busiest node",
};

// graphs shows a panel for each graph, those of a node in one panel.
export function graphs(node = "") {
  const choice = node ? nodeRanges : ranges;
  const select = h("select", { "aria-label": "Range of the graphs" }, choice.map(([value, text]) => h("option", { value }, text)));
  select.value = parameter("range", "1h", choice.map(([value]) => value));
  const asOf = h("span", { class: "faint small" }), message = h("p", { class: "empty" }, "Loading…"), all = h("div", { class: "graphs" });
  const element = h("div", {}, message, all), tools = [asOf, select];
  let drawn = new Map(), requests = 0, lastRange = "", closed = false;

  function draw(record, range) {
    const daily = range.endsWith("d"), newest = record.newest === null ? "" : daily ? `latest day ${moment(record.newest)}` : `latest sample ${long((record.to - record.newest) / 1000)} earlier`;
    asOf.textContent = `${daily ? "one value a day, of the totals; " : ""}as of ${clock(record.to)}${newest ? `, ${newest}` : ""}`;
    message.hidden = !record.problem;
    message.textContent = record.problem;
    all.hidden = Boolean(record.problem);
    if (record.problem) return;
    if (lastRange !== range || record.graphs.map((g) => g.name).join() !== [...drawn.keys()].join()) {
      drawn.forEach(({ close }) => close());
      drawn = new Map(record.graphs.map((g) => [g.name, graph(titles[g.name], titles)]));
      all.replaceChildren(...record.graphs.map((g) => {
        const note = h("span", { class: "faint small" }, g.step ? `in ${long(g.step / 1000)} each` : ""), { element } = drawn.get(g.name);
        return node ? h("section", {}, h("h3", {}, titles[g.name]), element) : panel(titles[g.name], note, h("div", { class: "body" }, element));
      }));
      lastRange = range;
    }
    for (const g of record.graphs) {
      const known = g.series.filter((s) => s.points.some(([, value]) => value !== null));
      const { element, set } = drawn.get(g.name), missing = element.parentElement.querySelector(":scope > .missing");
      element.hidden = !known.length;
      if (known.length) {
        missing?.remove();
        set({ ...g, series: known }, { from: record.from, to: record.to, daily });
      } else if (!missing) {
        element.after(h("p", { class: "missing faint" }, "The samples in this range do not have these figures. Nodes report them with metrics.NewCluster and metrics.NewElections, and every tenure command with --listen."));
      }
    }
  }

  async function read() {
    const request = ++requests, range = select.value;
    try {
      const record = await get("graphs", { range, node });
      if (request === requests && !closed) draw(record, range);
    } catch (error) {
      if (request !== requests || closed) return;
      if (error.status === 404) clearInterval(timer);
      message.hidden = false;
      message.textContent = `The graphs cannot be read: ${error.message}.`;
      if (!lastRange || lastRange !== range) all.hidden = true;
    }
  }
  select.addEventListener("change", () => {
    setParameters({ range: select.value === "1h" ? "" : select.value });
    message.hidden = false;
    message.textContent = "Loading…";
    all.hidden = true;
    read();
  });
  const timer = setInterval(() => { if (!document.hidden) read(); }, readInterval);
  read();
  return {
    element, tools, read, redraw: () => drawn.forEach((one) => one.redraw()),
    close: () => { closed = true; clearInterval(timer); drawn.forEach((one) => one.close()); },
  };
}
