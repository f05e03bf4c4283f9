// The first page: the leaders, the nodes, and the latest events.

import { updateElement, figures, h, lines, meter, name, panel } from "./dom.js";
import { get } from "./api.js";
import { pageLink, parameter, setParameters } from "./address.js";
import { ago, count, duration, grouped, isAhead, long, short, shortTerm, since, statusOf, whole, isLed } from "./format.js";
import { ageText, statusWithAge, staleSeconds } from "./staleness.js";
import { state } from "./live.js";
import { list } from "./table.js";
import { searchField } from "./search.js";
import { roleLink, showEntries, lastChange } from "./sentences.js";

const mostNodes = 12; // in the panel
// urgency orders nodes by what an operator looks at first.
const urgency = (node) => ["dead", "silent", "draining", "joining", "active"].indexOf(node.status);

// leaseLeft returns for how long a role stays reserved if its leader becomes silent now.
function leaseLeft(role) {
  const node = state.now?.nodes.find((n) => n.id === role.node);
  if (!node || !isLed(role) || staleSeconds()) return null;
  const age = node.silent_seconds + (state.connected ? (performance.now() - state.now.at) / 1000 : 0);
  return { left: Math.max(0, node.lease_seconds - age), length: node.lease_seconds };
}

export function leaseCell(role) {
  const lease = leaseLeft(role);
  if (!lease) return h("span", { class: "faint" }, "–");
  const share = lease.left / lease.length;
  return h("span", { class: "metered" }, meter(share, share < 0.5), h("span", { class: "figure" }, lease.left < 100 ? `${lease.left.toFixed(1)} s` : short(lease.left)));
}

// inStateSince returns the time since which a role has been in its state.
const inStateSince = (role) => role.ended_at ?? (isLed(role) ? role.began_at : null);

// timeInState returns for how long a role has been in its state, as far as that is known.
export const timeInState = (role, format = long) => (inStateSince(role) && !isAhead(inStateSince(role)) ? format(since(inStateSince(role)) - staleSeconds()) : "–");

export function roleStatus(role) {
  const [level, text, shape] = statusOf(role.state);
  return statusWithAge(level, text, shape);
}

