// The user, and logging in and out.

import { h, name } from "./dom.js";
import { post, readSession, session } from "./api.js";

// drawUser shows the user; changed is called when the user changes.
export function drawUser(changed) {
  const who = document.getElementById("who");
  const { user, access, log_in, sign_on, can_log_out, read_only, title } = session.current;
  const viewer = access === "viewer" || user && read_only ? " (may view only)" : "";
  document.getElementById("title").replaceChildren(name(title));
  const logOut = async () => {
    await post("logout", {}).catch(() => {});
    location.reload();
  };
  const logIn = async () => {
    await readSession(true).catch(() => {}); // the browser asks
    changed();
  };
  if (can_log_out) who.replaceChildren(h("button", { type: "button", class: "quiet", onclick: logOut }, "Log out ", name(user), viewer));
  else if (user) who.replaceChildren(h("span", { class: "faint small" }, name(user), viewer));
  else if (log_in === "token" || sign_on) who.replaceChildren(h("a", { href: "#/login" }, "Log in"));
  else if (log_in === "password") who.replaceChildren(h("button", { type: "button", class: "quiet", onclick: logIn }, "Log in"));
  else who.replaceChildren(read_only ? h("span", { class: "faint small" }, "Read only") : "");
}
