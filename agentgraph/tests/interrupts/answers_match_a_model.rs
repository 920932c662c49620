//! Random tasks ask random questions, which change from execution to execution, and are compared with a small
//! model of the rules for answers. Nodes refuse answers. Runs are answered in part, edited and dropped
//! half-way, and their store fails. In every case an answer is delivered only to a question with an equal key
//! and an equal value, no id is used for two questions, and no refused answer is delivered again.
//!
//! `ANSWER_CASES` sets the number of tasks.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::future::IntoFuture;
use std::sync::{Arc, Mutex};

use agentgraph::host::{Host, TaskCall, TaskReply};
use agentgraph::prelude::*;
use agentgraph::run::InterruptKey;
use agentgraph::{BoxError, Durability, Interrupt, InterruptId};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};

use crate::common::poll::{at_most, pending_for};
use crate::common::saver::NotingSaver;
use crate::common::words::{Words, WordsUpdate};

/// One question of a task.
#[derive(Clone, Debug)]
struct Question {
    key: Option<u8>,
    value: u8,
    any_value: bool,
}

/// What a task does in one of its executions.
#[derive(Clone, Debug)]
struct Execution {
    asks: Vec<Question>,
    /// Whether the task continues after a question without an answer, and returns the interrupt at its end.
    goes_on: bool,
    refusal: Option<Refusal>,
}

/// Refuses an answer that the execution has got.
#[derive(Clone, Copy, Debug)]
struct Refusal {
    /// After this many questions.
    after: usize,
    /// The answer to this key; otherwise the last one.
    key: Option<u8>,
    /// Returns an update, as if nothing had been refused.
    hides: bool,
}

/// The next step of the driver.
#[derive(Clone, Copy, Debug)]
enum Move {
    /// Answers the first open question, and every other one whose bit is set.
    Answer(u8),
    Proceed,
    /// Updates the state without a change, which gives the open questions new ids.
    Edit,
}

/// The disturbance of a call.
#[derive(Clone, Copy, Debug)]
enum Trouble {
    None,
    /// Drops the call after this many polls.
    Drop(u32),
    /// Fails the writes of the store after this many.
    FailWrites(u32),
}

#[derive(Clone, Debug)]
struct Case {
    kind: usize,
    durability: usize,
    executions: Vec<Execution>,
    moves: Vec<(Move, Trouble)>,
}

fn cases() -> impl Strategy<Value = Case> {
    let key = prop_oneof![3 => Just(None), 2 => (0..3_u8).prop_map(Some)];
    let value = prop_oneof![3 => Just(0_u8), 1 => 0..3_u8];
    let question = (key, value, prop::bool::weighted(0.2)).prop_map(|(key, value, any)| Question {
        key,
        value,
        any_value: any && key.is_some(),
    });
    // A key that is asked twice in one attempt is an error, which another test covers.
    let asks = vec(question, 0..5).prop_map(|mut asks| {
        let mut seen = HashSet::new();
        asks.retain(|ask| ask.key.is_none_or(|key| seen.insert(key)));
        asks
    });
    let refusal = (0..5_usize, prop::option::weighted(0.3, 0..3_u8), any::<bool>())
        .prop_map(|(after, key, hides)| Refusal { after, key, hides });
    let execution = (asks, prop::bool::weighted(0.7), prop::option::weighted(0.4, refusal))
        .prop_map(|(asks, goes_on, refusal)| Execution { asks, goes_on, refusal });
    let step = prop_oneof![
        6 => any::<u8>().prop_map(Move::Answer),
        1 => Just(Move::Proceed),
        1 => Just(Move::Edit),
    ];
    let trouble = prop_oneof![
        4 => Just(Trouble::None),
        2 => (1..25_u32).prop_map(Trouble::Drop),
        1 => (0..3_u32).prop_map(Trouble::FailWrites),
    ];
    (0..KINDS.len(), 0..3_usize, vec(execution, 1..6), vec((step, trouble), 1..14))
        .prop_map(|(kind, durability, executions, moves)| Case { kind, durability, executions, moves })
}

