// Two checkpoints side by side by field, such as the ends of two branches.

import { change } from "./address.js";
import { get } from "./api.js";
import { differences } from "./delta.js";
import { button, clock, counted, h, labelled, number, put, shortId } from "./dom.js";
import { brief, longText } from "./json.js";

const ROWS = 60;
const LINE = 100;

/** The panel: the checkpoint that the screen shows beside the one in `with`, or the end of another branch. */
export function compare(screen) {
  const element = h("div", { class: "compare" }, h("p", { class: "empty" }, "Comparing …"));
  const { shown, shownAt } = screen;
  const hadFocus = document.activeElement?.name === "with";
  fill(element, screen).then(() => hadFocus && element.querySelector("select")?.focus()).catch((error) => {
    if (error.name !== "AbortError" && screen.shown === shown && screen.shownAt === shownAt) put(element, h("p", { class: "problem" }, error.message));
  });
  return element;
}

async function fill(element, screen) {
  const { id, shown, query } = screen;
  const { items: branches } = await screen.search(`ui/threads/${id}/branches`);
  const others = branches.filter((branch) => branch.newest !== shown.checkpoint_id);
  const given = query.get("with") ?? others[0]?.newest ?? shown.parent_checkpoint_id;
  if (!given) return put(element, h("p", { class: "empty" }, "The thread has no other checkpoint."));
  const [other, mine, theirs] = await Promise.all([screen.stateAt(given), line(screen, shown), line(screen, { checkpoint_id: given, metadata: { source: "loop" } })]);
  // The nodes that each side has run since the last checkpoint that both have.
  const common = mine.find((one) => theirs.some(({ checkpoint_id: at }) => at === one.checkpoint_id))?.checkpoint_id;
  const since = (list) => {
    const end = list.findIndex((one) => one.checkpoint_id === common);
    // An edit of the state ran nothing.
    const ran = list.slice(1, end < 0 ? undefined : end + 1).filter((_, at) => list[at].metadata.source === "loop");
    return ran.reverse().flatMap((one) => one.next).filter((name) => name !== "__start__");
  };
  const options = [...others.map(({ number, newest }) => [newest, `end of branch ${number}`]),
    ...screen.history.filter((one) => one.checkpoint_id !== shown.checkpoint_id)
      .map((one) => [one.checkpoint_id, `step ${one.metadata.step}, ${one.metadata.source}`])];
  if (!options.some(([at]) => at === given)) options.push([given, shortId(given)]);
  const choice = h("select", { name: "with", onchange: ({ target }) => change({ with: target.value }) },
    options.map(([value, text]) => h("option", { value, selected: value === given }, text)));
  const name = (at) => {
    const branch = branches.find(({ newest }) => newest === at);
    return branch ? `End of branch ${branch.number}` : `Checkpoint ${shortId(at)}`;
  };
  const head = (title, state, ran) => h("th", { scope: "col" }, title, h("span", { class: "facts" }, `step ${state.metadata?.step ?? "–"}`,
    state.created_at && h("span", {}, clock(state.created_at))), ran.length > 0 && h("span", { class: "ran" }, brief(ran.join(" → "), 200)));
  const found = differences(other.values, shown.values);
  const same = Object.keys(shown.values ?? {}).filter((name) => !found.some(({ path }) => path[0] === name));
  const body = h("tbody");
  const pager = h("div", { class: "pager" });
  let first = 0;
  const draw = () => {
    put(body, found.slice(first, first + ROWS).map(({ path, before, after }) => h("tr", {},
      h("th", { scope: "row" }, h("code", {}, path.join(" › "))), cell(before, after), cell(after, before))));
    put(pager, found.length > ROWS && [h("span", {}, `${first + 1}–${Math.min(first + ROWS, found.length)} of ${number(found.length)}`),
      button("Previous fields", () => { first -= ROWS; draw(); }, { disabled: first === 0 }),
      button("Next fields", () => { first += ROWS; draw(); }, { disabled: first + ROWS >= found.length })]);
  };
  draw();
  put(element, labelled("Compare with", choice),
    h("table", {}, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Field"), head(name(given), other, since(theirs)), head(name(shown.checkpoint_id), shown, since(mine)))), body),
    pager, h("p", { class: "facts" }, found.length === 0 && "No field differs. ", same.length > 0
      && `${counted(same.length, "field")} ${same.length === 1 ? "is" : "are"} the same: ${brief(same.join(", "), 300)}`));
}

/** A checkpoint and those that it follows from, the newest first. */
async function line({ id, aborts }, { checkpoint_id: at, metadata }) {
  const list = await get(`threads/${id}/history?limit=${LINE}&before=${at}&select=checkpoint_id,next,metadata&line=true`, aborts.signal);
  return [{ checkpoint_id: at, metadata, next: [] }, ...list];
}

function cell(value, other) {
  if (value === undefined) return h("td", { class: "absent" }, other === undefined ? "" : "–");
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return h("td", {}, text.length > 600 ? longText(text) : h("span", { class: "value" }, text));
}
