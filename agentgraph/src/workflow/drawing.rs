//! A run of a workflow as a drawing: its steps in the order in which their results came.

use std::fmt::Write;

use super::state::{WorkflowState, WorkflowValue};
use crate::graph::escape;
use crate::run::Checkpoint;
use crate::words::{DoneStep, Interrupt, StepKind, until_text};

/// # Runs of workflows
impl<I: WorkflowValue, O: WorkflowValue> Checkpoint<WorkflowState<I, O>> {
    /// The durable steps of the newest run, in the order in which their results came, also after it has
    /// finished.
    pub fn done_steps(&self) -> &[DoneStep] {
        if self.next.is_empty() { self.values.steps() } else { &self.steps }
    }

    /// Returns the newest run as a Mermaid flowchart: its steps in the order in which their results came,
    /// with the attempts that they took, then the questions and sleeps that it waits for.
    ///
    /// ```
    /// # use agentgraph::prelude::*;
    /// # use agentgraph::workflow::Workflow;
    /// async fn order(ctx: Ctx, item: String) -> Result<u32> {
    ///     let price = ctx.once("price", async { Ok(item.len() as u32) }).await?;
    ///     let _: bool = ctx.interrupt(format!("pay {price}?"))?;
    ///     Ok(price)
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let orders = Workflow::new("order", order).compile()?.checkpointer(MemorySaver::new());
    /// orders.invoke("tea".to_owned()).thread("t-1").await?;
    /// let drawing = orders.state("t-1").await?.unwrap().mermaid();
    /// assert_eq!(
    ///     drawing,
    ///     "flowchart TD\n    s0([\"START\"])\n    s1[\"price\"]\n    s2{{\"pay 3?\"}}\n    s0 --> s1\n    s1 -.-> s2\n",
    /// );
    /// # Ok(())
    /// # }
    /// ```
    pub fn mermaid(&self) -> String {
        let mut drawing = RunDrawing::begin();
        for step in self.done_steps() {
            drawing.follow("[", &label(step), "]");
        }
        let last = drawing.places;
        for open in &self.interrupts {
            drawing.branch(last, &waits_for(open));
        }
        if self.next.is_empty() {
            drawing.follow("([", "END", "])");
        }
        drawing.finish()
    }
}

/// A flowchart while it is written: places first, then arrows.
struct RunDrawing {
    nodes: String,
    arrows: String,
    /// The number of the last place.
    places: usize,
}

impl RunDrawing {
    fn begin() -> Self {
        RunDrawing {
            nodes: "flowchart TD\n    s0([\"START\"])\n".to_owned(),
            arrows: String::new(),
            places: 0,
        }
    }

    /// Adds a place after the last one.
    fn follow(&mut self, open: &str, text: &str, close: &str) {
        let before = self.places;
        self.place(open, text, close);
        let _ = writeln!(self.arrows, "    s{before} --> s{}", self.places);
    }

    /// Adds something that the run waits for.
    fn branch(&mut self, from: usize, text: &str) {
        self.place("{{", text, "}}");
        let _ = writeln!(self.arrows, "    s{from} -.-> s{}", self.places);
    }

    fn place(&mut self, open: &str, text: &str, close: &str) {
        self.places += 1;
        let _ = writeln!(self.nodes, "    s{}{open}\"{}\"{close}", self.places, escape(text));
    }

    fn finish(self) -> String {
        self.nodes + &self.arrows
    }
}

fn label(step: &DoneStep) -> String {
    let mut label = step.name.clone();
    match (&step.key, step.index) {
        (Some(key), _) => _ = write!(label, " ({key})"),
        (None, 0) => {}
        (None, index) => _ = write!(label, " ({})", index.saturating_add(1)),
    }
    match step.kind {
        StepKind::Work => {}
        StepKind::Sleep(until) => _ = write!(label, ", sleep {}", until_text(until)),
        StepKind::Version(version) => _ = write!(label, ", version {version}"),
    }
    if step.attempts > 1 {
        let _ = write!(label, ", {} attempts", step.attempts);
    }
    label
}

fn waits_for(open: &Interrupt) -> String {
    match (open.until, &open.value) {
        (Some(until), _) => format!("sleeps {}", until_text(until)),
        (None, serde_json::Value::String(question)) => question.clone(),
        (None, question) => question.to_string(),
    }
}
