//! Edits of a thread whose run has no supersteps. An edit about one node ends an activation of that node; all
//! other open activations stay.

use std::borrow::Cow;
use std::sync::Arc;

use crate::engine::Loop;
use crate::engine::task_id::StepPlace;
use crate::engine::task_output::{TaskOutput, node_to_act_as};
use crate::error::Error;
use crate::typed::AnyUpdate;
use agentgraph_checkpoint::{RunId, Source};

impl Loop {
    /// [`adopt_left`](Self::adopt_left) with the task ids of an earlier run, on its thread if one is given.
    pub(in crate::engine) fn adopt_left_of(&mut self, run: RunId, thread: Option<&str>) {
        let Some(journal) = &mut self.records.journal else { return };
        let thread = thread.map(Arc::from);
        let now = journal.swap_identity(run, thread);
        self.adopt_left();
        if let Some(journal) = &mut self.records.journal {
            journal.swap_identity(now.0, Some(now.1));
        }
    }

    /// Lets open activations read the edited state and continue their calls of subgraphs, which have other
    /// ids from now on. `before` is the place of their tasks before the edit.
    pub(in crate::engine) fn edit_flow(&mut self, updated: bool, before: Option<StepPlace<'_>>) {
        let commit = self.upcoming();
        for key in self.open_keys() {
            let called = self.activation(key).filter(|one| self.memory_of(one.actor()).is_some());
            let called = called.zip(before).map(|(one, place)| {
                let known = one.left.as_ref().and_then(|left| left.call);
                known.unwrap_or_else(|| {
                    crate::engine::flow::record::id_of(&self.position.graph, place, key, one)
                })
            });
            let Some(activation) = self.activation_mut(key) else { continue };
            if updated {
                (activation.read, activation.read_at) = (commit.id, commit.at);
            }
            if let Some(task) = called {
                activation.remains_mut().call = Some(task);
            }
        }
        if let Some(eager) = &mut self.position.eager {
            if updated {
                eager.flow.kept.clear();
                eager.flow.unsaved.kept = true;
            }
            eager.flow.pass(commit);
        }
    }

    /// Closes all open activations.
    pub(in crate::engine) fn clear_flow(&mut self) {
        let commit = self.upcoming();
        self.begin_flow();
        if let Some(eager) = &mut self.position.eager {
            eager.flow.pass(commit);
        }
    }

    /// Merges updates as if these nodes had returned them, one commit each. If activations of the node are
    /// open, the oldest of them ends.
    pub(in crate::engine) async fn edit_flow_as(
        &mut self,
        writers: Vec<(Cow<'static, str>, AnyUpdate)>,
    ) -> Result<(), Error> {
        let mut edits = Vec::with_capacity(writers.len());
        for (name, update) in writers {
            edits.push((node_to_act_as(&self.position.graph, &name)?, update));
        }
        for (node, update) in edits {
            let open = self.position.eager.iter().flat_map(|eager| &eager.flow.open);
            let ending = open.filter(|(_, one)| one.actor() == node).map(|(key, _)| *key).next();
            let done = TaskOutput { update: Some(update), routing: None };
            self.merge_into_flow(ending, node, Some(done))?;
            self.position.merging = false;
            self.commit(Source::Update, None).await?;
        }
        Ok(())
    }
}
