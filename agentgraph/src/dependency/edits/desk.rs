//! The desk of a pass: it collects the edits of tasks, and contains the plan that they change.

use std::collections::HashMap;
use std::sync::{Arc, MutexGuard};

use super::Op;
use super::judge::{EditEffect, Judge, Occasion};
use crate::context::{RunShared, TaskRequest, VisibleEdits, edits};
use crate::dependency::layer::EditLayer;
use crate::dependency::node::DependencyNode;
use crate::dependency::outputs::{Output, PassInput};
use crate::dependency::plan::{Plan, Status};
use crate::dependency::wiring::Wiring;
use crate::error::nearest;
use crate::graph::run_graph::lacking;
use crate::words::{EditError, GraphEdit, Rejection};
use agentgraph_checkpoint::engine::Lock;

/// The part of one pass that its tasks share with its loop.
pub(crate) struct PassDesk<O, S> {
    wiring: Arc<Wiring<O, S>>,
    /// Whether each node has an output of an earlier pass.
    kept: Vec<bool>,
    /// Whether the pass is stored, so that functions cannot be nodes.
    stored: bool,
    /// Locked by the loop between calls of nodes, and by nodes while they submit an edit.
    pass: Lock<PassProgress<O, S>>,
}

/// The progress of the pass.
pub(crate) struct PassProgress<O, S> {
    pub(crate) plan: Plan,
    /// The added nodes, in order of their ids.
    pub(crate) added: Vec<DependencyNode<O, S>>,
    /// The edits submitted by running tasks, by the index of the task.
    drafts: HashMap<u32, PassDraft<O, S>>,
    /// The number of transactions that have changed the graph.
    settled: u64,
    /// The current attempts of tasks after their first one: edits of earlier attempts are refused.
    attempts: HashMap<u32, u32>,
}

/// The edits of one attempt.
struct PassDraft<O, S> {
    node: u32,
    attempt: u32,
    /// The number of transactions below its layer.
    above: u64,
    layer: EditLayer,
    ops: Vec<Op<O, S>>,
}

/// The edits of a finished task.
pub(crate) struct Transaction<O, S> {
    pub(crate) ops: Vec<Op<O, S>>,
}

/// The outcome of a transaction.
#[derive(Default)]
pub(crate) struct SettledEdits {
    /// The names of the nodes that it added.
    pub(crate) added: Vec<Arc<str>>,
    /// The edits that have changed something.
    pub(crate) edits: Vec<GraphEdit>,
}

impl<O, S> PassDraft<O, S> {
    fn is_of(&self, request: TaskRequest) -> bool {
        (self.node, self.attempt) == (request.node, request.attempt)
    }
}

impl<O, S> Transaction<O, S> {
    pub(crate) fn of(edits: Vec<GraphEdit>) -> Self {
        Transaction { ops: edits.into_iter().map(Op::from).collect() }
    }

    pub(crate) fn edits(&self) -> Vec<GraphEdit> {
        self.ops.iter().map(|op| op.edit.clone()).collect()
    }
}

impl<O: Output, S: PassInput> edits::Desk for PassDesk<O, S> {
    fn submit(
        &self,
        _: &RunShared,
        task: TaskRequest,
        edit: &GraphEdit,
        made: Option<edits::NodeValue>,
    ) -> Result<(), Rejection> {
        self.keep(task, Op::of(edit, made)?, false)
    }

    fn adopt(
        &self,
        _: &RunShared,
        _: &VisibleEdits,
        task: TaskRequest,
        edit: &GraphEdit,
    ) -> Result<(), Rejection> {
        self.keep(task, Op::of(edit, None)?, true)
    }

    fn take_edits(&self, _: &RunShared, task: TaskRequest) -> Vec<GraphEdit> {
        self.take(task.index).map(|transaction| transaction.edits()).unwrap_or_default()
    }

    fn name(&self, node: u32) -> Option<Arc<str>> {
        let pass = self.pass();
        pass.plan.look(|graph| graph.added(node).map(|added| Arc::clone(&added.name)))
    }

