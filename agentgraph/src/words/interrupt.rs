//! [`Interrupt`]: an open question, or a static interrupt.

use std::fmt;
use std::str::FromStr;
use std::time::SystemTime;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::words::{Request, Spot, VoidedQuestion};
use agentgraph_checkpoint::services::{from_micros, micros};
use agentgraph_checkpoint::{InvalidId, TaskId};

/// A reason why a run waits: an open question, or a static interrupt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Interrupt {
    /// Its id, for `resume_many`; `None` for a static interrupt, which `proceed()` passes.
    pub id: Option<InterruptId>,
    /// The node.
    pub node: String,
    /// The node's subgraph, by its namespace in checkpoints; empty for the root graph.
    pub namespace: String,
    /// The kind of interrupt.
    pub kind: InterruptKind,
    /// The question; null for a static interrupt. For a sleep, its name.
    pub value: Value,
    /// The JSON schema of the answer, if the node provided one.
    pub schema: Option<Value>,
    /// The key of the question, if the node provided one.
    pub key: Option<String>,
    /// The question that this one replaces, if its answer was voided. [`times`](Replaced::times) grows for
    /// a node that asks something else each time it runs.
    pub replaces: Option<Replaced>,
    /// The end of a [sleep](crate::Ctx::sleep), by the clock of the run's services. A `proceed()` after this
    /// time continues the task.
    pub until: Option<SystemTime>,
}

/// A question whose answer was voided: its task ran again and [refused](crate::Ctx::refuse) the answer, or
/// asked something else in its place or in the place of an earlier question. See
/// [`Ctx::interrupt`](crate::Ctx::interrupt).
///
/// ```
/// # use agentgraph::prelude::*;
/// # use std::sync::atomic::{AtomicU32, Ordering};
/// # #[derive(State, Clone, Debug, Default)]
/// # struct Payment { paid: u32 }
/// static PRICE: AtomicU32 = AtomicU32::new(10);
///
/// async fn pay(ctx: Ctx) -> Result<PaymentUpdate> {
///     let price = PRICE.load(Ordering::Relaxed);
///     let yes: bool = ctx.interrupt(format!("Pay {price}?"))?;
///     Ok(Payment::update().paid(if yes { price } else { 0 }))
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// let graph = StateGraph::new().node("pay", pay).edge(START, "pay").compile()?.checkpointer(MemorySaver::new());
/// graph.invoke(Payment::update()).thread("t-1").await?;
///
/// PRICE.store(9_999, Ordering::Relaxed);
/// let asked = graph.resume(true).thread("t-1").await?;
/// let again = &asked.interrupts()[0];
/// let before = again.replaces.as_ref().unwrap();
/// assert_eq!((&again.value, &before.value, before.times), (&"Pay 9999?".into(), &"Pay 10?".into(), 1));
/// assert_ne!(again.id, Some(before.id));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Replaced {
    /// Its id, which is no longer open.
    pub id: InterruptId,
    /// The question.
    pub value: Value,
    /// The number of answers voided at this place of the task, including its own.
    pub times: u32,
    /// Why the node refused the answer. `None` if the node asked something else.
    #[serde(default)]
    pub reason: Option<String>,
}

impl Replaced {
    pub(crate) fn of(task: TaskId, question: VoidedQuestion) -> Self {
        let VoidedQuestion { n, value, times, reason } = question;
        Replaced { id: InterruptId { task, n }, value, times, reason }
    }
}

impl Interrupt {
    pub(crate) fn fixed(node: String, kind: InterruptKind) -> Self {
        Interrupt {
            id: None,
            node,
            namespace: String::new(),
            kind,
            value: Value::Null,
            schema: None,
            key: None,
            replaces: None,
            until: None,
        }
    }

    /// The node, and whether it sleeps, refused an answer, or replaced its answered question.
    pub(super) fn place(&self) -> String {
        match (&self.replaces, self.until) {
            (_, Some(until)) => format!("`{}`, which sleeps {}", self.node, until_text(until)),
            (None, None) => format!("`{}`", self.node),
            (Some(Replaced { reason: Some(reason), .. }), None) => {
                format!("`{}`, which refused the last answer ({reason})", self.node)
            }
            (Some(_), None) => {
                format!("`{}`, which asks a different question than the answered one", self.node)
            }
        }
    }

    pub(crate) fn of_request(task: TaskId, node: String, request: Request) -> Self {
        let Request { n, spot, value, schema, replaces, until } = request;
        let (kind, key) = match spot {
            Spot::Nth(_) => (InterruptKind::Asked, None),
            Spot::Key(key) => (InterruptKind::Asked, Some(key)),
            Spot::Sleep { .. } => (InterruptKind::Sleeps, None),
        };
        let id = Some(InterruptId { task, n });
        let replaces = replaces.map(|question| Replaced::of(task, question));
        let until = until.map(from_micros);
        Interrupt { value, schema, key, replaces, until, id, ..Interrupt::fixed(node, kind) }
    }
}

/// The earliest end among sleeps.
pub(crate) fn first_end(interrupts: &[Interrupt]) -> Option<SystemTime> {
    interrupts.iter().filter_map(|interrupt| interrupt.until).min()
}

/// The end of a sleep, for messages.
pub(crate) fn until_text(until: SystemTime) -> String {
    /// The last second that an HTTP date can show: the end of the year 9999.
    const LAST: u64 = 253_402_300_799;
    match micros(until) / 1_000_000 {
        0..=LAST => format!("until {}", httpdate::fmt_http_date(from_micros(micros(until)))),
        _ => "until after the year 9999".to_owned(),
    }
}

/// The kind of an interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum InterruptKind {
    /// The node called [`Ctx::interrupt`](crate::Ctx::interrupt), or one of the methods like it.
    Asked,
    /// The node called [`Ctx::sleep`](crate::Ctx::sleep); `proceed()` continues it after
    /// [`until`](Interrupt::until).
    Sleeps,
    /// The graph stops before the node runs.
    Before,
    /// The graph stops after the node has run.
    After,
}

/// The id of a request: its task, and its number among the task's requests. The same in every process, and
/// never used for another question. As text it is the task's id, a dash and the number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct InterruptId {
    pub(crate) task: TaskId,
    pub(crate) n: u32,
}

impl fmt::Display for InterruptId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}-{}", self.task, self.n)
    }
}

impl FromStr for InterruptId {
    type Err = InvalidId;
    fn from_str(text: &str) -> Result<Self, InvalidId> {
        let (task, n) = text.split_once('-').ok_or(InvalidId)?;
        Ok(InterruptId { task: task.parse()?, n: n.parse().map_err(|_| InvalidId)? })
    }
}

impl Serialize for InterruptId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for InterruptId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// A static interrupt at a node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct StoredStop {
    node: String,
    /// After the node; otherwise before it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    after: bool,
}

impl StoredStop {
    /// The static interrupts of the graph itself among these, without those of subgraphs.
    pub(crate) fn of_own_graph(interrupts: &[Interrupt]) -> Vec<Self> {
        let own = interrupts.iter().filter(|stop| stop.id.is_none() && stop.namespace.is_empty());
        own.map(|stop| StoredStop { node: stop.node.clone(), after: stop.kind == InterruptKind::After })
            .collect()
    }

    pub(crate) fn into_interrupt(self) -> Interrupt {
        let kind = if self.after { InterruptKind::After } else { InterruptKind::Before };
        Interrupt::fixed(self.node, kind)
    }
}
