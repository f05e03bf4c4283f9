// Logging in with a token, at another site, or with a password that the browser asks for.

import { h } from "./dom.js";
import { post, readSession, session } from "./api.js";

export default function login(page, done, ended = false) {
  const field = h("input", { type: "password", id: "token", name: "token", autocomplete: "current-password", required: true, spellcheck: "false" });
  const { log_in, sign_on } = session.current;
  const answer = h("p", { class: "answer is-critical", role: "alert" });
  const form = h("form", {}, h("h1", {}, "Log in"), ended ? h("p", { class: "is-warning" }, "Your session has ended.") : null, h("p", { class: "faint" }, "Enter the access token you received from the operator of this dashboard."),
    h("label", { for: "token" }, "Token", field), answer, h("button", { type: "submit", class: "primary" }, "Log in"));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    answer.textContent = "";
    try {
      await post("login", { token: field.value });
      await readSession();
      done();
    } catch (error) {
      answer.textContent = `${error.message[0].toUpperCase()}${error.message.slice(1)}.`;
      field.select();
    }
  });
  const other = sign_on ? h("p", {}, h("a", { href: "login", class: "sign-on" }, "Log in with single sign-on")) : null;
  const byPassword = async () => {
    await readSession(true).catch(() => {}); // the browser asks
    done();
  };
  if (sign_on && log_in !== "token") {
    page.replaceChildren(h("section", { class: "panel login" }, h("h1", {}, "Log in"), ended ? h("p", { class: "is-warning" }, "Your session has ended.") : null, other,
      log_in === "password" ? h("button", { type: "button", onclick: byPassword }, "Log in with a password") : null));
    page.querySelector("a").focus();
  } else {
    page.replaceChildren(h("section", { class: "panel login" }, other, form));
    field.focus();
  }
  return { title: "Log in", on: {}, close: () => {} };
}
