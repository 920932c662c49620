// The form for the key of a server that asks for one.

import { get, setKey } from "./api.js";
import { h, labelled, put } from "./dom.js";

export function mount(main, done) {
  const key = h("input", { type: "password", name: "key", autocomplete: "off", required: true, "data-search": true });
  const problem = h("p", { class: "problem", role: "alert" });
  const submit = async (event) => {
    event.preventDefault();
    setKey(key.value.trim());
    try {
      await get("info");
      done();
    } catch (error) {
      problem.textContent = error.status === 401 ? "The server does not know this key." : error.message;
    }
  };
  put(main, h("form", { class: "card token", onsubmit: submit },
    h("h1", {}, "This server asks for a key"),
    h("p", {}, "One of those given to ", h("code", {}, "Server::bearer_keys"), ". It is kept in this tab and ends with it."),
    labelled("Key", key), problem, h("button", { type: "submit", class: "primary" }, "Open")));
  key.focus();
  return { title: "Key" };
}