/// The slot of a question in its task: its key, or its position among the questions without keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Spot {
    Key(u8),
    Nth(usize),
}

/// The question that was asked last at a spot.
#[derive(Clone, Debug, PartialEq)]
struct Live {
    value: u8,
    answer: Option<String>,
    /// Whether it is asked again because an answer to it was refused.
    refused: bool,
}

/// The model of a task: the question that was asked last at each spot, and its answer.
#[derive(Clone, Debug, Default, PartialEq)]
struct Model {
    live: BTreeMap<Spot, Live>,
}

impl Model {
    /// Returns each question that waits for an answer: its key, its value, and whether an answer was refused.
    fn open(&self) -> Vec<(Option<u8>, u8, bool)> {
        let open = self.live.iter().filter(|(_, live)| live.answer.is_none());
        let mut open: Vec<_> = open.map(|(spot, live)| (spot.key(), live.value, live.refused)).collect();
        open.sort_unstable();
        open
    }

    /// Runs the task. Returns the answers to its questions, or `None` if it waits.
    fn run(&mut self, execution: &Execution) -> Option<Vec<String>> {
        let mut nth = 0;
        let mut in_line = true;
        let mut waits = false;
        let mut answers = Vec::new();
        let mut taken = Vec::new();
        for (at, ask) in execution.asks.iter().enumerate() {
            if self.refuse(execution.refusal_after(at), &taken) {
                return None;
            }
            let spot = match ask.key {
                Some(key) => Spot::Key(key),
                // A question without a key is not asked while an earlier one of them is open.
                None if !in_line => continue,
                None => Spot::Nth(nth),
            };
            nth += usize::from(ask.key.is_none());
            let answer = match self.live.get(&spot) {
                Some(live) if ask.any_value || live.value == ask.value => live.answer.clone(),
                _ => None,
            };
            if let Some(answer) = answer {
                answers.push(answer);
                taken.push(spot);
                continue;
            }
            // A question that is still open stays as it is.
            let again = self.live.get(&spot).filter(|live| live.answer.is_none() && live.value == ask.value);
            let again = again.cloned();
            if again.is_none() {
                self.void_from(spot);
            }
            let new = Live { value: ask.value, answer: None, refused: false };
            self.live.insert(spot, again.unwrap_or(new));
            (waits, in_line) = (true, in_line && ask.key.is_some());
            if !execution.goes_on {
                return None;
            }
        }
        if self.refuse(execution.refusal_after(execution.asks.len()), &taken) {
            return None;
        }
        (!waits).then_some(answers)
    }

    /// Voids the answers that a change at a spot voids.
    fn void_from(&mut self, spot: Spot) {
        if self.live.contains_key(&spot) {
            self.live
                .retain(|other, _| !matches!((spot, other), (Spot::Nth(n), Spot::Nth(other)) if *other >= n));
        }
    }

    /// Refuses an answer that the attempt took: the same question is open again, and nothing of the attempt
    /// after that counts. Returns false if there is no such answer.
    fn refuse(&mut self, refusal: Option<Refusal>, taken: &[Spot]) -> bool {
        let spot = refusal.and_then(|refusal| refused_of(refusal, taken, |spot| spot.key()));
        let Some(spot) = spot.copied() else { return false };
        let value = self.live[&spot].value;
        self.void_from(spot);
        self.live.insert(spot, Live { value, answer: None, refused: true });
        true
    }

    fn answer(&mut self, key: Option<u8>, value: u8, answer: &str) {
        let open = self.live.iter_mut().filter(|(_, live)| live.answer.is_none());
        let mut asked = open.filter(|(spot, live)| spot.key() == key && live.value == value);
        asked.next().unwrap().1.answer = Some(answer.to_owned());
    }
}

impl Spot {
    fn key(self) -> Option<u8> {
        match self {
            Spot::Key(key) => Some(key),
            Spot::Nth(_) => None,
        }
    }
}

