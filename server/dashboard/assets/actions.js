// Requests to a leader, a node, a processor or a schedule: a dialog asks for
// confirmation and then shows the result.

import { announce, h, visibleName } from "./dom.js";
import { get, post, session } from "./api.js";
import { count } from "./format.js";

export const mayAct = () => session.current.may_act;

// failureText returns why an action failed, or that its outcome is unknown: the request
// may have arrived although the response did not.
function failureText(error) {
  if (error.status === 0) return "Connection lost. The action may or may not have taken effect; check the current state.";
  if (error.status === 504) return `${error.message[0].toUpperCase()}${error.message.slice(1)}.`;
  const log = error.status === 401 ? " Log in again." : "";
  return `It was not done: ${error.message}.${log}`;
}

// confirm opens the dialog, one at a time. extra are further fields, whose values
// read() returns; onRefusal(error, answer) may add one after a refusal.
function confirm({ title, text, verb, extra, read, onRefusal, action }) {
  if (document.querySelector("dialog")) return;
  const answer = h("p", { class: "answer", role: "status" });
  const submit = h("button", { type: "submit", class: "primary" }, verb);
  const cancel = h("button", { type: "button" }, "Cancel");
  const heading = h("h2", { id: "dialog-title" }, title);
  const form = h("form", {}, heading, h("p", { id: "dialog-text" }, text), extra, answer, h("div", { class: "buttons" }, cancel, submit));
  const dialog = h("dialog", { "aria-labelledby": "dialog-title", "aria-describedby": "dialog-text" }, form);
  const opener = document.activeElement;
  const openerLabel = opener?.getAttribute?.("data-action");
  cancel.addEventListener("click", () => dialog.close());
  dialog.addEventListener("close", () => {
    dialog.remove();
    // The element that opened it may have been redrawn.
    const focusTarget = opener?.isConnected ? opener : openerLabel && document.querySelector(`[data-action="${CSS.escape(openerLabel)}"]`);
    (focusTarget || document.getElementById("main")).focus();
  });
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (submit.disabled) return;
    submit.disabled = true;
    cancel.textContent = "Close";
    answer.className = "answer";
    answer.textContent = "Sending…";
    try {
      const result = await post("actions", { ...action, ...(read?.() ?? {}) });
      answer.classList.add(result.failed ? "is-critical" : result.done ? "is-good" : "is-warning");
      answer.textContent = result.message;
      announce(result.message);
      submit.remove();
      cancel.focus();
    } catch (error) {
      answer.classList.add("is-critical");
      answer.textContent = failureText(error);
      cancel.textContent = "Cancel";
      submit.disabled = false;
      onRefusal?.(error, answer);
      if (!dialog.isConnected) announce(answer.textContent);
    }
  });
  document.body.append(dialog);
  dialog.showModal();
  // Not the button that sends the request: the key that opened the dialog may still be down.
  (form.querySelector("select, input:not([type=checkbox])") ?? cancel).focus();
}

// optionName begins an option. A browser finds the option whose first letters are typed, and does not
// skip an isolate, which names in ASCII do not need.
const optionName = (text) => (/^[\x20-\x7e]+$/.test(text) ? text.slice(0, 60) : quoted(text));

let presses = 0; // of buttons: a dialog that takes time to prepare opens only if no other button was pressed

function button(label, open, key, props = {}) {
  return h("button", { type: "button", "data-action": key, onclick: () => open(++presses), ...props }, label);
}

// quoted shortens a name for a sentence, as the server does.
const quoted = (text) => "\u2068" + visibleName([...text].slice(0, 60).join("")) + "\u2069";

// successors states who could take over a role. No record lists the candidates of a role.
function successors(role, { active, led_before: before }) {
  if (!active) return `No other node is active: ${quoted(role.role)} has no leader until ${quoted(role.node_name)} leads it again.`;
  const led = before.length ? `${before.length} of them led it before` : `none of them is known to have led it before`;
  return `${count(active, "other node is", "other nodes are")} active, and ${led}. If one campaigns for the role, it takes over. Otherwise ${quoted(role.node_name)} leads it again.`;
}

