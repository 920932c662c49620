//! The run that is undone when a call takes over its thread.

use crate::error::Error;
use crate::record::header::Header;
use agentgraph_checkpoint::engine::page;
use agentgraph_checkpoint::{CheckpointId, Checkpointer, ListQuery, Place, RunId, Source};

/// A run to be undone.
pub(super) struct UndoneRun {
    pub(in crate::run) run: RunId,
    /// The checkpoint before it; `None` if the thread starts with it.
    pub(in crate::run) before: Option<CheckpointId>,
    /// The branch that contains nothing of it.
    pub(in crate::run) branch: u32,
}

/// Number of rows read at a time.
const PAGE: usize = 64;

/// The newest run of a place, with its start. `None` if nothing is stored.
pub(super) async fn newest_run(
    saver: &dyn Checkpointer,
    place: Place<'_>,
) -> Result<Option<UndoneRun>, Error> {
    let mut branch = None;
    let mut before = None;
    let mut newest = None;
    loop {
        let rows = page(saver, place, ListQuery { branch, before, limit: Some(PAGE) }).await?;
        let Some(oldest) = rows.last().map(|row| row.id) else { return Ok(newest) };
        let next_branch =
            newest.as_ref().map_or(oldest.branch.saturating_add(1), |found: &UndoneRun| found.branch);
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
            newest = Some(UndoneRun { run: header.run, before, branch: next_branch });
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
