// Requests to the server.

export class Refused extends Error {
  constructor(status, message, body = {}) {
    super(message);
    this.status = status;
    this.body = body;
  }
}

export const session = { current: { title: "Tenure", user: "", may_look: true, may_act: false, log_in: "", csrf_token: "" } };

// In milliseconds: an action and its outcome take up to half a minute, and to read a
// long history up to 20 s.
const patience = 40_000;

async function ask(path, options) {
  let response;
  try {
    response = await fetch(path, { credentials: "same-origin", signal: AbortSignal.timeout(patience), ...options });
  } catch {
    throw new Refused(0, "the dashboard does not answer");
  }
  let body = {};
  try {
    body = await response.json();
  } catch { /* the response may be that of a proxy in front of the dashboard */ }
  if (!response.ok) throw new Refused(response.status, body.error ?? `the dashboard answered ${response.status}`, body);
  return body;
}

export function get(path, query = {}) {
  const wanted = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== "" && value !== undefined && value !== null));
  return ask(`api/${path}${wanted.size ? "?" + wanted : ""}`);
}

function send(path, body) {
  return ask(`api/${path}`, {
    method: "POST",
    headers: { "Content-Type": "application/json", "X-CSRF-Token": session.current.csrf_token },
    body: JSON.stringify(body),
  });
}

// post sends a request that may change something. After a restart, the dashboard expects
// another token of the page: a request refused for that reason was not done, and is sent
// again.
export async function post(path, body) {
  const before = session.current, sent = before.csrf_token;
  try {
    return await send(path, body);
  } catch (error) {
    if (!error.body.forged) throw error;
    const now = await ask("api/session").catch(() => before);
    if (now.user !== before.user || now.csrf_token === sent) throw error;
    session.current.csrf_token = now.csrf_token;
    return send(path, body);
  }
}

export async function readSession(login = false) {
  session.current = await ask(`api/session${login ? "?login" : ""}`);
  return session.current;
}