    fn submitted_edits(&self, request: TaskRequest) -> usize {
        self.pass()
            .drafts
            .get(&request.index)
            .filter(|draft| draft.is_of(request))
            .map_or(0, |draft| draft.ops.len())
    }

    fn undo_to(&self, request: TaskRequest, count: usize) {
        let mut pass = self.pass();
        let PassProgress { plan, added, drafts, settled, .. } = &mut *pass;
        let Some(draft) = drafts.get_mut(&request.index).filter(|draft| draft.is_of(request)) else { return };
        if count < draft.ops.len() {
            draft.ops.truncate(count);
            draft.above = *settled;
            self.judge_anew(plan, added, draft);
        }
    }
}

impl<O, S> PassDesk<O, S> {
    pub(crate) fn new(wiring: Arc<Wiring<O, S>>, kept: Vec<bool>, stored: bool) -> Self {
        let plan = Plan::new(Arc::clone(&wiring.base));
        let pass = PassProgress {
            plan,
            added: Vec::new(),
            drafts: HashMap::new(),
            settled: 0,
            attempts: HashMap::new(),
        };
        PassDesk { wiring, kept, stored, pass: Lock::new(pass) }
    }

    pub(crate) fn pass(&self) -> MutexGuard<'_, PassProgress<O, S>> {
        self.pass.lock()
    }

    /// Drops the edits of earlier attempts of the task, and refuses further ones.
    pub(crate) fn begin_attempt(&self, request: TaskRequest) {
        if request.attempt > 1 {
            let mut pass = self.pass();
            if pass.drafts.get(&request.index).is_some_and(|draft| draft.attempt < request.attempt) {
                pass.drafts.remove(&request.index);
            }
            pass.attempts.insert(request.index, request.attempt);
        }
    }

    /// Drops the edits of an unfinished task, and refuses further ones in this call.
    pub(crate) fn give_up(&self, index: u32) {
        let mut pass = self.pass();
        pass.drafts.remove(&index);
        pass.attempts.insert(index, u32::MAX);
    }

    /// Checks an edit of a task, and keeps it until the task is done. An edit that was `checked` when it was
    /// made is kept even if it has become impossible: that is reported when the task is done.
    fn keep(&self, request: TaskRequest, mut op: Op<O, S>, checked: bool) -> Result<(), Rejection> {
        self.make(&mut op)?;
        let mut pass = self.pass();
        let PassProgress { plan, added, drafts, settled, attempts } = &mut *pass;
        let is_over = attempts.get(&request.index).is_some_and(|attempt| *attempt != request.attempt);
        if plan.status(request.node) != Status::Runs || is_over {
            return Err(Rejection::TooLate);
        }
        let end = plan.overlay.end();
        let draft = drafts.entry(request.index).or_insert_with(|| PassDraft {
            node: request.node,
            attempt: request.attempt,
            above: *settled,
            layer: EditLayer::starting_at(end),
            ops: Vec::new(),
        });
        if draft.above != *settled {
            // Other tasks have edited since, so the ids and places in the layer are taken: it is rebuilt on
            // top of their edits.
            draft.above = *settled;
            self.judge_anew(plan, added, draft);
        }
        match self.effect_of(plan, added, &mut draft.layer, &op, Occasion::Call) {
            Ok(effect) => op.moot = matches!(effect, EditEffect::Nothing),
            Err(_) if checked => {}
            Err(why) => return Err(why),
        }
        draft.ops.push(op);
        Ok(())
    }

    /// Rebuilds the layer of a draft on top of the edits settled meanwhile. Edits that have become impossible
    /// are left out: they are reported when the task is done, and do not count against the edit that is
    /// checked next.
    fn judge_anew(&self, plan: &Plan, added: &[DependencyNode<O, S>], draft: &mut PassDraft<O, S>) {
        draft.layer = EditLayer::starting_at(plan.overlay.end());
        for op in &draft.ops {
            let _ = self.effect_of(plan, added, &mut draft.layer, op, Occasion::Merge);
        }
    }

    /// The effect of an edit in the graph with `layer` on top. The layer is updated.
    fn effect_of(
        &self,
        plan: &Plan,
        added: &[DependencyNode<O, S>],
        layer: &mut EditLayer,
        op: &Op<O, S>,
        occasion: Occasion,
    ) -> Result<EditEffect, Rejection> {
        if op.moot || (occasion != Occasion::Call && self.coincides(plan, added, layer, op)) {
            return Ok(EditEffect::Nothing);
        }
        let judge = Judge { plan, names: &self.wiring.names, kept: &self.kept, occasion };
        let join = op.node.as_ref().map(|node| node.settings.join).unwrap_or_default();
        judge.judge(layer, &op.edit, join)
    }

    /// The node of that name in the current graph.
    pub(crate) fn find(&self, name: &str) -> Option<u32> {
        let base = || self.wiring.names.id(name);
        self.pass().plan.look(|graph| graph.named(name)).unwrap_or_else(base)
    }

    /// The nodes that run or wait for an answer, in order of declaration.
    pub(crate) fn started(&self) -> Vec<String> {
        let pass = self.pass();
        let started = pass.plan.started();
        started.filter_map(|node| Some(self.name_of(&pass.plan, node)?.to_string())).collect()
    }

    fn name_of(&self, plan: &Plan, node: u32) -> Option<Arc<str>> {
        let added = || plan.look(|graph| graph.added(node).map(|added| Arc::clone(&added.name)));
        self.wiring.names.get(node as usize).cloned().or_else(added)
    }

    /// The nodes that may start, in the order in which they would start.
    pub(crate) fn upcoming(&self) -> Vec<String> {
        let pass = self.pass();
        let upcoming = pass.plan.upcoming();
        upcoming.filter_map(|node| Some(self.name_of(&pass.plan, node)?.to_string())).collect()
    }

    /// Takes the edits of a finished task.
    pub(crate) fn take(&self, index: u32) -> Option<Transaction<O, S>> {
        let mut pass = self.pass();
        if pass.drafts.is_empty() {
            return None;
        }
        let draft = pass.drafts.remove(&index)?;
        (!draft.ops.is_empty()).then_some(Transaction { ops: draft.ops })
    }

    /// Applies the edits of a transaction that was submitted before the pass, all or none.
    ///
    /// # Errors
    /// The first edit that is not possible.
    pub(crate) fn settle_before(
        &self,
        transaction: &mut Transaction<O, S>,
    ) -> Result<SettledEdits, EditError> {
        self.make_all(transaction, Occasion::Call)
    }

    /// Applies the edits of a finished task. An edit that another task has made as well is applied once.
    ///
    /// # Errors
    /// The first edit that is no longer possible.
    pub(crate) fn settle(&self, transaction: &mut Transaction<O, S>) -> Result<SettledEdits, EditError> {
        self.make_all(transaction, Occasion::Merge)
    }

    /// Applies the edits of an earlier call. Edits that the compiled graph already contains are no conflict;
    /// names that the other edits need and the graph lacks are added to `gone`.
    pub(crate) fn restore(&self, transaction: Transaction<O, S>, gone: &mut Vec<String>) -> SettledEdits {
        let mut ops = transaction.ops;
        ops.retain_mut(|op| {
            let made = self.make(op);
            made.map_err(|why| gone.push(lacking(&op.edit, why))).is_ok()
        });
        let mut pass = self.pass();
        let mut layer = EditLayer::starting_at(pass.plan.overlay.end());
        let effects = ops.iter().map(|op| {
            let effect = self.effect_of(&pass.plan, &pass.added, &mut layer, op, Occasion::Replay);
            effect.unwrap_or_else(|why| {
                let removes = matches!(op.edit, GraphEdit::RemoveNode { .. });
                match why {
                    Rejection::EdgeExists | Rejection::NoSuchEdge => {}
                    Rejection::UnknownNode { .. } if removes => {}
                    why => gone.push(lacking(&op.edit, why)),
                }
                EditEffect::Nothing
            })
        });
        let effects: Vec<EditEffect> = effects.collect();
        pass.apply_effects(&ops, effects, layer)
    }

    fn make_all(
        &self,
        transaction: &mut Transaction<O, S>,
        occasion: Occasion,
    ) -> Result<SettledEdits, EditError> {
        for op in &mut transaction.ops {
            self.make(op).map_err(|why| EditError::new(op.edit.clone(), why))?;
        }
        let mut pass = self.pass();
        let mut layer = EditLayer::starting_at(pass.plan.overlay.end());
        let effects = transaction.ops.iter().map(|op| {
            let effect = self.effect_of(&pass.plan, &pass.added, &mut layer, op, occasion);
            effect.map_err(|why| EditError::new(op.edit.clone(), why))
        });
        let effects: Vec<EditEffect> = effects.collect::<Result<_, _>>()?;
        Ok(pass.apply_effects(&transaction.ops, effects, layer))
    }

    /// Whether another task has added the same node, and the edits in `layer` have not removed it.
    fn coincides(
        &self,
        plan: &Plan,
        added: &[DependencyNode<O, S>],
        layer: &EditLayer,
        op: &Op<O, S>,
    ) -> bool {
        let GraphEdit::AddNode { name, .. } = &op.edit else { return false };
        let Some(node) = plan.look_with(layer, |graph| graph.named(name)).flatten() else { return false };
        let other = node.checked_sub(self.wiring.base.nodes).and_then(|at| added.get(at as usize));
        op.node.as_ref().zip(other).is_some_and(|(node, other)| node.is(other))
    }

    /// Makes the node of an edit, if it comes from a template.
    fn make(&self, op: &mut Op<O, S>) -> Result<(), Rejection> {
        let GraphEdit::AddNode { name, template, args } = &op.edit else { return Ok(()) };
        let Some(template) = template else {
            return if self.stored { Err(Rejection::NeedsTemplate) } else { Ok(()) };
        };
        if op.node.is_none() {
            let factory = self.wiring.templates.get(&**template).ok_or_else(|| {
                let known = self.wiring.templates.keys().map(|known| &**known);
                let nearest = nearest(template, known).map(str::to_owned);
                Rejection::UnknownTemplate { name: template.clone(), nearest }
            })?;
            let node = factory(args).map_err(|error| Rejection::BadArguments(error.to_string()))?;
            op.node = Some(node.made_of(template, args));
        }
        let missing = op.node.as_ref().and_then(|node| self.wiring.missing(&node.settings));
        match missing {
            Some(missing) => Err(Rejection::Unfit(format!("node `{name}` {missing}"))),
            None => Ok(()),
        }
    }
}