export function stepDown(role) {
  return button("Step down", async (press) => {
    const address = location.hash;
    let who = "";
    try {
      who = successors(role, (await get("role", { name: role.role })).others);
    } catch (error) {
      who = `Who could take over is not known: ${error.message}.`;
    }
    if (press !== presses || address !== location.hash) return;
    confirm({
      title: "Step down?", verb: "Step down", action: { action: "step_down", name: role.role, term: role.term },
      text: `${quoted(role.node_name)} steps down from ${quoted(role.role)} when its in-flight work has ended. ${who}`,
    });
  }, `step_down ${role.role}`);
}

// eligible nodes are active; nodes that lead few roles and have little load come first.
const eligible = (node) => node.status === "active";
const byEligibility = (a, b) => eligible(b) - eligible(a) || a.led_roles - b.led_roles || a.load - b.load || a.name.localeCompare(b.name);

export function handOver(role) {
  return button("Hand over…", async (press) => {
    const address = location.hash, stillShown = () => press === presses && address === location.hash;
    let nodes = [], before = [];
    try {
      const [all, detail] = await Promise.all([get("nodes", { limit: 500 }), get("role", { name: role.role })]);
      before = detail.others.led_before;
      const led = (node) => before.includes(node.id);
      nodes = all.rows.filter((node) => node.id !== role.node && node.status !== "dead").sort((a, b) => eligible(b) - eligible(a) || led(b) - led(a) || byEligibility(a, b));
    } catch (error) {
      if (!stillShown()) return;
      return confirm({
        title: "Hand over?", verb: "Step down instead", action: { action: "step_down", name: role.role, term: role.term },
        text: `The nodes cannot be listed: ${error.message}. ${quoted(role.node_name)} can step down, and any other node takes over.`,
      });
    }
    if (!stillShown()) return;
    const target = h("select", { name: "target" }, nodes.map((node) => h("option", { value: node.id, disabled: !eligible(node) },
      `${optionName(node.name)}: ${node.status}${before.includes(node.id) ? ", led it before" : ""}, leads ${node.led_roles}, load ${Math.round(100 * node.load)} % (${quoted(node.hostname)})`)));
    if (!nodes.some(eligible)) {
      return confirm({
        title: "No node to hand over to", verb: "Step down instead", action: { action: "step_down", name: role.role, term: role.term },
        text: `No other node is active. ${quoted(role.node_name)} can step down; it will lead again if no other node does.`,
      });
    }
    confirm({
      title: "Hand over?", verb: "Hand over", action: { action: "hand_over", name: role.role, term: role.term }, read: () => ({ node: target.value }),
      text: `${quoted(role.node_name)} hands ${quoted(role.role)} over to the node that you choose, which must campaign for the role. The list begins with nodes that led it before.`,
      extra: h("label", {}, "To", target),
    });
  }, `hand_over ${role.role}`);
}

export function drain(node) {
  const drained = node.status === "draining";
  if (!drained && node.status !== "active") return null;
  if (drained) {
    return button("End drain", () => confirm({
      title: "End the drain?", verb: "End drain", action: { action: "undrain", node: node.id },
      text: `${quoted(node.name)} becomes active again: it accepts work and campaigns for its roles.`,
    }), `drain ${node.id}`, { class: "compact", "aria-label": `End drain: ${node.name}` });
  }
  return button("Drain", () => {
    const force = h("input", { type: "checkbox", id: "force" });
    confirm({
      title: "Drain?", verb: "Drain", action: { action: "drain", node: node.id }, read: () => ({ force: force.checked }),
      text: `${quoted(node.name)} stops accepting work, finishes what it has, and hands its roles over.`,
      onRefusal: (error, answer) => { // offered when it is needed, in a separate step
        if (!error.body.forcible || force.isConnected) return;
        answer.after(h("label", { class: "check", for: "force" }, force, "Drain anyway (its roles will have no leader)"));
        force.focus();
      },
    });
  }, `drain ${node.id}`, { class: "compact", "aria-label": `Drain: ${node.name}` });
}

