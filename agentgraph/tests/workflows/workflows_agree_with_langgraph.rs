//! Random workflows come to the same as in LangGraph's functional API: the same results, questions and
//! effects, in as many calls. `beside_langgraph/workflows.py` has run them there and written the fixture.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agentgraph::prelude::*;
use agentgraph::workflow::{Previous, WorkflowState};
use futures_util::future::try_join_all;
use serde::Deserialize;

use crate::common::clock::Clock;

#[derive(Deserialize)]
struct Case {
    script: Vec<Act>,
    runs: Vec<Run>,
}

#[derive(Clone, Deserialize)]
struct Act {
    act: String,
    n: u32,
}

/// What one run came to.
#[derive(Debug, PartialEq, Deserialize)]
struct Run {
    returned: Vec<String>,
    calls: u32,
    asked: Vec<String>,
    effects: Vec<String>,
}

/// The effects of a script's tasks, and the failures that they have had.
#[derive(Clone, Default)]
struct World {
    script: Arc<Vec<Act>>,
    effects: Arc<Mutex<Vec<String>>>,
    failed: Arc<Mutex<HashMap<String, u32>>>,
}

impl World {
    async fn work(&self, mark: String) -> Result<String> {
        self.effects.lock().unwrap().push(mark.clone());
        Ok(mark)
    }

    /// Whether this is among the first `failures` calls.
    fn fails(&self, of: &str, failures: u32) -> bool {
        let mut failed = self.failed.lock().unwrap();
        let calls = failed.entry(of.to_owned()).or_default();
        *calls += 1;
        *calls <= failures
    }

    async fn play(&self, ctx: &Ctx, previous: Option<Vec<String>>) -> Result<Vec<String>> {
        let mut returned: Vec<_> = previous.iter().map(|last| format!("after {}", last.len())).collect();
        for (at, Act { act, n }) in self.script.iter().enumerate() {
            match &**act {
                "task" => returned.push(ctx.once("work", self.work(at.to_string())).await?),
                "parallel" => {
                    let works = (0..*n).map(|i| ctx.once("work", self.work(format!("{at}.{i}"))));
                    returned.extend(try_join_all(works).await?);
                }
                "retried" => {
                    let again = RetryPolicy::attempts(9).initial(Duration::from_millis(1));
                    let work = || async {
                        if self.fails(&format!("task {at}"), *n) {
                            return Err("not yet".into());
                        }
                        self.work(at.to_string()).await
                    };
                    returned.push(ctx.durable("retried").retry(again).run(work).await?);
                }
                "interrupt" => returned.push(ctx.interrupt(format!("question {at}"))?),
                "fails" if self.fails(&format!("run {at}"), 1) => return Err("broken".into()),
                "fails" => {}
                other => panic!("{other}"),
            }
        }
        Ok(returned)
    }

    async fn run(&self, workflow: &CompiledGraph<WorkflowState<(), Vec<String>>>) -> Run {
        self.effects.lock().unwrap().clear();
        self.failed.lock().unwrap().clear();
        let mut asked = Vec::new();
        let mut calls = 1;
        let mut outcome = workflow.invoke(()).thread("t").await;
        let returned = loop {
            let next = match outcome {
                Ok(Outcome::Interrupted { interrupts, .. }) => {
                    let question = interrupts[0].value.as_str().unwrap().to_owned();
                    let answer = format!("answer to {question}");
                    asked.push(question);
                    workflow.resume(answer)
                }
                Ok(finished) => break finished.into_returned().unwrap(),
                Err(_) => workflow.proceed(),
            };
            calls += 1;
            outcome = next.thread("t").await;
        };
        Run { returned, calls, asked, effects: self.effects.lock().unwrap().clone() }
    }
}

#[tokio::test]
async fn random_workflows_come_to_the_same() {
    let cases: Vec<Case> =
        serde_json::from_str(include_str!("../fixtures/langgraph_workflows.json")).unwrap();
    assert!(cases.len() >= 50);
    for (at, case) in cases.into_iter().enumerate() {
        let world = World { script: Arc::new(case.script), ..World::default() };
        let inner = world.clone();
        let workflow =
            Workflow::new("script", move |ctx: Ctx, Previous(last): Previous<Vec<String>>, (): ()| {
                let world = inner.clone();
                async move { world.play(&ctx, last).await }
            });
        let workflow =
            workflow.compile().unwrap().checkpointer(MemorySaver::new()).services(Clock::default());
        for expected in case.runs {
            assert_eq!(world.run(&workflow).await, expected, "case {at}");
        }
    }
}