/// The answer that a refusal means, among those that an execution has got.
fn refused_of<T>(refusal: Refusal, taken: &[T], key_of: impl Fn(&T) -> Option<u8>) -> Option<&T> {
    match refusal.key {
        None => taken.last(),
        Some(key) => taken.iter().find(|one| key_of(one) == Some(key)),
    }
}

impl Execution {
    fn refusal_after(&self, asked: usize) -> Option<Refusal> {
        self.refusal.filter(|refusal| refusal.after == asked)
    }
}

/// The executions of the task, and the answers that each of them got.
#[derive(Clone, Default)]
struct Script {
    executions: Arc<Vec<Execution>>,
    seen: Arc<Mutex<Vec<Vec<Delivered>>>>,
}

/// An answer that the task got, and the question that it asked.
#[derive(Clone, Debug)]
struct Delivered {
    asked: Question,
    answer: String,
    refused: bool,
}

fn value_of(value: u8) -> Value {
    json!({ "question": value, "price": f64::from(value) * 0.1 })
}

impl Script {
    fn execution(&self, n: usize) -> &Execution {
        &self.executions[n.min(self.executions.len() - 1)]
    }

    async fn run(self, ctx: Ctx) -> Result<WordsUpdate> {
        let n = {
            let mut seen = self.seen.lock().unwrap();
            seen.push(Vec::new());
            seen.len() - 1
        };
        let mut waits = None;
        let mut answers = Vec::new();
        let execution = self.execution(n);
        for (at, asked) in execution.asks.iter().enumerate() {
            pending_for(1).await;
            if let Some(end) = self.refuse(&ctx, n, execution.refusal_after(at)) {
                return end;
            }
            let value = value_of(asked.value);
            let answer = match asked.key {
                None => ctx.interrupt::<String>(value),
                Some(key) if asked.any_value => {
                    ctx.interrupt_as(InterruptKey::new(key.to_string()).for_any_value(), value)
                }
                Some(key) => ctx.interrupt_as(key.to_string(), value),
            };
            match answer {
                Ok(answer) => {
                    self.seen.lock().unwrap()[n].push(Delivered {
                        asked: asked.clone(),
                        answer: answer.clone(),
                        refused: false,
                    });
                    answers.push(answer);
                }
                Err(interrupted) if execution.goes_on => waits = Some(interrupted),
                Err(interrupted) => return Err(interrupted.into()),
            }
        }
        if let Some(end) = self.refuse(&ctx, n, execution.refusal_after(execution.asks.len())) {
            return end;
        }
        match waits {
            Some(interrupted) => Err(interrupted.into()),
            None => Ok(Words::update().seen(answers)),
        }
    }

    /// Refuses an answer that the execution has got. Returns its end, if there is one.
    fn refuse(&self, ctx: &Ctx, n: usize, refusal: Option<Refusal>) -> Option<Result<WordsUpdate>> {
        let refusal = refusal?;
        let mut seen = self.seen.lock().unwrap();
        let refused = refused_of(refusal, &seen[n], |one| one.asked.key)?.answer.clone();
        seen[n].iter_mut().find(|one| one.answer == refused).unwrap().refused = true;
        let error = match refusal.key {
            None => ctx.refuse("refused"),
            Some(key) => ctx.refuse_as(key.to_string(), "refused"),
        };
        // A node that goes on has no effect any more.
        let _ = ctx.interrupt::<String>(value_of(7));
        Some(if refusal.hides { Ok(Words::update().seen([refused])) } else { Err(error.into()) })
    }

    fn graph(&self) -> StateGraph<Words> {
        let script = self.clone();
        StateGraph::new().node("asks", move |ctx: Ctx| script.clone().run(ctx)).edge(START, "asks")
    }
}

/// A host that runs each task by a graph of its own. The call and the reply pass through JSON text.
struct JsonHost(CompiledGraph<Words>);

#[async_trait::async_trait]
impl Host for JsonHost {
    async fn run(&self, call: TaskCall) -> Result<TaskReply, BoxError> {
        let call: TaskCall = serde_json::from_str(&serde_json::to_string(&call)?)?;
        Ok(serde_json::from_str(&serde_json::to_string(&self.0.run_task(call).await?)?)?)
    }
}

