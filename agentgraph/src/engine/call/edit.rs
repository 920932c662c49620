//! Edits from outside: a checkpoint that no task wrote.

use std::borrow::Cow;
use std::collections::HashSet;

use crate::engine::Loop;
use crate::engine::frontier::Frontier;
use crate::engine::left_over::EditedTasks;
use crate::engine::task_output::{Target, target, unknown_target};
use crate::error::{Code, Error};
use crate::graph::joins::Joins;
use crate::graph::topology::END_ID;
use crate::step::Goto;
use crate::typed::AnyUpdate;
use crate::words::END;
use agentgraph_checkpoint::Source;

/// An edit: its update, and the position of the thread after it.
#[derive(Clone)]
pub(crate) enum Edit {
    /// The position stays the same.
    Here(Option<AnyUpdate>),
    /// The thread continues as if these nodes had returned their updates.
    As(Vec<(Cow<'static, str>, AnyUpdate)>),
    AsStart(AnyUpdate),
    AsEnd(AnyUpdate),
    /// The thread continues at these nodes, with or without a change of the state.
    Goto(Option<AnyUpdate>, Vec<Goto>),
}

impl Edit {
    /// Whether it changes nothing: a fork.
    pub(crate) fn is_copy(&self) -> bool {
        matches!(self, Edit::Here(None))
    }

    /// Whether it makes several commits unless these are deferred.
    fn is_several_commits(&self, is_eager: bool) -> bool {
        matches!(self, Edit::As(writers) if is_eager && writers.len() > 1)
    }
}

impl Loop {
    /// Makes edits one after the other, in one commit. `behind` contains what the first keeps of its tasks.
    pub(crate) async fn edit_in_order(
        &mut self,
        first: Edit,
        further: Vec<Edit>,
        behind: Option<EditedTasks<'_>>,
    ) -> Result<(), Error> {
        if further.iter().any(|edit| matches!(edit, Edit::AsStart(_))) {
            let problem =
                "`.as_start(..)` begins a run, so it cannot come after `.then()`: edit the thread twice";
            return Err(Error::new(Code::EditRejected, problem));
        }
        if further.is_empty() && !first.is_several_commits(self.position.eager.is_some()) {
            return self.edit(first, behind).await;
        }
        let is_eager = self.position.eager.is_some();
        if let Some(journal) = &mut self.records.journal {
            // Activations are distinguished by the commits that made them, stored or not.
            journal.wait_for_the_end(is_eager.then_some(0));
        }
        let mut behind = behind;
        let last = further.len();
        for (at, edit) in std::iter::once(first).chain(further).enumerate() {
            match edit {
                // The tasks of the superstep stay open for the next edit.
                Edit::Here(Some(update)) if at < last => self.write_here(update, behind.as_ref())?,
                edit => self.edit(edit, behind.take()).await?,
            }
        }
        self.end_waiting().await
    }

    /// Commits the edit. `behind` contains what an edit that does not move the thread keeps of its tasks.
    pub(crate) async fn edit(&mut self, edit: Edit, behind: Option<EditedTasks<'_>>) -> Result<(), Error> {
        match edit {
            Edit::Here(update) => self.edit_here(update, behind).await,
            Edit::As(writers) if self.position.eager.is_some() => self.edit_flow_as(writers).await,
            Edit::As(writers) => self.edit_as(writers, behind).await,
            Edit::AsStart(input) => {
                self.clear_frontier();
                self.end_edits();
                self.begin_input(input)?;
                self.commit(Source::Update, None).await
            }
            Edit::AsEnd(update) => self.edit_to(Vec::new(), Some(update), behind).await,
            Edit::Goto(_, _) if self.position.eager.is_some() => {
                let problem = "an eager graph goes on at a node through an edge: use `.as_node(..)`";
                Err(Error::new(Code::EditRejected, problem))
            }
            Edit::Goto(update, nodes) => {
                let core = &self.position.graph;
                let found = nodes.into_iter().map(|goto| match target(core, &[], goto)? {
                    // An edit that ends the run is another one.
                    Target { node: END_ID, .. } => Err(unknown_target(core, END)),
                    found => Ok(found),
                });
                let found = found.collect::<Result<Vec<Target>, Error>>()?;
                self.edit_to(found, update, behind).await
            }
        }
    }

    /// Ends the superstep that is open. The thread continues at these targets, or ends if there are none.
    /// Dispatches come from the start, as those of an input do.
    async fn edit_to(
        &mut self,
        targets: Vec<Target>,
        update: Option<AnyUpdate>,
        behind: Option<EditedTasks<'_>>,
    ) -> Result<(), Error> {
        self.begin_record();
        for finished in self.finished_updates(behind)? {
            self.write(finished)?;
        }
        if let Some(update) = update {
            self.write(update)?;
        }
        self.clear_frontier();
        self.end_edits();
        let start = self.position.graph.topology.start();
        for Target { node, input, .. } in targets {
            match input {
                Some(input) => self.position.frontier.dispatch(node, start, input),
                None => self.position.frontier.pull(node),
            }
        }
        self.position.frontier.settle();
        self.commit(Source::Update, None).await
    }

    async fn edit_here(
        &mut self,
        update: Option<AnyUpdate>,
        behind: Option<EditedTasks<'_>>,
    ) -> Result<(), Error> {
        let source = if update.is_some() { Source::Update } else { Source::Fork };
        match update {
            Some(update) => self.write_here(update, behind.as_ref())?,
            None => {
                if self.position.eager.is_some() {
                    self.edit_flow(false, behind.as_ref().map(|behind| behind.place));
                }
                self.begin_record();
            }
        }
        let mut moved = behind.map(|behind| self.writes_under_new_ids(behind)).unwrap_or_default();
        if self.position.eager.is_some() {
            moved.extend(self.asked_in_flow(&HashSet::new())?);
        }
        if let Some(journal) = &mut self.records.journal {
            // Stored by the commit itself: stored before it, they would outlive an edit that fails.
            journal.carry(moved);
        }
        let halted = std::mem::take(&mut self.inheritance.halted);
        self.commit_halted(source, None, halted).await
    }

    /// Changes the state; the position stays the same.
    fn write_here(&mut self, update: AnyUpdate, behind: Option<&EditedTasks<'_>>) -> Result<(), Error> {
        if self.position.eager.is_some() {
            self.edit_flow(true, behind.map(|behind| behind.place));
        }
        self.begin_record();
        self.write(update)
    }

    /// Ends the temporary edits, which end with the run.
    fn end_edits(&mut self) {
        self.position.graph.drop_edits();
        self.runtime.shared.lock_visible().overlay = None;
        if let Some(journal) = &mut self.records.journal {
            journal.forget_edits();
        }
    }

    fn clear_frontier(&mut self) {
        self.position.frontier = Frontier::default();
        self.position.joins = Joins::of(&self.position.graph.topology);
        if self.position.eager.is_some() {
            self.clear_flow();
        }
    }
}