export default function overview(page) {
  const filter = { state: parameter("state", "", ["led", "silent", "vacant", "at rest"]) };
  const columns = [
    { title: "Role", sort: "name", width: "minmax(9rem, 2fr)", narrow: "minmax(0, 1.3fr)", cell: (r) => name(r.role, roleLink(r.role)) },
    { title: "State", sort: "state", width: "7.4rem", narrow: "7.4rem", cell: roleStatus },
    { title: "Leader", sort: "leader", width: "minmax(7rem, 1.5fr)", narrow: "minmax(0, 1fr)", cell: (r) => [!isLed(r) ? h("span", { class: "faint" }, "none") : name(r.node_name, pageLink("node", r.node)), h("span", { class: "narrow small faint" }, "for ", timeInState(r, short))] },
    { title: "Why it changed", width: "minmax(8rem, 1.7fr)", wide: true, cell: (r) => lines(lastChange(r)) },
    { title: "Term", sort: "term", width: "4.5rem", number: true, wide: true, cell: (r) => h("span", { class: "figure", title: String(r.term) }, shortTerm(r.term)) },
    { title: "For", sort: "began", width: "7rem", wide: true, cell: (r) => h("span", { title: inStateSince(r) ? `since ${whole(inStateSince(r))}` : null }, timeInState(r)) },
    { title: "Lease left", width: "7.5rem", wide: true, cell: (r) => leaseCell(r) },
  ];
  const find = searchField("Find a role or leader", () => roles.refreshSoon());
  const roles = list({
    label: "Roles", hold: "used", columns, key: (r) => r.role, empty: "No role matches. A role appears here when a node first leads it.", order: { sort: parameter("sort", "state", ["name", "state", "leader", "term", "began"]), down: parameter("down") === "1" },
    ordered: (order) => setParameters({ sort: order.sort === "state" ? "" : order.sort, down: order.down ? "1" : "" }),
    fetch: (offset, limit, order) => get("roles", { offset, limit, ...filter, search: find.text(), sort: order.sort, down: order.down ? "1" : "" }),
  });
  const states = h("select", { "aria-label": "State" }, [["", "All"], ["led", "Led"], ["silent", "Silent"], ["vacant", "Vacant"], ["at rest", "At rest"]].map(([value, text]) => h("option", { value }, text)));
  states.value = filter.state;
  states.addEventListener("change", () => { filter.state = states.value; setParameters({ state: filter.state }); roles.refresh(); });

  const summary = h("div", {}, h("div"));
  const nodes = h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Nodes and their load" }, h("div"));
  const events = h("ul", { class: "entries", tabindex: "0", "aria-label": "Latest events" });
  let failovers = null, recent = [];

  function drawNow() {
    const n = state.now;
    if (!n) return;
    updateElement(summary.firstChild, figures([
      ["Roles led", grouped(n.led + n.silent), `of ${grouped(n.roles)}`],
      ["Vacant", grouped(n.vacant), n.at_rest ? `and ${grouped(n.at_rest)} at rest` : ""],
      ["Live nodes", grouped(n.living), `of ${grouped(n.all_nodes)}`],
      ["Failovers, last 24 h", failovers ? grouped(failovers.day) : "–"],
      ["Median failover", failovers?.median ? duration(failovers.median.without_leader_seconds) : "–"],
      ["Alerts firing", state.alertsShown ? grouped(n.firing) : "–", [n.silenced ? `${grouped(n.silenced)} silenced` : "", n.alerts_unread_since ? ageText("alerts") : ""].filter(Boolean).join(", ")],
    ], ageText()));
    const shown = [...n.nodes].sort((a, b) => urgency(a) - urgency(b) || b.led_roles - a.led_roles || a.name.localeCompare(b.name)).slice(0, mostNodes);
    const more = n.all_nodes - shown.length;
    updateElement(nodes.firstChild, n.nodes.length ? h("div", {}, h("table", { class: "table nodes" },
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Node"), h("th", { scope: "col" }, "State"), h("th", { scope: "col", class: "number" }, "Leads"), h("th", { scope: "col", class: "number" }, "Load"))),
      h("tbody", {}, shown.map((node) => {
        const [level, text, shape] = statusOf(node.status);
        return h("tr", {}, h("td", {}, name(node.name, pageLink("node", node.id))), h("td", {}, statusWithAge(level, text, shape)), h("td", { class: "number figure" }, grouped(node.led_roles)),
          h("td", { class: "number figure" }, node.status === "dead" ? "–" : `${Math.round(100 * node.load)} %`));
      }))), more > 0 ? h("p", { class: "more" }, h("a", { href: "#/nodes" }, `${count(more, "more node")}`)) : "") : h("p", { class: "empty" }, "No node has joined yet."));
  }

  function drawEvents() {
    showEntries(events, recent);
  }

  // mergeNewest returns the newest of several lists of events, each event once.
  const mergeNewest = (...lists) => [...new Map(lists.flat().map((event) => [event.number, event])).values()].sort((a, b) => b.number - a.number).slice(0, 30);

  async function readRest() {
    const [some, all] = await Promise.all([get("events", { limit: 30, fold: 1 }), get("failovers", { limit: 1 })]);
    recent = mergeNewest(some.rows, recent.filter((event) => event.number > (some.rows[0]?.number ?? 0)));
    failovers = all;
    drawNow();
    drawEvents();
  }

  page.replaceChildren(
    h("h1", { class: "visually-hidden" }, "Overview"), summary,
    h("div", { class: "split" },
      panel("Roles", [find.field, states], roles.element),
      h("div", { class: "column" },
        panel("Nodes", h("a", { href: "#/nodes" }, "All nodes"), nodes),
        panel("Latest events", h("a", { href: "#/events" }, "All events"), events))));
  drawNow();
  readRest().catch(() => {});

  const tick = setInterval(() => {
    roles.redraw();
    if (staleSeconds()) drawNow();
    events.querySelectorAll("li > time").forEach((time) => { time.textContent = ago(time.dateTime); });
  }, 1000);
  let timer;
  return {
    title: "Overview",
    on: {
      now: drawNow,
      refresh: () => { recent = []; roles.changed(); readRest().catch(() => {}); },
      change: (change) => {
        if (change.roles.length) {
          roles.patch(change.roles); // immediately
          roles.changed(); // their order and number may have changed
        }
        recent = mergeNewest(recent, change.events);
        drawEvents();
        clearTimeout(timer);
        timer = setTimeout(() => readRest().catch(() => {}), 1500);
      },
      alerts: drawNow,
      stale: drawNow,
      incidents: () => { clearTimeout(timer); timer = setTimeout(() => readRest().catch(() => {}), 300); },
    },
    close: () => { clearInterval(tick); clearTimeout(timer); },
  };
}
