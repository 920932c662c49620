//! [`WhenBusy`]: what becomes of a call when a run goes on in its thread already.

use crate::error::Error;
use crate::record::header::Header;
use agentgraph_checkpoint::engine::page;
use agentgraph_checkpoint::{CheckpointId, Checkpointer, ListQuery, Place, RunId, Source};

/// What becomes of a call when a run goes on in its thread already, in this process or another one.
///
/// ```
/// # use agentgraph::prelude::*;
/// # use serde::{Deserialize, Serialize};
/// # #[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
/// # struct Chat { #[reduce(append)] said: Vec<String> }
/// # async fn reply(chat: Snapshot<Chat>) -> ChatUpdate {
/// #     tokio::task::yield_now().await;
/// #     Chat::update().said([format!("{}!", chat.said[chat.said.len() - 1])])
/// # }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// use agentgraph::WhenBusy;
///
/// # let graph = StateGraph::new().node("reply", reply).edge(START, "reply").compile()?;
/// let graph = graph.checkpointer(MemorySaver::new());
/// let say = |word: &str| graph.invoke(Chat::update().said([word])).thread("t-1").when_busy(WhenBusy::Queue);
/// let (first, second) = tokio::join!(say("tea").into_future(), say("milk").into_future());
/// assert_eq!(first?.output().said, ["tea", "tea!"]);
/// assert_eq!(second?.output().said, ["tea", "tea!", "milk", "milk!"]);
/// # Ok(())
/// # }
/// # use std::future::IntoFuture;
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WhenBusy {
    /// It fails with [`Code::ThreadBusy`](crate::Code::ThreadBusy). The default.
    #[default]
    Refuse,
    /// It waits until the thread is free. Calls of one graph that wait for one thread go in the order they came.
    Queue,
    /// It takes the thread. The other run ends with [`Code::LeaseLost`](crate::Code::LeaseLost), where it stands; what it
    /// committed stays. An `invoke` gives that run up and begins on the state it left, `resume` and `proceed` go on with
    /// it.
    Replace,
    /// As `Replace`, but an `invoke` begins on the state as it was before the other run, on a new branch. The old branch
    /// stays as it is, and the new one says which run it gave up: [`Checkpoint::abandoned`](crate::Checkpoint).
    RollBack,
}

impl WhenBusy {
    pub(crate) fn replaces(self) -> bool {
        matches!(self, WhenBusy::Replace | WhenBusy::RollBack)
    }
}

/// A run that is to be undone.
pub(crate) struct RolledBack {
    pub(crate) run: RunId,
    /// The checkpoint before it; `None` if the thread began with it.
    pub(crate) before: Option<CheckpointId>,
    /// The branch that has none of it.
    pub(crate) branch: u32,
}

/// Rows read at a time.
const PAGE: usize = 64;

/// The newest run of a place, and where it began. `None` if nothing is stored.
pub(crate) async fn newest_run(
    saver: &dyn Checkpointer,
    place: Place<'_>,
) -> Result<Option<RolledBack>, Error> {
    let (mut branch, mut before) = (None, None);
    let mut newest = None;
    loop {
        let rows = page(saver, place, ListQuery { branch, before, limit: Some(PAGE) }).await?;
        let Some(oldest) = rows.last().map(|row| row.id) else { return Ok(newest) };
        let next_branch =
            newest.as_ref().map_or(oldest.branch.saturating_add(1), |found: &RolledBack| found.branch);
        let mut parent = None;
        for row in rows {
            let header = Header::of_row(place, &row)?;
            let step_before = row.id.step.checked_sub(1);
            parent = header.parent.filter(|(_, step)| step_before == Some(*step));
            let (on, step) = match (parent, step_before) {
                (Some((branch, step)), _) => (branch, Some(step)),
                (None, step) => (row.id.branch, step),
            };
            let before = step.map(|step| CheckpointId::new(on, step));
            newest = Some(RolledBack { run: header.run, before, branch: next_branch });
            if header.source == Source::Input {
                return Ok(newest);
            }
        }
        (branch, before) = match parent {
            Some((branch, step)) => (Some(branch), step.checked_add(1)),
            None if oldest.step == 0 => return Ok(newest),
            None => (Some(oldest.branch), Some(oldest.step)),
        };
    }
}
