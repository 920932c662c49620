// The page of `gaia-agent serve`. Every text of a question, a tool or a model is set as text, never as markup.

const at = id => document.getElementById(id);
let state = {};
/** The rows of the questions, by task. */
const rows = new Map();

function made(tag, text, kind) {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  if (kind) element.className = kind;
  return element;
}

/** Sets a text, and nothing if it is the same: a status that is set is read aloud. */
function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

const heads = {
  instructions: () => "Instructions",
  question: () => "Question",
  reasoning: () => "Reasoning",
  text: event => `Text of ${event.by}`,
  call: event => `Call of ${event.tool}`,
  result: event => (event.failed ? "Error" : "Result"),
  tokens: event => `Round ${event.round}: ${event.usage.input_total} + ${event.usage.output_total} tokens`,
  failure: event => `Failed: ${event.node}`,
};

function shownSteps(steps) {
  const shown = [];
  for (const event of steps.flatMap(step => step.events)) {
    shown.push(made("p", (heads[event.kind] ?? (() => event.kind))(event), "head"));
    const text = event.text ?? event.arguments ?? event.error;
    if (text) {
      const block = made("pre", text);
      block.tabIndex = 0;
      shown.push(block);
    }
  }
  return shown;
}

function newRow() {
  const row = { item: made("li"), level: made("span", "", "level"), question: made("p", "", "question"), file: made("a"),
    answer: made("p", "", "answer"), verdict: made("p"), details: made("details"), steps: made("div"), count: made("summary") };
  row.details.append(row.count, row.steps);
  row.item.append(row.level, " ", row.file, row.question, row.answer, row.verdict, row.details);
  return row;
}

function show(row, data) {
  const { task_id: task, Level: level, question } = data.question;
  row.item.dataset.task = task;
  say(row.level, `${task}${level ? `, level ${level}` : ""}`);
  say(row.question, question);
  row.file.hidden = !data.file;
  say(row.file, data.file ?? "");
  row.file.href = `/page/files/${encodeURIComponent(task)}`;
  row.file.download = data.file ?? "";
  say(row.answer, data.answer ?? "");
  say(row.verdict, data.steps.length || data.answer ? data.verdict : "");
  row.verdict.className = data.right === true ? "right" : data.right === false ? "wrong" : "";
  const events = data.steps.reduce((sum, step) => sum + step.events.length, 0);
  row.details.hidden = events === 0;
  say(row.count, `Steps: ${events}`);
  // What is open and read keeps its place.
  const shown = shownSteps(data.steps);
  shown.forEach((element, place) => {
    const old = row.steps.children[place];
    if (!old) row.steps.append(element);
    else if (!old.isEqualNode(element)) old.replaceWith(element);
  });
  while (row.steps.children.length > shown.length) row.steps.lastChild.remove();
  if (state.running && events && !data.answer) row.details.open = true;
}

function submissionInWords(submission) {
  if (!submission) return "";
  if (submission === "sending") return "A submission may have been received: no reply was stored.";
  if (submission.unclear !== undefined) return `A submission may have been received: ${submission.unclear}`;
  if (submission.not_accepted !== undefined) return `Not accepted: ${submission.not_accepted}`;
  const { score, correct_count: right, message } = submission.accepted;
  return `Submitted: ${score.toFixed(1)} %, ${right} right. ${message}`;
}

function update(news) {
  const isFirst = state.run === undefined;
  state = { ...state, ...news };
  say(at("problem"), news.problem ?? "");
  if (!news.rows) return;
  say(at("about"), `Questions of ${state.plan.source}, answered by ${state.plan.model}.`);
  if (news.whole) {
    const tasks = new Set(news.rows.map(row => row.question.task_id));
    for (const [task, row] of rows) {
      if (!tasks.has(task)) {
        row.item.remove();
        rows.delete(task);
      }
    }
  }
  for (const data of news.rows) {
    const task = data.question.task_id;
    if (!rows.has(task)) rows.set(task, newRow());
    const row = rows.get(task);
    show(row, data);
    if (!row.item.isConnected) at("questions").append(row.item);
  }
  const figures = Object.fromEntries(news.figures);
  const begun = state.run ? `Run ${state.run}: ${figures.answered} of ${figures.questions} answered.` : "No run yet.";
  say(at("status"), state.running ? `Running. ${begun}` : begun);
  at("start").disabled = state.running;
  at("submit").hidden = !state.can_submit || !state.run;
  at("hand-in").disabled = state.running;
  say(at("submission"), submissionInWords(state.submission));
  at("figures").replaceChildren(...(state.run ? news.figures : []).map(([name, value]) => {
    const pair = made("div");
    pair.append(made("dt", name), made("dd", value));
    return pair;
  }));
  if (isFirst) {
    at("username").value = state.username ?? "";
    at("code").value = state.agent_code ?? "";
  }
}

async function post(path, body) {
  say(at("reply"), "");
  const headers = { "content-type": "application/json" };
  try {
    const response = await fetch(path, { method: "POST", headers, body: JSON.stringify(body) });
    if (!response.ok) say(at("reply"), await response.text());
  } catch {
    say(at("reply"), "The program does not answer.");
  }
}

at("run").addEventListener("submit", async event => {
  event.preventDefault();
  at("start").disabled = true;
  await post("/page/run", {
    limit: at("limit").value ? Number(at("limit").value) : null,
    level: at("level").value ? Number(at("level").value) : null,
    runs: Number(at("runs").value),
    new: at("new").checked,
  });
  at("start").disabled = Boolean(state.running);
});

at("submit").addEventListener("submit", event => {
  event.preventDefault();
  const figures = Object.fromEntries(state.figures);
  at("asked").textContent = `Submit ${figures.answered} of ${figures.questions} answers as ${at("username").value}?`;
  at("sure").showModal();
});
at("no").addEventListener("click", () => at("sure").close());
at("yes").addEventListener("click", async () => {
  at("sure").close();
  at("hand-in").disabled = true;
  await post("/page/submit", {
    username: at("username").value,
    agent_code: at("code").value,
    again: at("again").checked,
  });
  at("again").checked = false;
  at("hand-in").disabled = Boolean(state.running);
});

const events = new EventSource("/page/events");
events.addEventListener("message", event => update(JSON.parse(event.data)));
events.addEventListener("error", () => say(at("status"), "The program does not answer."));
