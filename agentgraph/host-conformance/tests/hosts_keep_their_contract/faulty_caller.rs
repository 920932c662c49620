//! [`FaultyCaller`]: a client of runs that is correct except for one fault.

use std::collections::HashMap;
use std::sync::Mutex;

use agentgraph::BoxError;
use agentgraph::host::{RunCall, RunEnd, ThreadState};
use agentgraph_host_conformance::{Ability, HostUnderTest, LocalRuns, Notes};
use serde_json::{Value, json};

/// A fault of the way between a caller and a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallerFault {
    SwapsAnswers,
    ProceedsByItself,
    LosesSettings,
    LowersNames,
    CutsNames,
    LosesDroppedEdits,
    IgnoresEdits,
    IgnoresCancel,
}

/// Passes calls on to runs in this process.
pub struct FaultyCaller {
    runs: LocalRuns,
    fault: Option<CallerFault>,
    ends: Mutex<HashMap<String, RunEnd>>,
}

impl FaultyCaller {
    pub fn new(notes: &Notes, fault: Option<CallerFault>) -> Self {
        FaultyCaller { runs: LocalRuns::new(notes), fault, ends: Mutex::default() }
    }

    fn has(&self, fault: CallerFault) -> bool {
        self.fault == Some(fault)
    }

    fn name(&self, thread: &str) -> String {
        match self.fault {
            Some(CallerFault::LowersNames) => thread.to_lowercase(),
            Some(CallerFault::CutsNames) => thread.split('/').next().unwrap_or_default().to_owned(),
            _ => thread.to_owned(),
        }
    }

    fn change_call(&self, call: &mut Value) {
        match self.fault {
            Some(CallerFault::SwapsAnswers) => {
                if let Some(answers) = call["request"].get_mut("resume_many").and_then(Value::as_array_mut) {
                    let mut given: Vec<Value> = answers.iter().map(|answer| answer[1].clone()).collect();
                    given.reverse();
                    answers.iter_mut().zip(given).for_each(|(answer, given)| answer[1] = given);
                }
            }
            Some(CallerFault::LosesSettings) => call["settings"] = json!({}),
            _ => {}
        }
    }
}

#[async_trait::async_trait]
impl HostUnderTest for FaultyCaller {
    async fn call(&self, graph: &str, thread: &str, call: RunCall) -> Result<RunEnd, BoxError> {
        let thread = self.name(thread);
        let mut sent = serde_json::to_value(&call)?;
        self.change_call(&mut sent);
        if self.has(CallerFault::IgnoresEdits) && sent["request"].get("edit").is_some() {
            return Ok(self.ends.lock().unwrap()[&thread].clone());
        }
        let mut end = self.runs.call(graph, &thread, serde_json::from_value(sent)?).await?;
        if self.has(CallerFault::ProceedsByItself)
            && end.interrupts().iter().any(|interrupt| interrupt.id.is_none())
        {
            end = self.runs.call(graph, &thread, RunCall::proceed()).await?;
        }
        let mut sent = serde_json::to_value(&end)?;
        if self.has(CallerFault::LosesDroppedEdits)
            && let Some(at) = sent.get_mut("finished").and_then(|end| end.get_mut("at"))
        {
            at["dropped"] = json!([]);
        }
        let end: RunEnd = serde_json::from_value(sent)?;
        self.ends.lock().unwrap().insert(thread, end.clone());
        Ok(end)
    }

    async fn state(&self, graph: &str, thread: &str) -> Result<Option<ThreadState>, BoxError> {
        let state = self.runs.state(graph, &self.name(thread)).await?;
        Ok(serde_json::from_value(serde_json::to_value(state)?)?)
    }

    fn abilities(&self) -> Vec<Ability> {
        self.runs.abilities()
    }

    async fn history(&self, graph: &str, thread: &str) -> Result<Vec<ThreadState>, BoxError> {
        self.runs.history(graph, &self.name(thread)).await
    }

    async fn cancel(&self, graph: &str, thread: &str) -> Result<(), BoxError> {
        match self.has(CallerFault::IgnoresCancel) {
            true => Ok(()),
            false => self.runs.cancel(graph, &self.name(thread)).await,
        }
    }
}
