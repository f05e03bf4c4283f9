// Logging in with a token.

import { h } from "./dom.js";
import { post, readSession } from "./api.js";

export default function login(page, done, ended = false) {
  const field = h("input", { type: "password", id: "token", name: "token", autocomplete: "current-password", required: true, spellcheck: "false" });
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
  page.replaceChildren(h("section", { class: "panel login" }, form));
  field.focus();
  return { title: "Log in", on: {}, close: () => {} };
}
