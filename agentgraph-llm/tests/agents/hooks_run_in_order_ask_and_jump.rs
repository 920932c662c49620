//! Hooks are nodes: their order, their jumps, their questions, and what they keep.

use std::sync::Arc;

use agentgraph::prelude::*;
use agentgraph_llm::prelude::*;
use agentgraph_llm::{Hooks, LoopEnd};
use async_trait::async_trait;

use crate::support::{Log, calls, echo, results};

/// Logs each of its hooks.
struct Logs(&'static str, Log);

#[async_trait]
impl Middleware for Logs {
    fn name(&self) -> &str {
        self.0
    }

    async fn before_agent(&self, _: &mut Turn) -> agentgraph_llm::Result<Jump> {
        self.1.add(format!("{} before_agent", self.0));
        Ok(Jump::Next)
    }

    async fn before_model(&self, _: &mut Turn) -> agentgraph_llm::Result<Jump> {
        self.1.add(format!("{} before_model", self.0));
        Ok(Jump::Next)
    }

    async fn after_model(&self, _: &mut Turn) -> agentgraph_llm::Result<Jump> {
        self.1.add(format!("{} after_model", self.0));
        Ok(Jump::Next)
    }

    async fn after_agent(&self, _: &mut Turn) -> agentgraph_llm::Result<Jump> {
        self.1.add(format!("{} after_agent", self.0));
        Ok(Jump::Next)
    }
}

#[tokio::test]
async fn hooks_before_run_first_to_last_and_hooks_after_last_to_first() {
    let log = Log::default();
    let model = ScriptedModel::new([calls("echo", [1]), Reply::text("done")]);
    let agent = Agent::new(model).tool(echo("echo", &log));
    let agent =
        agent.middleware(Logs("a", log.clone())).middleware(Logs("b", log.clone())).compile().unwrap();
    agent.invoke("go").await.unwrap().into_finished().unwrap();
    let round = ["a before_model", "b before_model", "b after_model", "a after_model"];
    let expected: Vec<_> = ["a before_agent", "b before_agent"]
        .into_iter()
        .chain(round)
        .chain(["echo 1"])
        .chain(round)
        .chain(["b after_agent", "a after_agent"])
        .collect();
    assert_eq!(log.lines(), expected);
    assert!(agent.warnings().is_empty(), "{:?}", agent.warnings());
}

type HookFn = dyn Fn(&mut Turn) -> agentgraph_llm::Result<Jump> + Send + Sync;

/// A middleware of one hook.
struct One(Hooks, Box<HookFn>);

impl One {
    fn new(
        hooks: Hooks,
        hook: impl Fn(&mut Turn) -> agentgraph_llm::Result<Jump> + Send + Sync + 'static,
    ) -> Self {
        One(hooks, Box::new(hook))
    }
}

#[async_trait]
impl Middleware for One {
    fn name(&self) -> &str {
        "one"
    }

    fn hooks(&self) -> Hooks {
        self.0
    }

    async fn before_agent(&self, turn: &mut Turn) -> agentgraph_llm::Result<Jump> {
        (self.1)(turn)
    }

    async fn before_model(&self, turn: &mut Turn) -> agentgraph_llm::Result<Jump> {
        (self.1)(turn)
    }

    async fn after_model(&self, turn: &mut Turn) -> agentgraph_llm::Result<Jump> {
        (self.1)(turn)
    }
}

#[tokio::test]
async fn a_hook_that_a_middleware_does_not_have_costs_no_node() {
    let bare = Agent::new(ScriptedModel::new(["hi"])).compile().unwrap();
    assert_eq!(bare.nodes().collect::<Vec<_>>(), ["model", "tools"]);
    let one = One::new(Hooks::NONE.after_model(), |_| Ok(Jump::Next));
    let agent = Agent::new(ScriptedModel::new(["hi"])).middleware(one).compile().unwrap();
    assert_eq!(agent.nodes().collect::<Vec<_>>(), ["model", "one.after_model", "tools"]);
}

#[tokio::test]
async fn a_hook_jumps_to_the_end_the_model_and_the_tools() {
    let model = ScriptedModel::new([Reply::text("not asked")]);
    let stop = One::new(Hooks::NONE.before_agent(), |_| Ok(Jump::End));
    let agent = Agent::new(model.clone()).middleware(stop).compile().unwrap();
    let answer = agent.invoke("go").await.unwrap().into_finished().unwrap();
    assert_eq!((answer.end(), model.remaining()), (LoopEnd::Jumped, 1));

    // An answer that is too short is asked for again.
    let model = ScriptedModel::new([Reply::text("no"), Reply::text("no, thank you")]);
    let longer = One::new(Hooks::NONE.after_model(), |turn| {
        let short = turn.messages().last().is_some_and(|last| last.text().len() < 5);
        if short {
            turn.push(Message::user("longer, please"));
        }
        Ok(if short { Jump::Model } else { Jump::Next })
    });
    let agent = Agent::new(model).middleware(longer).compile().unwrap();
    let answer = agent.invoke("tea?").await.unwrap().into_finished().unwrap();
    assert_eq!((answer.text(), answer.state.messages.len()), ("no, thank you".to_owned(), 4));

    // Before the model, the calls that a person wrote into the conversation are run.
    let log = Log::default();
    let seeded = One::new(Hooks::NONE.before_agent(), |turn| {
        let call = agentgraph_llm::ToolUse::new("seed", "echo", serde_json::json!({"n": 5}));
        turn.push(Message::new(Role::Assistant, [call]));
        Ok(Jump::Tools)
    });
    let model = ScriptedModel::new([Reply::text("five")]);
    let agent = Agent::new(model).tool(echo("echo", &log)).middleware(seeded).compile().unwrap();
    let answer = agent.invoke("go").await.unwrap().into_finished().unwrap();
    assert_eq!(
        (answer.text(), results(&answer.state.messages)),
        ("five".to_owned(), vec!["seed: 5".to_owned()])
    );
}

#[tokio::test]
async fn a_middleware_that_always_jumps_to_the_model_meets_the_limit() {
    let again = One::new(Hooks::NONE.after_model(), |_| Ok(Jump::Model));
    let model = ScriptedModel::from_fn(|_| Reply::text("hm"));
    let agent = Agent::new(model).middleware(again).max_rounds(4).compile().unwrap();
    let answer = agent.invoke("go").await.unwrap().into_finished().unwrap();
    assert_eq!((answer.end(), answer.rounds()), (LoopEnd::LimitReached, 4));
}

#[tokio::test]
async fn an_answer_to_a_hook_does_not_pay_the_model_again() {
    let log = Log::default();
    let approve = One::new(Hooks::NONE.after_model(), |turn| {
        let calls: Vec<_> = turn.open_calls().into_iter().cloned().collect();
        // All questions are asked before the first error is returned.
        let answers: Vec<_> =
            calls.iter().map(|call| turn.interrupt_as::<bool>(&call.id, &call.input)).collect();
        for (call, answer) in calls.iter().zip(answers) {
            if !answer? {
                turn.answer(ToolResult::error(&call.id, "a person said no"));
            }
        }
        Ok(Jump::Next)
    });
    let model = ScriptedModel::new([calls("echo", [1, 2, 3]), Reply::text("done")]);
    let agent = Agent::new(model.clone()).tool(echo("echo", &log)).middleware(approve).compile().unwrap();
    let agent = agent.checkpointer(MemorySaver::new());
    let asked = agent.invoke("go").thread("t").await.unwrap();
    let keys: Vec<_> = asked.interrupts().iter().map(|open| open.key.clone().unwrap()).collect();
    assert_eq!(keys, ["call-1", "call-2", "call-3"], "an approval is named by its call");
    assert_eq!((model.requests().len(), log.len()), (1, 0));

    let answers =
        asked.interrupts().iter().map(|open| (open.id.unwrap(), open.key.as_deref() != Some("call-2")));
    let answer = agent.resume_many(answers).thread("t").await.unwrap().into_finished().unwrap();
    assert_eq!(model.requests().len(), 2, "the first answer was paid once");
    assert_eq!(log.lines(), ["echo 1", "echo 3"]);
    assert_eq!(answer.text(), "done");
    let sent = results(&model.requests()[1].messages);
    assert_eq!(sent, ["call-1: 1", "call-2: a person said no", "call-3: 3"], "in the order of the calls");
}

#[tokio::test]
async fn an_answered_answer_goes_back_to_the_model_and_an_edited_call_is_what_runs() {
    let log = Log::default();
    let edit = One::new(Hooks::NONE.after_model(), |turn| {
        let Some(call) = turn.open_calls().first().copied().cloned() else { return Ok(Jump::Next) };
        turn.edit_call(agentgraph_llm::ToolUse::new(
            call.id,
            call.name,
            RawJson::parse_text(r#"{"n": 7}"#).unwrap(),
        ));
        Ok(Jump::Next)
    });
    let model = ScriptedModel::new([calls("echo", [1]), Reply::text("done")]);
    let agent = Agent::new(model.clone()).tool(echo("echo", &log)).middleware(edit).compile().unwrap();
    agent.invoke("go").await.unwrap().into_finished().unwrap();
    assert_eq!(log.lines(), ["echo 7"]);
    let sent = model.requests()[1].messages[1].tool_uses().next().unwrap().input.text().to_owned();
    assert_eq!(sent, r#"{"n": 7}"#, "the model sees what was run");

    let reject = One::new(Hooks::NONE.after_model(), |turn| {
        let open: Vec<_> = turn.open_calls().iter().map(|call| call.id.clone()).collect();
        open.iter().for_each(|id| turn.answer(ToolResult::error(id, "no")));
        Ok(Jump::Next)
    });
    let model = ScriptedModel::new([calls("echo", [1]), Reply::text("as you like")]);
    let agent = Agent::new(model).tool(echo("echo", &log)).middleware(reject).compile().unwrap();
    let answer = agent.invoke("go").await.unwrap().into_finished().unwrap();
    assert_eq!((answer.text(), log.len()), ("as you like".to_owned(), 1));
}

#[tokio::test]
async fn slots_live_as_long_as_the_thread_or_the_run() {
    let seen = Log::default();
    let log = seen.clone();
    let count = One::new(Hooks::NONE.before_model(), move |turn| {
        let thread = turn.slot::<u32>().get()?.unwrap_or_default() + 1;
        turn.slot().set(&thread)?;
        let run = turn.run_slot::<u32>().get()?.unwrap_or_default() + 1;
        turn.run_slot().set(&run)?;
        log.add(format!("{thread} {run}"));
        Ok(Jump::Next)
    });
    let model = ScriptedModel::from_fn(|request| match request.messages.last().unwrap().results().next() {
        None => calls("echo", [1]),
        Some(_) => Reply::text("done"),
    });
    let agent = Agent::new(model).tool(echo("echo", &Log::default())).middleware(count).compile().unwrap();
    let agent = agent.checkpointer(MemorySaver::new());
    for _ in 0..2 {
        agent.invoke("go").thread("t").await.unwrap().into_finished().unwrap();
    }
    assert_eq!(seen.lines(), ["1 1", "2 2", "3 1", "4 2"]);
}

#[tokio::test]
async fn a_hook_replaces_the_conversation() {
    let forget = One::new(Hooks::NONE.before_model(), |turn| {
        if turn.messages().len() > 2 {
            let last = turn.messages().last().cloned();
            turn.set_messages([Message::user("summary").with_id("s")].into_iter().chain(last));
        }
        Ok(Jump::Next)
    });
    let model = ScriptedModel::from_fn(|request| Reply::text(request.messages[0].text()));
    let agent = Agent::new(model).middleware(forget).compile().unwrap().checkpointer(MemorySaver::new());
    agent.invoke("first").thread("t").await.unwrap().into_finished().unwrap();
    let answer = agent.invoke("second").thread("t").await.unwrap().into_finished().unwrap();
    assert_eq!(answer.text(), "summary");
    let texts: Vec<_> = answer.state.messages.iter().map(Message::text).collect();
    assert_eq!(texts, ["summary", "second", "summary"]);
}

#[test]
fn two_middleware_of_one_name_are_refused() {
    let one = || One::new(Hooks::NONE, |_| Ok(Jump::Next));
    let agent = Agent::new(ScriptedModel::new(["hi"])).middleware(one()).middleware(Arc::new(one()));
    assert_eq!(agent.compile().unwrap_err().code(), agentgraph_llm::Code::Config);
}

#[tokio::test]
async fn the_end_hooks_run_once_although_some_calls_return_directly() {
    let log = Log::default();
    let direct = FnTool::new("direct", "", async |_: crate::support::Number| {
        Ok::<_, ToolError>(ToolOutput::text("now").returned_directly())
    });
    let both = calls("direct", [1]).and_tool_call("echo", serde_json::json!({"n": 2}));
    let model = ScriptedModel::new([both, Reply::text("done")]);
    let agent =
        Agent::new(model).tool(direct).tool(echo("echo", &Log::default())).middleware(Logs("a", log.clone()));
    let answer = agent.compile().unwrap().invoke("go").await.unwrap().into_finished().unwrap();
    assert_eq!(answer.text(), "done");
    assert_eq!(log.lines().iter().filter(|line| line.ends_with("after_agent")).count(), 1);
    assert_eq!(log.lines().last().unwrap(), "a after_agent");
}
