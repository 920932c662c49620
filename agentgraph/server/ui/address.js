// What a screen shows is in the address, `#/threads/ID?tab=state`, so that a reload and a link show the same.

export function read() {
  const [path, query = ""] = location.hash.slice(1).split("?");
  const parts = path.split("/").filter(Boolean).map(decoded);
  return { screen: parts[0] ?? "threads", id: parts[1] ?? null, query: new URLSearchParams(query) };
}

function decoded(part) {
  try { return decodeURIComponent(part); } catch { return part; }
}

export function link(screen, id = null, query = {}) {
  const path = [screen, id].filter((part) => part !== null).map(encodeURIComponent).join("/");
  const fields = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== null && value !== ""));
  return `#/${path}${fields.size ? "?" + fields : ""}`;
}

/** Changes fields of the query; empty ones are removed. A change of view makes no entry in the history. */
export function change(fields, keeps = false) {
  const { screen, id, query } = read();
  const to = link(screen, id, { ...Object.fromEntries(query), ...fields });
  if (to === location.hash) return;
  if (keeps) location.hash = to;
  else location.replace(to);
}

export function go(to) {
  location.hash = to;
}