// rebalance moves shared roles, so that each node leads its share.
export function rebalance() {
  return button("Rebalance", () => confirm({
    title: "Rebalance?", verb: "Rebalance", action: { action: "rebalance" },
    text: "Roles that nodes share move until every node leads its fair share. Each leader finishes its in-flight work first. Other roles stay where they are.",
  }), "rebalance", { class: "compact" });
}

// forget removes a dead node from the registry.
export function forget(node) {
  if (node.status !== "dead") return "";
  return button("Forget", () => confirm({
    title: "Forget the node?", verb: "Forget", action: { action: "forget_node", node: node.id },
    text: `This removes the dead node ${quoted(node.name)} from the registry, without waiting for a day. Its terms stay in the history.`,
  }), `forget ${node.id}`, { class: "compact", "aria-label": `Forget: ${node.name}` });
}

export function processorAction(processor) {
  const paused = processor.status === "paused";
  return button(paused ? "Resume" : "Pause", () => confirm({
    title: paused ? "Resume?" : "Pause?", verb: paused ? "Resume" : "Pause",
    action: { action: paused ? "resume_processor" : "pause_processor", name: processor.processor },
    text: paused ? `${quoted(processor.processor)} continues where it stopped.` : `${quoted(processor.processor)} starts no further batch until it is resumed. The batch in flight ends.`,
  }), `processor ${processor.processor}`, { class: "compact", "aria-label": `${paused ? "Resume" : "Pause"}: ${processor.processor}` });
}

export function retryAction(processor) {
  return button("Retry", () => confirm({
    title: "Retry now?", verb: "Retry", action: { action: "retry_processor", name: processor.processor },
    text: `${quoted(processor.processor)} tries the event that failed again immediately. Its count of failed attempts begins anew.`,
  }), `retry ${processor.processor}`);
}

// skipAction skips the event that fails, if it is known.
export function skipAction(processor) {
  return processor.failing ? button("Skip", () => confirm({
    title: "Skip the event?", verb: "Skip", action: { action: "skip_event", name: processor.processor, event: processor.failing },
    text: `${quoted(processor.processor)} continues after event ${processor.failing}, which becomes a dead letter. You can replay it later.`,
  }), `skip ${processor.processor}`) : "";
}

// rewindAction moves a processor back or forward in its log.
export function rewindAction(processor) {
  return button("Rewind…", () => {
    const event = h("input", { name: "event", required: true, pattern: "[0-9]+:[0-9]+", placeholder: "1401:121", "aria-describedby": "rewind-hint", autocomplete: "off" });
    confirm({
      title: "Rewind?", verb: "Rewind", action: { action: "rewind_processor", name: processor.processor }, read: () => ({ event: event.value.trim() }),
      text: `${quoted(processor.processor)} handles all events after the named one again, and forgets their dead letters. Events that were handled before are handled twice.`,
      extra: [h("label", {}, "After event", event), h("p", { id: "rewind-hint", class: "small faint" }, "An event is named by its transaction and position, as in the list of dead letters. 0:0 is the start of the log.")],
    });
  }, `rewind ${processor.processor}`);
}

// replayAction replays a dead letter, or all of them.
export function replayAction(processor, letter) {
  const what = letter ? `event ${letter.event}` : "all dead letters";
  return button(letter ? "Replay" : "Replay all", () => confirm({
    title: "Replay?", verb: "Replay", action: { action: "replay_dead_letters", name: processor, letters: letter ? [String(letter.id)] : [] },
    text: `The leader of ${quoted(processor)} handles ${what} again. An event that fails again stays a dead letter.`,
  }), `replay ${letter?.id ?? "all"}`, { class: "compact", "aria-label": `Replay ${what}` });
}