const KINDS: [&str; 5] = ["plain", "eager", "inside", "eager inside", "host"];

fn graph_of(kind: &str, script: &Script) -> CompiledGraph<Words> {
    let inside = |graph: StateGraph<Words>| {
        StateGraph::<Words>::new().node("child", graph.compile().unwrap()).edge(START, "child")
    };
    match kind {
        "plain" => script.graph().compile().unwrap(),
        "eager" => script.graph().eager().compile().unwrap(),
        "inside" => inside(script.graph()).compile().unwrap(),
        "eager inside" => inside(script.graph().eager()).eager().compile().unwrap(),
        _ => script.graph().compile().unwrap().host(JsonHost(script.graph().compile().unwrap())),
    }
}

/// Returns the key and the value of a question.
fn asked_by(interrupt: &Interrupt) -> (Option<u8>, u8) {
    let key = interrupt.key.as_ref().map(|key| key.parse().unwrap());
    let value = interrupt.value["question"].as_u64().unwrap();
    assert_eq!(interrupt.value, value_of(value as u8));
    (key, value as u8)
}

/// One case under way.
struct Play {
    case: Case,
    script: Script,
    graph: CompiledGraph<Words>,
    saver: NotingSaver,
    /// Every state that the thread may be in. A call that did not end leaves more than one.
    models: Vec<Model>,
    /// The question of each id.
    ids: HashMap<InterruptId, (Option<u8>, u8)>,
    /// The question of each answer.
    given: HashMap<String, (Option<u8>, u8)>,
    /// The answers that were refused in a call that ended.
    void: HashSet<String>,
}

impl Play {
    fn new(case: Case) -> Self {
        let script = Script { executions: Arc::new(case.executions.clone()), seen: Arc::default() };
        let saver = NotingSaver::memory();
        let graph = graph_of(KINDS[case.kind], &script).checkpointer(saver.clone());
        Play {
            case,
            script,
            graph,
            saver,
            models: vec![Model::default()],
            ids: HashMap::new(),
            given: HashMap::new(),
            void: HashSet::new(),
        }
    }

    async fn open(&self) -> Vec<Interrupt> {
        self.graph.state("t").await.unwrap().map(|state| state.interrupts).unwrap_or_default()
    }

    /// Whether the run has ended or was never stored.
    async fn is_over(&self) -> bool {
        self.graph.state("t").await.unwrap().is_none_or(|state| state.next.is_empty())
    }

    fn executed(&self) -> usize {
        self.script.seen.lock().unwrap().len()
    }

    async fn play(mut self) {
        let durability = [Durability::Sync, Durability::Async, Durability::Exit][self.case.durability];
        let graph = self.graph.clone();
        let invoked = graph.invoke(Words::update()).thread("t").durability(durability);
        let mut end = self.call(invoked.into_future(), &[], Trouble::None).await;
        let mut edited = false;
        for (step, trouble) in self.case.moves.clone() {
            self.check(end.as_ref(), edited).await;
            edited = matches!(step, Move::Edit);
            if self.is_over().await {
                return;
            }
            let open = self.open().await;
            end = match step {
                Move::Edit => {
                    self.saver.fail_writes(0);
                    // Tasks inside a subgraph keep their ids.
                    graph.update_state("t").await.unwrap();
                    None
                }
                Move::Answer(which) if !open.is_empty() => {
                    let chosen = open.iter().enumerate().filter(|(at, _)| *at == 0 || which >> at & 1 == 1);
                    let answers: Vec<_> = chosen.map(|(_, one)| self.answer_to(one)).collect();
                    let run = graph.resume_many(answers.clone()).thread("t").durability(durability);
                    self.call(run.into_future(), &answers, trouble).await
                }
                Move::Answer(_) | Move::Proceed => {
                    let run = graph.proceed().thread("t").durability(durability);
                    self.call(run.into_future(), &[], trouble).await
                }
            };
        }
        self.check(end.as_ref(), edited).await;
    }

