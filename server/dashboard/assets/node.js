// A node: what it is, the roles that it leads, its incidents, and its history.

import { announce, updateElement, figures, h, name, visibleName, panel } from "./dom.js";
import { get } from "./api.js";
import { drain, forget, mayAct } from "./actions.js";
import { ago, grouped, long, moment, since, statusOf, whole } from "./format.js";
import { ageText, statusWithAge, staleSeconds } from "./staleness.js";
import { state } from "./live.js";
import { roleStatus, timeInState } from "./overview.js";
import { incidentLink, kindOf, roleLink, showEntries, timed } from "./sentences.js";
import { outward } from "./outward.js";
import { list } from "./table.js";
import { graphs } from "./graphs.js";
import { parameter, setParameters } from "./address.js";
import { notFound } from "./not-found.js";

// copyButton is a button that copies a text.
function copyButton(text, what) {
  return h("button", { type: "button", class: "compact", "aria-label": `Copy the ${what}`, onclick: async (event) => {
    const button = event.currentTarget;
    let done = true;
    try {
      await navigator.clipboard.writeText(text);
    } catch { // not on a page without TLS
      done = false;
      const range = document.createRange();
      range.selectNodeContents(button.parentElement.querySelector("code"));
      getSelection().removeAllRanges();
      getSelection().addRange(range);
    }
    button.textContent = done ? "Copied" : "Selected";
    announce(done ? "Copied" : "Selected: copy it with the keyboard");
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  } }, "Copy");
}

const nonEmpty = (pairs) => pairs.filter(([, value]) => value);