// dismissAction dismisses a dead letter, or those that the user sees.
export function dismissAction(processor, letters, one = null) {
  const what = one ? `event ${one.event}` : letters.length === 1 ? "the dead letter" : `the ${letters.length} dead letters that are shown`;
  return button(one ? "Dismiss" : "Dismiss all", () => confirm({
    title: "Dismiss?", verb: "Dismiss", action: { action: "dismiss_dead_letters", name: processor, letters: letters.map(({ id }) => String(id)) },
    text: `This marks ${what} of ${quoted(processor)} as handled by you, outside of the processor. Dismissed dead letters stay listed and cause no warning.`,
  }), `dismiss ${one?.id ?? "all"}`, { class: "compact", "aria-label": `Dismiss ${one ? what : "all"}` });
}

export function scheduleActions(schedule) {
  const paused = schedule.paused;
  return [
    button("Run now", () => confirm({
      title: "Run now?", verb: "Run now", action: { action: "trigger_schedule", name: schedule.schedule },
      text: `The leader starts ${quoted(schedule.schedule)} once, in addition to its schedule.`,
    }), `trigger ${schedule.schedule}`, { class: "compact", "aria-label": `Run now: ${schedule.schedule}` }), " ",
    button(paused ? "Resume" : "Pause", () => confirm({
      title: paused ? "Resume?" : "Pause?", verb: paused ? "Resume" : "Pause",
      action: { action: paused ? "resume_schedule" : "pause_schedule", name: schedule.schedule },
      text: paused ? `${quoted(schedule.schedule)} resumes its schedule.` : `${quoted(schedule.schedule)} does not run until it is resumed. Running jobs continue.`,
    }), `schedule ${schedule.schedule}`, { class: "compact", "aria-label": `${paused ? "Resume" : "Pause"}: ${schedule.schedule}` }),
  ];
}

// durations are how long an alert can be silenced or acknowledged.
const durations = [["30 min", 1800], ["1 h", 3600], ["2 h", 7200], ["8 h", 28800], ["1 d", 86400], ["7 d", 604800]];

export function alertActions(alert) {
  const { alertname, severity, ...labels } = alert.labels ?? {};
  const key = `${alert.name} ${JSON.stringify(labels)}`;
  const dialog = (title, verb, action, text) => () => {
    const length = h("select", { name: "length" }, durations.map(([label, seconds]) => h("option", { value: seconds }, label)));
    length.value = "3600";
    confirm({
      title, verb, action: { action, name: alert.name, labels }, read: () => ({ seconds: Number(length.value) }),
      text: `${quoted(alert.name)} ${text}`, extra: h("label", {}, "For", length),
    });
  };
  const unsilence = () => confirm({
    title: "End the silence?", verb: "End the silence", action: { action: "unsilence_alert", name: alert.name, labels: alert.state === "inactive" ? {} : alert.labels ?? {} },
    text: `${quoted(alert.name)} is sent again while it fires. If the silence is of several alerts, it ends for all of them.`,
  });
  const end = alert.silenced_by ? button("End silence", unsilence, `unsilence ${key}`, { class: "compact", "aria-label": `End silence: ${alert.name}` }) : null;
  if (alert.state === "inactive") return [end];
  return [
    alert.state === "firing" ? button("Acknowledge", dialog("Acknowledge?", "Acknowledge", "acknowledge_alert",
      "shows that you handle it. If it still fires when the time ends, it is sent again."),
    `acknowledge ${key}`, { class: "compact", "aria-label": `Acknowledge: ${alert.name}` }) : null, " ",
    button("Silence", dialog("Silence?", "Silence", "silence_alert", "still fires and is shown, but it is not sent until the time ends."),
      `silence ${key}`, { class: "compact", "aria-label": `Silence: ${alert.name}` }), " ", end,
  ];
}
