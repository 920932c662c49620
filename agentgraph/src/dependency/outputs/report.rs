//! The report on a finished pass, beside its outputs.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::words::{DroppedEdits, EditError, GraphEdit, Rejection};

/// A node that did not run in a pass.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct NotRun {
    /// The node.
    pub node: String,
    /// The reason.
    pub reason: NotRunReason,
}

/// The reason why a node did not run in a pass. The reasons never form a cycle, since `compile()` and edits
/// refuse cycles.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum NotRunReason {
    /// The node was removed, or an edit removed its last incoming edge, or it depends only on such nodes.
    Pruned,
    /// The node depends on these nodes, which will not run in this pass.
    WaitsFor(Vec<String>),
    /// The call reached its limit of nodes first.
    Limit,
    /// The call ended before the node's turn, or while it ran.
    Unfinished,
}

impl fmt::Display for NotRun {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "`{}` ", self.node)?;
        match &self.reason {
            NotRunReason::Pruned => out.write_str("was pruned"),
            NotRunReason::WaitsFor(nodes) => write!(out, "waits for `{}`", nodes.join("`, `")),
            NotRunReason::Limit => out.write_str("came after the limit"),
            NotRunReason::Unfinished => out.write_str("was not finished"),
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Report {
    pub(crate) not_run: Vec<NotRun>,
    pub(crate) dropped: Vec<DroppedEdits>,
}

/// The stored form of a report, which contains the reasons for dropped edits as text.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct StoredReport {
    not_run: Vec<NotRun>,
    dropped: Vec<StoredDropped>,
}

/// The stored form of dropped edits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct StoredDropped {
    by: String,
    edits: Vec<GraphEdit>,
    edit: GraphEdit,
    why: String,
}

impl From<&Report> for StoredReport {
    fn from(report: &Report) -> Self {
        let dropped = report.dropped.iter().map(StoredDropped::from);
        StoredReport { not_run: report.not_run.clone(), dropped: dropped.collect() }
    }
}

impl From<StoredReport> for Report {
    fn from(stored: StoredReport) -> Self {
        let dropped = stored.dropped.into_iter().map(DroppedEdits::from);
        Report { not_run: stored.not_run, dropped: dropped.collect() }
    }
}

impl From<&DroppedEdits> for StoredDropped {
    fn from(dropped: &DroppedEdits) -> Self {
        StoredDropped {
            by: dropped.by.clone(),
            edits: dropped.edits.clone(),
            edit: dropped.why.edit().clone(),
            why: dropped.why.why().to_string(),
        }
    }
}

impl From<StoredDropped> for DroppedEdits {
    fn from(dropped: StoredDropped) -> Self {
        DroppedEdits {
            by: dropped.by,
            edits: dropped.edits,
            why: EditError::new(dropped.edit, Rejection::Unfit(dropped.why)),
            lost: Vec::new(),
        }
    }
}