export default function node(page, id) {
  const status = h("span", {}, h("span")), title = h("h1", { tabindex: "-1" }), buttons = h("div", {}), links = h("div", {}), facts = h("div", {}, h("div")), details = h("div", { class: "body" }, h("div"));
  const incidents = h("div", {}, h("div")), events = h("ul", { class: "entries", tabindex: "0", "aria-label": "History of the node" });
  let current = null, arrived = performance.now(), buttonsFor = "", timer;
  const roles = list({
    label: "Roles that it leads", hold: "used", key: (r) => r.role, empty: "It leads no role.", order: { sort: parameter("sort", "name", ["name", "term", "began"]), down: parameter("down") === "1" },
    ordered: (order) => setParameters({ sort: order.sort === "name" ? "" : order.sort, down: order.down ? "1" : "" }),
    columns: [
      { title: "Role", sort: "name", width: "minmax(9rem, 2fr)", narrow: "minmax(0, 1.3fr)", cell: (r) => name(r.role, roleLink(r.role)) },
      { title: "State", width: "7rem", narrow: "6.4rem", cell: roleStatus },
      { title: "Term", sort: "term", width: "10rem", number: true, wide: true, cell: (r) => h("span", { class: "figure" }, String(r.term)) },
      { title: "For", sort: "began", width: "7rem", narrow: "6rem", cell: (r) => timeInState(r) },
    ],
    fetch: (offset, limit, order) => get("roles", { offset, limit, node: id, sort: order.sort, down: order.down ? "1" : "" }),
  });

  const load = graphs(id);

  function draw() {
    if (!current) return;
    const n = current.node;
    title.replaceChildren(h("bdi", {}, visibleName(current.name)));
    const [level, text, shape] = statusOf(n ? (n.drained && n.status === "draining" ? "drained" : n.status) : "left");
    updateElement(status.firstChild, statusWithAge(level, text, shape));
    const silent = n && n.silent_seconds + (n.status === "dead" ? 0 : staleSeconds() || (performance.now() - arrived) / 1000);
    updateElement(facts.firstChild, figures(n ? [
      ["Leads", grouped(n.led_roles), n.led_roles === 1 ? "role" : "roles"],
      [n.status === "dead" ? "Started" : "Up for", n.status === "dead" ? ago(n.started_at) : long(since(n.started_at))],
      ["Last heartbeat", `${n.status === "dead" ? long(silent) : `${Math.max(0, silent).toFixed(0)} s`} ago`, `lease ${long(n.lease_seconds)}`],
      ["Load", n.status === "dead" ? "–" : `${Math.round(100 * n.load)} %`],
      ["In flight", grouped(n.in_flight)], ["Connections", grouped(n.current_connections)], ["Jobs", grouped(n.current_jobs)],
    ] : [["Leads", "0", "roles"]], ageText()));
    const pairs = [
      ["Id", h("span", {}, h("code", { class: "figure" }, id), " ", copyButton(id, "id"))],
      ...nonEmpty(n ? [
        ["Address", n.address && h("span", {}, h("code", { class: "figure" }, visibleName(n.address)), " ", copyButton(n.address, "address"))], ["Host", n.hostname && h("bdi", {}, visibleName(n.hostname))],
        ["Version", n.version && h("bdi", {}, visibleName(n.version))], ["Started", h("time", { datetime: n.started_at }, whole(n.started_at))],
        ["Node roles", (n.node_roles ?? []).map(visibleName).join(", ")], ["Labels", Object.entries(n.labels ?? {}).map(([key, value]) => `${visibleName(key)}=${visibleName(value)}`).join(", ")],
      ] : [["Registry", "The node is no longer in the registry: it left, or its row was removed."]]),
    ];
    if (!details.firstChild.children.length || details.dataset.of !== JSON.stringify(n && [n.address, n.hostname, n.version, n.started_at, n.node_roles, n.labels])) {
      details.dataset.of = JSON.stringify(n && [n.address, n.hostname, n.version, n.started_at, n.node_roles, n.labels]);
      details.replaceChildren(h("dl", { class: "details" }, pairs.map(([term, value]) => [h("dt", {}, term), h("dd", {}, value)])));
    }
    updateElement(incidents.firstChild, h("div", {}, current.incidents.length ? h("ul", { class: "entries", tabindex: "0", "aria-label": "Incidents of the node" }, current.incidents.map((i) => h("li", {},
      h("span"), h("span", { class: "what" }, h("b", {}, kindOf(i.kind)), ": ", timed(i.sentence), " ", h("a", { href: incidentLink(i.id) }, "Details")), h("time", { datetime: i.began_at, title: whole(i.began_at) }, moment(i.began_at)))))
      : h("p", { class: "empty" }, "No incident of this node is known.")));
    const key = n ? `${n.status} ${n.drained}` : "";
    if (mayAct() && key !== buttonsFor) {
      buttonsFor = key;
      buttons.replaceChildren(n ? drain(n) ?? forget(n) : "");
    }
  }

  async function read() {
    try {
      const [detail, some] = await Promise.all([get("node", { id }), get("events", { node: id, limit: 100 })]);
      current = detail;
      arrived = performance.now();
      links.replaceChildren(outward(detail.links));
      draw();
      showEntries(events, some.rows);
    } catch (error) {
      if (error.status === 404 && !current) notFound(page, "No node with this id is known.", ["#/nodes", "All nodes"]);
    }
  }
  const readSoon = () => { clearTimeout(timer); timer = setTimeout(read, 300); };

  page.replaceChildren(h("div", { class: "head" }, title, status, buttons, links), facts, panel("Description", null, details),
    panel("Load over time", load.tools, h("div", { class: "body" }, load.element)), panel("Roles that it leads", null, roles.element), panel("Incidents", null, incidents), panel("History", null, events));
  read();
  const tick = setInterval(() => { draw(); roles.redraw(); }, 1000);
  return {
    title: "Node",
    on: {
      now: (now) => {
        const mine = now.nodes.find((n) => n.id === id);
        if (mine && current) [current.node, arrived] = [mine, state.now.at];
        draw();
      },
      refresh: () => { read(); load.read(); roles.changed(); },
      theme: load.redraw,
      incidents: readSoon,
      change: (change) => {
        if (!change.events.some((e) => e.node === id)) return;
        readSoon();
        roles.changed();
      },
    },
    close: () => { clearInterval(tick); clearTimeout(timer); load.close(); },
  };
}