impl<O, S> PassProgress<O, S> {
    /// Applies the edits of a transaction, which are possible and whose node places are in `layer`.
    fn apply_effects(
        &mut self,
        ops: &[Op<O, S>],
        effects: Vec<EditEffect>,
        layer: EditLayer,
    ) -> SettledEdits {
        let plan = &mut self.plan;
        let first = layer.first;
        let mut made = SettledEdits::default();
        for (effect, op) in effects.into_iter().zip(ops) {
            if !matches!(effect, EditEffect::Nothing) {
                made.edits.push(op.edit.clone());
            }
            match effect {
                EditEffect::AddNode(name, join) => {
                    plan.add_node(Arc::clone(&name), join);
                    self.added.extend(op.node.clone());
                    made.added.push(name);
                }
                EditEffect::AddEdge(edge, front) => plan.add_edge(edge, front),
                EditEffect::RemoveEdge(edge) => plan.remove_edge(edge),
                EditEffect::RemoveNode(name, node) => plan.remove_node(name, node),
                EditEffect::Skip(nodes) => nodes.into_iter().for_each(|node| plan.skip(node)),
                EditEffect::Nothing => {}
            }
        }
        plan.overlay.adopt_places(layer);
        plan.enter_roots(first);
        self.settled += u64::from(!made.edits.is_empty());
        made
    }
}
