// Asking a leader, a node, a processor or a schedule for something: a dialog asks
// once, and then shows what came of it.

import { announce, h } from "./dom.js";
import { get, post, session } from "./api.js";

export const mayAct = () => session.current.may_act;

// confirm opens the dialog. extra are further fields, whose values read() returns.
function confirm({ title, text, verb, extra, read, action }) {
  const answer = h("p", { class: "answer", role: "status" });
  const go = h("button", { type: "submit", class: "primary" }, verb);
  const cancel = h("button", { type: "button" }, "Cancel");
  const heading = h("h2", { id: "dialog-title" }, title);
  const form = h("form", {}, heading, h("p", { id: "dialog-text" }, text), extra, answer, h("div", { class: "buttons" }, cancel, go));
  const dialog = h("dialog", { "aria-labelledby": "dialog-title", "aria-describedby": "dialog-text" }, form);
  const opener = document.activeElement;
  const openerLabel = opener?.getAttribute?.("data-action");
  cancel.addEventListener("click", () => dialog.close());
  dialog.addEventListener("close", () => {
    dialog.remove();
    // What opened it may have been drawn anew.
    const back = opener?.isConnected ? opener : openerLabel && document.querySelector(`[data-action="${CSS.escape(openerLabel)}"]`);
    (back || document.getElementById("main")).focus();
  });
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (go.disabled) return;
    go.disabled = true;
    answer.className = "answer";
    answer.textContent = "Asking…";
    try {
      const result = await post("actions", { ...action, ...(read?.() ?? {}) });
      answer.classList.add(result.done ? "is-good" : "is-warning");
      answer.textContent = result.message;
      announce(result.message);
      go.remove();
      cancel.textContent = "Close";
      cancel.focus();
    } catch (error) {
      answer.classList.add("is-critical");
      answer.textContent = `It was not done: ${error.message}.`.replace(/\.\.$/, ".");
      go.disabled = false;
    }
  });
  document.body.append(dialog);
  dialog.showModal();
  (form.querySelector("select") ?? go).focus();
}

function button(label, open, key, props = {}) {
  return h("button", { type: "button", "data-action": key, onclick: open, ...props }, label);
}

// called shortens what something is called for a sentence, as the server does.
const called = (text) => "\u2068" + [...text].slice(0, 60).join("") + "\u2069";

export function stepDown(role) {
  return button("Step down", () => confirm({
    title: "Step down?", verb: "Step down", action: { action: "step_down", name: role.name },
    text: `${called(role.node_name)} gives ${called(role.name)} up when its work in flight has ended, and another node takes over.`,
  }), `step_down ${role.name}`);
}

export function handOver(role) {
  return button("Hand over…", async () => {
    let nodes = [];
    try {
      nodes = (await get("nodes", { limit: 500 })).rows.filter((node) => node.id !== role.node && node.state === "active");
    } catch { /* the dialog says that there is none */ }
    const target = h("select", { name: "target" }, nodes.map((node) => h("option", { value: node.id }, `${node.name} (${node.host})`)));
    if (!nodes.length) {
      return confirm({
        title: "Nobody to hand over to", verb: "Step down instead", action: { action: "step_down", name: role.name },
        text: `No other node is active. ${called(role.node_name)} can step down; it will lead again when nobody else does.`,
      });
    }
    confirm({
      title: "Hand over?", verb: "Hand over", action: { action: "hand_over", name: role.name }, read: () => ({ node: target.value }),
      text: `${called(role.node_name)} gives ${called(role.name)} up in favour of the node that you choose, which must stand for the role.`,
      extra: h("label", {}, "To", target),
    });
  }, `hand_over ${role.name}`);
}

export function drain(node) {
  const drained = node.state === "draining";
  if (!drained && node.state !== "active") return null;
  if (drained) {
    return button("End drain", () => confirm({
      title: "End the drain?", verb: "End drain", action: { action: "undrain", node: node.id },
      text: `${called(node.name)} comes back into service: it takes work and stands for its roles again.`,
    }), `drain ${node.id}`, { class: "compact" });
  }
  return button("Drain", () => {
    const force = h("input", { type: "checkbox", id: "force" });
    confirm({
      title: "Drain?", verb: "Drain", action: { action: "drain", node: node.id }, read: () => ({ force: force.checked }),
      text: `${called(node.name)} takes no more work, ends what it has, and gives its roles to others.`,
      extra: h("label", { class: "check", for: "force" }, force, "Also if no other node is left in service"),
    });
  }, `drain ${node.id}`, { class: "compact" });
}

export function processorAction(processor) {
  const paused = processor.status === "paused";
  return button(paused ? "Resume" : "Pause", () => confirm({
    title: paused ? "Resume?" : "Pause?", verb: paused ? "Resume" : "Pause",
    action: { action: paused ? "resume_processor" : "pause_processor", name: processor.name },
    text: paused ? `${called(processor.name)} goes on where it stopped.` : `${called(processor.name)} takes no further batch until it is resumed. The batch in flight ends.`,
  }), `processor ${processor.name}`, { class: "compact", "aria-label": `${paused ? "Resume" : "Pause"}: ${processor.name}` });
}

export function scheduleActions(schedule) {
  const paused = schedule.paused;
  return [
    button("Run now", () => confirm({
      title: "Run now?", verb: "Run now", action: { action: "trigger_schedule", name: schedule.name },
      text: `The leader starts ${called(schedule.name)} once, besides its times.`,
    }), `trigger ${schedule.name}`, { class: "compact", "aria-label": `Run now: ${schedule.name}` }), " ",
    button(paused ? "Resume" : "Pause", () => confirm({
      title: paused ? "Resume?" : "Pause?", verb: paused ? "Resume" : "Pause",
      action: { action: paused ? "resume_schedule" : "pause_schedule", name: schedule.name },
      text: paused ? `${called(schedule.name)} runs at its times again.` : `${called(schedule.name)} does not run until it is resumed. What runs goes on.`,
    }), `schedule ${schedule.name}`, { class: "compact", "aria-label": `${paused ? "Resume" : "Pause"}: ${schedule.name}` }),
  ];
}
