//! [`FaultyHost`]: a host that is correct except for one fault.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use agentgraph::checkpoint::TaskId;
use agentgraph::host::{FarSide, Host, TaskCall, TaskReply};
use agentgraph::{BoxError, MemorySaver};
use agentgraph_host_conformance::{self as conformance, Ability, HostedRuns, Notes};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::any_value::AnyValue;
use super::workers::Workers;

/// A fault of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostFault {
    MixesReplies,
    FindsRepliesByNode,
    KeepsStatesByThread,
    RunsOneAtATime,
    TakesBytesForText,
    LimitsMessages,
    LosesLimits,
    RetriesItself,
    FailsForItsNodes,
    DiesOfPanics,
    LosesCodes,
    LosesFailures,
    ForgetsAnswers,
    FailsOfRefusals,
    FailsOfRefusedAnswers,
    /// Reports an answer that a node refused as a question without one.
    LosesReasons,
    LosesSessions,
    MakesIds,
    MakesIdsOfNodes,
    LosesSupersteps,
    LosesPaths,
    LosesExits,
    LosesEdits,
    LosesGraphs,
    LosesAddedGraphs,
    LosesKeptOutputs,
    LosesSpending,
    LosesDrains,
    ForgetsSteps,
    HasOneContext,
}

/// A host that carries calls and replies as JSON to another value of the graph.
pub struct FaultyHost {
    graph: String,
    workers: Arc<Workers>,
    fault: Option<HostFault>,
    memory: Arc<Memory>,
}

/// What some faults need to remember.
#[derive(Default)]
struct Memory {
    /// States by thread, and replies by what they are wrongly found by.
    states: Mutex<HashMap<String, (Value, Value)>>,
    replies: Mutex<HashMap<String, Value>>,
    thread: Mutex<Option<Option<String>>>,
    turn: tokio::sync::Mutex<()>,
    ids: Mutex<u128>,
}

/// The runs of the kit on such a host.
pub fn runs(notes: &Notes, fault: Option<HostFault>) -> HostedRuns {
    let workers = Workers::new(notes);
    let memory = Arc::<Memory>::default();
    let host = move |graph: &str| FaultyHost {
        graph: graph.to_owned(),
        workers: Arc::clone(&workers),
        fault,
        memory: Arc::clone(&memory),
    };
    HostedRuns::new(notes, host).with([Ability::DurableSteps, Ability::Contexts])
}

#[async_trait::async_trait]
impl Host for FaultyHost {
    async fn run(&self, call: TaskCall) -> Result<TaskReply, BoxError> {
        let _turn = match self.has(HostFault::RunsOneAtATime) {
            true => Some(self.memory.turn.lock().await),
            false => None,
        };
        let (task, attempt) = (call.task, call.attempt);
        let mut reply = self.carry(&call).await?;
        if self.has(HostFault::RetriesItself) && is_kind(&reply, "Again") {
            reply = self.carry(&call).await?;
        }
        self.change_reply(&call, &mut reply)?;
        // A host with one of these faults does not know that the reply is not that of the task.
        reply["task"] = json!(task);
        reply["attempt"] = json!(attempt);
        Ok(serde_json::from_value(reply)?)
    }
}

impl FaultyHost {
    fn has(&self, fault: HostFault) -> bool {
        self.fault == Some(fault)
    }

    async fn carry(&self, call: &TaskCall) -> Result<Value, BoxError> {
        let mut sent = serde_json::to_value(call)?;
        self.change_call(call, &mut sent)?;
        let call: TaskCall = serde_json::from_value(sent)?;
        let side = self.side(&call);
        let reply = self.workers.run_with(&self.graph, call, side).await?;
        Ok(serde_json::to_value(reply)?)
    }

    fn side(&self, call: &TaskCall) -> FarSide {
        let thread = call.thread.as_deref();
        match self.fault {
            Some(HostFault::ForgetsSteps) => FarSide::new().once_in(Arc::new(MemorySaver::new())),
            Some(HostFault::HasOneContext) => {
                let mut first = self.memory.thread.lock().unwrap();
                let first = first.get_or_insert_with(|| thread.map(str::to_owned));
                FarSide::new().context(conformance::context_of(first.as_deref()))
            }
            _ => self.workers.side(thread),
        }
    }

