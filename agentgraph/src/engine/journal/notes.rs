//! [`HeadNotes`]: what the head contains, so that the next record need not repeat it.

use crate::engine::journal::Commit;
use crate::record::header::Header;

/// The contents of the head that the next record may leave out, or must overwrite.
#[derive(Default)]
pub(super) struct HeadNotes {
    /// Whether the head contains open joins.
    pub(super) open_joins: bool,
    /// Whether the head contains deferred nodes.
    pub(super) deferred: bool,
    /// The number of temporary edits that the head contains, and the nodes that it marks as skipped.
    pub(super) edits: usize,
    pub(super) skips: Vec<String>,
    /// The number of stuck joins of subgraphs that the head contains.
    pub(super) stuck: usize,
    /// Whether the edits in the head belong to an earlier run.
    pub(super) foreign_edits: bool,
    /// The number of edits in the newest full or segment, if they belong to this run and it was written in
    /// this call.
    pub(super) folded_edits: Option<usize>,
}

impl HeadNotes {
    pub(super) fn of(header: &Header) -> Self {
        HeadNotes {
            open_joins: !header.joins.is_empty(),
            deferred: !header.deferred.is_empty(),
            edits: header.overlay.len(),
            skips: header.skips.clone(),
            stuck: header.stuck.len(),
            foreign_edits: false,
            folded_edits: None,
        }
    }

    /// The next record contains all temporary edits of the run, whatever the head contains.
    pub(super) fn forget_edits(&mut self) {
        self.foreign_edits |= self.edits > 0 || !self.skips.is_empty();
        self.folded_edits = None;
        self.edits = 0;
    }

    /// The commit is the head now. `whole`: it contains all edits of the run.
    pub(super) fn stored(&mut self, commit: &Commit<'_>, whole: bool) {
        let position = commit.position;
        self.foreign_edits = false;
        self.edits = position.graph.log().len();
        if whole {
            self.folded_edits = Some(self.edits);
        }
        if self.skips != commit.skips {
            self.skips = commit.skips.iter().map(|node| (*node).to_owned()).collect();
        }
        self.open_joins = position.joins.any_open();
        self.stuck = position.joins.stuck_inside().len();
        self.deferred = !position.frontier.deferred.is_empty();
    }
}