    fn answer_to(&mut self, interrupt: &Interrupt) -> (InterruptId, String) {
        let answer = format!("answer {}", self.given.len());
        self.given.insert(answer.clone(), asked_by(interrupt));
        (interrupt.id.unwrap(), answer)
    }

    /// Makes a call, with trouble if there is any, and updates the models. Returns `None` if it did not end.
    async fn call(
        &mut self,
        run: impl Future<Output = Result<Outcome<Words>, agentgraph::Error>>,
        answers: &[(InterruptId, String)],
        trouble: Trouble,
    ) -> Option<Outcome<Words>> {
        let executed = self.executed();
        let polls = match trouble {
            Trouble::Drop(polls) => polls,
            _ => u32::MAX,
        };
        if let Trouble::FailWrites(others) = trouble {
            self.saver.fail_writes_after(others);
        }
        let ended = at_most(Box::pin(run), polls).await;
        self.saver.fail_writes(0);
        let ended = match ended {
            Some(Err(error)) => {
                assert_eq!(error.code(), agentgraph::Code::Store, "{error}");
                None
            }
            ended => ended.map(Result::unwrap),
        };
        let ran = self.executed() - executed;
        assert!(ran <= 1, "the task ran more than once in a call");
        for Delivered { answer, refused, .. } in self.script.seen.lock().unwrap()[executed..].iter().flatten()
        {
            assert!(!self.void.contains(answer), "{answer} was refused, and is delivered again");
            if *refused && ended.is_some() {
                self.void.insert(answer.clone());
            }
        }
        let mut before = Vec::new();
        let mut after = Vec::new();
        for model in std::mem::take(&mut self.models) {
            let mut answered = model.clone();
            for (_, answer) in answers {
                let (key, value) = self.given[answer];
                answered.answer(key, value, answer);
            }
            before.extend([model, answered.clone()]);
            if ran == 1 {
                answered.run(self.script.execution(executed));
            }
            after.push(answered);
        }
        self.models = after;
        if ended.is_none() {
            self.models.extend(before);
        }
        ended
    }

    /// Asserts that a model allows the open questions and that each answer was delivered to its own question.
    async fn check(&mut self, ended: Option<&Outcome<Words>>, edited: bool) {
        let open = self.open().await;
        if let Some(Outcome::Interrupted { interrupts, .. }) = ended {
            assert_eq!(*interrupts, open);
        }
        if ended.is_some() || edited {
            let mut waiting = Vec::new();
            for thread in self.graph.waiting().await.unwrap() {
                waiting.extend(thread.interrupts);
            }
            waiting.sort_by_key(|one| one.id);
            let mut open = open.clone();
            open.sort_by_key(|one| one.id);
            assert_eq!(waiting, open);
        }
        let is_refused = |one: &Interrupt| {
            one.replaces.as_ref().is_some_and(|old| old.reason.as_deref() == Some("refused"))
        };
        let mut asked: Vec<_> =
            open.iter().map(|one| (asked_by(one).0, asked_by(one).1, is_refused(one))).collect();
        asked.sort_unstable();
        self.models.retain(|model| model.open() == asked);
        assert!(!self.models.is_empty(), "{asked:?} is open, which no model allows");
        for one in &open {
            let question = asked_by(one);
            let known = *self.ids.entry(one.id.unwrap()).or_insert(question);
            assert_eq!(known, question, "an id was given to another question");
        }
        for Delivered { asked, answer, .. } in self.script.seen.lock().unwrap().iter().flatten() {
            let (key, value) = self.given[answer];
            assert_eq!(key, asked.key, "an answer was delivered to another key");
            assert!(asked.any_value || value == asked.value, "{answer} to {value} delivered to {asked:?}");
        }
    }
}

#[test]
fn answers_are_delivered_only_to_their_own_questions() {
    let count = std::env::var("ANSWER_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(500);
    let mut runner = TestRunner::new(Config { cases: count, failure_persistence: None, ..Config::default() });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runner
        .run(&cases(), |case| {
            runtime.block_on(Play::new(case).play());
            Ok(())
        })
        .unwrap();
}