    fn change_call(&self, call: &TaskCall, sent: &mut Value) -> Result<(), BoxError> {
        let Some(fault) = self.fault else { return Ok(()) };
        match fault {
            HostFault::KeepsStatesByThread => {
                let place = format!("{:?} {}", call.thread, call.namespace);
                let mut states = self.memory.states.lock().unwrap();
                let of_call = || (sent["state"].clone(), sent["state_hash"].clone());
                let (state, hash) = states.entry(place).or_insert_with(of_call).clone();
                (sent["state"], sent["state_hash"]) = (state, hash);
            }
            HostFault::TakesBytesForText => {
                let text = String::from_utf8_lossy(&bytes_of(&sent["state"])).into_owned();
                sent["state_hash"] = json!(Sha256::digest(text.as_bytes()).to_vec());
                sent["state"] = json!(text.as_bytes());
            }
            HostFault::LimitsMessages if call.state().is_some_and(|state| state.len() > 1 << 20) => {
                return Err("the message is too large".into());
            }
            HostFault::LosesLimits => change_details(sent, |details| details.remove("limits")),
            HostFault::LosesFailures => change_details(sent, |details| details.remove("failure")),
            HostFault::ForgetsAnswers => change_details(sent, |details| details.remove("asked")),
            HostFault::LosesGraphs => change_details(sent, |details| details.remove("edits")),
            HostFault::LosesAddedGraphs => change_details(sent, |details| details.remove("added")),
            HostFault::LosesKeptOutputs => change_details(sent, |details| details.remove("kept")),
            HostFault::MakesIds => {
                let mut ids = self.memory.ids.lock().unwrap();
                *ids += 1;
                sent["task"] = json!(TaskId::from_u128(*ids));
            }
            HostFault::MakesIdsOfNodes => {
                let digest = Sha256::digest(format!("{} {}", call.run, call.node));
                sent["task"] = json!(TaskId::from_u128(u128::from_be_bytes(digest[..16].try_into()?)));
            }
            HostFault::LosesSupersteps => sent["step"] = json!(1),
            HostFault::LosesPaths => sent["path"] = json!([]),
            _ => {}
        }
        Ok(())
    }

    fn change_reply(&self, call: &TaskCall, reply: &mut Value) -> Result<(), BoxError> {
        let Some(fault) = self.fault else { return Ok(()) };
        match fault {
            HostFault::MixesReplies => self.reply_of(format!("{} {}", call.run, call.step), reply),
            HostFault::FindsRepliesByNode => {
                let TaskCall { run, namespace, node, attempt, .. } = call;
                self.reply_of(format!("{run} {namespace} {node} {attempt}"), reply);
            }
            HostFault::FailsForItsNodes if is_kind(reply, "Failed") => {
                return Err("the task failed".into());
            }
            HostFault::FailsOfRefusals if is_kind(reply, "Refused") => {
                return Err("the answer was refused".into());
            }
            HostFault::FailsOfRefusedAnswers if is_kind(reply, "RefusesAnswers") => {
                return Err("an answer was refused".into());
            }
            HostFault::LosesReasons if is_kind(reply, "RefusesAnswers") => {
                let AnyValue::List(answers) = AnyValue::read(&bytes_of(&reply["reply"]["RefusesAnswers"]))
                else {
                    return Err("no list".into());
                };
                let questions = answers.into_iter().filter_map(|answer| match answer {
                    AnyValue::List(parts) => parts.into_iter().next(),
                    _ => None,
                });
                reply["reply"] = json!({ "Waits": AnyValue::List(questions.collect()).write() });
            }
            HostFault::DiesOfPanics if code(reply).as_deref() == Some("E_NODE_PANICKED") => {
                return Err("the worker died".into());
            }
            HostFault::LosesCodes => {
                change_part(reply, "Failed", |failure| {
                    if let Some(code) = failure.entry("code") {
                        *code = AnyValue::Text("E_NODE_FAILED".to_owned());
                    }
                });
            }
            HostFault::LosesEdits => change_part(reply, "Done", |step| step.remove("edits")),
            HostFault::LosesExits if is_kind(reply, "Leaves") => {
                let step = AnyValue::Map(Vec::new()).write();
                reply["reply"] = json!({ "Done": step });
            }
            HostFault::LosesSessions => reply["sessions"] = json!([]),
            HostFault::LosesSpending => reply["spent"] = json!([]),
            HostFault::LosesDrains => reply["drains"] = json!(false),
            _ => {}
        }
        Ok(())
    }

    /// The first reply that was found under a key, in place of another one.
    fn reply_of(&self, key: String, reply: &mut Value) {
        let mut replies = self.memory.replies.lock().unwrap();
        reply["reply"] = replies.entry(key).or_insert_with(|| reply["reply"].clone()).clone();
    }
}

fn is_kind(reply: &Value, kind: &str) -> bool {
    reply["reply"].get(kind).is_some()
}

fn bytes_of(value: &Value) -> Vec<u8> {
    serde_json::from_value(value.clone()).unwrap_or_default()
}

fn change_details(call: &mut Value, change: impl FnOnce(&mut AnyValue)) {
    let mut details = AnyValue::read(&bytes_of(&call["details"]));
    change(&mut details);
    call["details"] = json!(details.write());
}

/// Changes the MessagePack of a reply of this kind.
fn change_part(reply: &mut Value, kind: &str, change: impl FnOnce(&mut AnyValue)) {
    if is_kind(reply, kind) {
        let part = &mut reply["reply"][kind];
        let mut value = AnyValue::read(&bytes_of(part));
        change(&mut value);
        *part = json!(value.write());
    }
}

fn code(reply: &Value) -> Option<String> {
    let mut failure = AnyValue::read(&bytes_of(reply["reply"].get("Failed")?));
    match failure.entry("code") {
        Some(AnyValue::Text(code)) => Some(code.clone()),
        _ => None,
    }
}
