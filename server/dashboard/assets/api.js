// Requests to the server.

class RequestError extends Error {
  constructor(status, message, body = {}) {
    super(message);
    this.status = status;
    this.body = body;
  }
}

export const session = { current: { title: "Tenure", user: "", may_look: true, may_act: false, log_in: "", csrf_token: "" } };

// In milliseconds: an action and its outcome take up to half a minute, and to read a
// long history up to 20 s.
const requestTimeout = 40_000;

async function request(path, options) {
  let response;
  try {
    response = await fetch(path, { credentials: "same-origin", signal: AbortSignal.timeout(requestTimeout), ...options });
  } catch {
    throw new RequestError(0, "the dashboard does not answer");
  }
  let body = {};
  try {
    body = await response.json();
  } catch { /* the response may be that of a proxy in front of the dashboard */ }
  if (!response.ok) throw new RequestError(response.status, body.error ?? `the dashboard answered ${response.status}`, body);
  return body;
}

export function get(path, query = {}) {
  const parameters = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== "" && value !== undefined && value !== null));
  return request(`api/${path}${parameters.size ? "?" + parameters : ""}`);
}

function send(path, body) {
  return request(`api/${path}`, {
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
    const now = await request("api/session").catch(() => before);
    if (now.user !== before.user || now.csrf_token === sent) throw error;
    session.current.csrf_token = now.csrf_token;
    return send(path, body);
  }
}

export async function readSession(login = false) {
  session.current = await request(`api/session${login ? "?login" : ""}`);
  return session.current;
}
