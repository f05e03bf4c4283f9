// The nodes, and how busy each one is.

import { h, meter, name, panel } from "./dom.js";
import { get } from "./api.js";
import { pageLink } from "./address.js";
import { searchField } from "./search.js";
import { ago, grouped, long, since, statusOf } from "./format.js";
import { statusWithAge, staleSeconds } from "./staleness.js";
import { list } from "./table.js";
import { drain, forget, mayAct, rebalance } from "./actions.js";
import { showEntries } from "./sentences.js";

// upFor returns for how long a node has been up, or was until its last heartbeat if it is dead.
const upFor = (node) => long(node.status === "dead" ? Math.max(0, (Date.parse(node.last_heartbeat) - Date.parse(node.started_at)) / 1000) : since(node.started_at));

const labels = (node) => Object.entries(node.labels ?? {}).map(([key, value]) => `${key}=${value}`).join(", ");

export default function nodes(page) {
  let knownIds = new Set(), arrived = performance.now();
  const heartbeatAge = (node) => {
    const silent = node.silent_seconds + (node.status === "dead" ? 0 : staleSeconds() || (performance.now() - arrived) / 1000);
    return node.status === "dead" ? `${long(silent)} ago` : `${Math.max(0, silent).toFixed(0)} s ago`;
  };
  const find = searchField("Find a node or host", () => table.refreshSoon());
  const table = list({
    label: "Nodes", hold: "used", key: (n) => n.id, empty: "No node matches.", notable: (n) => `${n.status} ${n.led_roles} ${n.drained}`,
    columns: [
      { title: "Node", width: "minmax(8rem, 1.6fr)", narrow: "minmax(0, 1.4fr)", cell: (n) => name(n.name, pageLink("node", n.id)) },
      { title: "State", width: "7.4rem", narrow: "7.4rem", cell: (n) => { const [level, text, shape] = statusOf(n.status); return statusWithAge(level, n.drained && n.status === "draining" ? "drained" : text, shape); } },
      { title: "Leads", width: "4.5rem", narrow: "3rem", number: true, cell: (n) => h("span", { class: "figure" }, grouped(n.led_roles)) },
      { title: "Load", width: "8.5rem", wide: true, cell: (n) => (n.status === "dead" ? "–" : h("span", { class: "metered" }, meter(n.load), h("span", { class: "figure" }, `${Math.round(100 * n.load)} %`))) },
      { title: "In flight", width: "5rem", number: true, wider: true, cell: (n) => h("span", { class: "figure" }, grouped(n.in_flight)) },
      { title: "Last heartbeat", width: "9.5rem", wide: true, cell: (n) => heartbeatAge(n) },
      { title: "Up for", width: "7rem", wide: true, cell: (n) => upFor(n) },
      { title: "Host", width: "minmax(6rem, 1fr)", wide: true, pale: true, cell: (n) => name(n.address ? `${n.hostname} (${n.address})` : n.hostname) },
      { title: "Version", width: "minmax(4rem, 0.6fr)", wider: true, pale: true, cell: (n) => name(n.version || "–") },
      { title: "Labels", width: "minmax(5rem, 1fr)", wider: true, pale: true, cell: (n) => name(labels(n) || "–") },
      ...(mayAct() ? [{ title: "", width: "6.5rem", narrow: "5.6rem", number: true, cell: (n) => drain(n) ?? forget(n) }] : []),
    ],
    fetch: async (offset, limit) => {
      const some = await get("nodes", { offset, limit, search: find.text() });
      arrived = performance.now();
      return some;
    },
  });
  const changes = h("ul", { class: "entries", tabindex: "0", "aria-label": "Changes of nodes" });
  async function readChanges() {
    const { rows } = await get("events", { kind: "node", limit: 60 });
    showEntries(changes, rows);
  }
  page.replaceChildren(h("h1", { class: "visually-hidden" }, "Nodes"), panel("Nodes", [find.field, mayAct() ? rebalance() : ""], table.element), panel("Changes of nodes", null, changes));
  readChanges().catch(() => {});
  const tick = setInterval(() => {
    table.redraw();
    changes.querySelectorAll("li > time").forEach((time) => { time.textContent = ago(time.dateTime); });
  }, 1000);
  return {
    title: "Nodes",
    on: {
      now: (now) => {
        arrived = now.at;
        table.patch(now.nodes);
        const all = new Set(now.nodes.map((node) => node.id)), partial = now.all_nodes > now.nodes.length; // the stream does not have all nodes
        if (!partial && [...knownIds].some((id) => !all.has(id))) table.refreshSoon(); // a node is gone
        else if (partial || all.size !== knownIds.size) table.changed();
        knownIds = all;
      },
      refresh: () => { table.changed(); readChanges().catch(() => {}); },
      change: (change) => { if (change.events.some((e) => e.kind === "node")) readChanges().catch(() => {}); },
    },
    close: () => clearInterval(tick),
  };
}
