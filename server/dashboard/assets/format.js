// Times, durations and stored words as text.

let offset = 0; // of the database's clock, in milliseconds

// setClock sets the database's clock from a message.
export function setClock(time) {
  const seen = Date.parse(time) - Date.now();
  if (Math.abs(seen - offset) > 1500) offset = seen;
}

export const now = () => Date.now() + offset;

// duration is how long something took, as in the server's sentences.
export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  const s = Math.max(0, seconds);
  if (s < 0.001) return `${Math.round(s * 1e6)} µs`;
  if (s < 0.1) return `${+(s * 1e3).toFixed(1)} ms`;
  if (s < 1) return `${Math.round(s * 1e3)} ms`;
  if (s < 60) return `${s.toFixed(1)} s`;
  return long(s);
}

// parts states the parts of a time without a leader: the silence of the old leader, and the
// free lock after it. It is empty if the lock was free for all of that time.
export function parts({ without_leader_seconds: all, vacant_seconds: free }) {
  if (all === null || all === undefined || free === null || free === undefined) return "";
  return all - free < 0.0005 ? "" : `silent ${duration(all - free)}, then lock free ${duration(free)}`;
}

// long is a duration in whole seconds or more.
export function long(seconds) {
  const s = Math.max(0, Math.floor(seconds));
  if (s < 60) return `${s} s`;
  const parts = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  const first = parts.findIndex(([size]) => s >= size);
  const [size, unit] = parts[first];
  const whole = Math.floor(s / size);
  const [lesser, lesserUnit] = parts[first + 1];
  const rest = Math.floor((s - whole * size) / lesser);
  return rest ? `${whole} ${unit} ${rest} ${lesserUnit}` : `${whole} ${unit}`;
}

// short is a duration in its largest unit.
export function short(seconds) {
  const s = Math.max(0, seconds);
  for (const [size, unit] of [[86400, "d"], [3600, "h"], [60, "min"]]) if (s >= size) return `${Math.floor(s / size)} ${unit}`;
  return `${Math.floor(s)} s`;
}

export const since = (time) => (now() - Date.parse(time)) / 1000;

// isAhead says whether a past time lies ahead: the database's clock was ahead, and was set back.
export const isAhead = (time) => since(time) < -10;

export function ago(time) {
  const s = since(time);
  return isAhead(time) ? moment(time) : s < 1.5 ? "now" : s < 60 ? `${Math.floor(s)} s ago` : s < 86400 ? `${long(s)} ago` : moment(time);
}

export function until(time) {
  const s = -since(time);
  return s < -15 ? `due ${short(-s)} ago` : s <= 0 ? "now" : `in ${long(s)}`;
}

const shown = {
  days: { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit" },
  full: { dateStyle: "medium", timeStyle: "long" },
  hours: { hour: "2-digit", minute: "2-digit", second: "2-digit" },
  minutes: { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit" },
  exactly: { hour: "2-digit", minute: "2-digit", second: "2-digit", fractionalSecondDigits: 3 },
  dates: { month: "short", day: "numeric" },
};
let formats, inUTC = false;

// setUTC makes all times UTC, or those of this computer.
export function setUTC(utc) {
  inUTC = utc;
  formats = Object.fromEntries(Object.entries(shown).map(([key, parts]) => [key, new Intl.DateTimeFormat(undefined, { ...parts, hourCycle: "h23", timeZone: utc ? "UTC" : undefined })]));
}
setUTC(false);

// zoneName returns the name of the time zone of all times.
export const zoneName = () => new Intl.DateTimeFormat(undefined, { timeZoneName: "short", timeZone: inUTC ? "UTC" : undefined }).formatToParts(new Date()).find((part) => part.type === "timeZoneName").value;

// zoneOffset returns how far the shown times are behind UTC, in milliseconds.
export const zoneOffset = () => (inUTC ? 0 : new Date().getTimezoneOffset() * 60_000);

export const date = (time) => formats.dates.format(new Date(time));
export const minute = (time) => formats.minutes.format(new Date(time));
export const moment = (time) => formats.days.format(new Date(time));
export const whole = (time) => formats.full.format(new Date(time));
export const clock = (time) => formats.hours.format(new Date(time));

// exact is a time of day with milliseconds.
export const exact = (time) => formats.exactly.format(new Date(time));

// lately is a time of day if the time is less than half a day ago.
export const lately = (time) => (Math.abs(since(time)) < 43_200 ? clock(time) : moment(time));
export const count = (n, one, many = one + "s") => `${n.toLocaleString("en")} ${n === 1 ? one : many}`;
export const grouped = (n) => n.toLocaleString("en");

// shortTerm shortens the number of a term, a time in milliseconds, for places where
// it is only looked at: its last six digits after an ellipsis.
export const shortTerm = (n) => (n < 1e6 ? String(n) : "…" + String(n % 1e6).padStart(6, "0"));

const reasons = {
  resigned: "resigned", stepped_down: "stepped down", handed_over: "handed over", shutdown: "shut down", crashed: "crashed",
  lease_expired: "fell silent: lease expired", completed: "completed its work", server_changed: "lost its locks",
};
export const reason = (text) => (text ? reasons[text] ?? text.replaceAll("_", " ") : "end not known");

// isLed says whether a role has a leader.
export const isLed = (role) => role.state === "led" || role.state === "silent";

// unclean ends are unplanned.
export const unclean = (text) => ["crashed", "lease_expired", "server_changed"].includes(text);

const statuses = {
  joining: ["faint", "joining"], active: ["good", "active"], draining: ["warning", "draining", "paused"], silent: ["warning", "silent"],
  dead: ["critical", "dead"], left: ["faint", "left"], led: ["good", "led"], "at rest": ["faint", "at rest", "paused"], vacant: ["critical", "vacant"], paused: ["warning", "paused", "paused"],
  failed: ["critical", "failed"], failing: ["critical", "failing"], firing: ["critical", "firing"], pending: ["warning", "pending"], inactive: ["good", "inactive"],
  running: ["good", "running", "began"], succeeded: ["good", "succeeded"], waiting: ["faint", "waiting"], timed_out: ["critical", "timed out"],
  panicked: ["critical", "panicked"], abandoned: ["warning", "abandoned"], missed: ["warning", "missed"], skipped: ["faint", "skipped"],
};
export const statusOf = (text) => statuses[text] ?? ["faint", text];

const actions = {
  step_down: "step down", hand_over: "hand over", drain: "drain", undrain: "end the drain", pause_processor: "pause the processor",
  resume_processor: "resume the processor", retry_processor: "retry the processor", replay_dead_letters: "replay dead letters of", dismiss_dead_letters: "dismiss dead letters of", trigger_schedule: "trigger the schedule", pause_schedule: "pause the schedule", resume_schedule: "resume the schedule",
  skip_event: "skip the failing event of", rewind_processor: "rewind the processor", forget_node: "forget", rebalance: "rebalance", unsilence_alert: "end the silence of the alert",
  silence_alert: "silence the alert", acknowledge_alert: "acknowledge the alert",
};
export const action = (text) => actions[text] ?? text;
