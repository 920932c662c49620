//! [`Outputs`]: the outputs of a dependency graph's nodes. For the engine they are a state whose channels are
//! the nodes.

mod report;
mod stored;

use std::fmt;
use std::ops::Index;
use std::sync::{Arc, OnceLock};

pub use report::{NotRun, NotRunReason};
pub(crate) use report::{Report, StoredDropped};

use super::deps::{HeldOutput, Slot};
use super::edits::{Op, PassDesk};
use crate::context::TaskRequest;
use crate::graph::node_names::NodeNames;
use crate::state::{Channel, Lifetime, State, StateError, WriteKind};
use crate::words::{DroppedEdits, GraphEdit, clones};

/// The channel of a pass's input.
const INPUT: &str = "__input__";

/// The channel of a finished pass's report.
const PASS: &str = "__pass__";

/// The output of a node: any value that is cheap to clone. Wrap large outputs in an `Arc`.
pub trait Output: Clone + Send + Sync + 'static {}

impl<T: Clone + Send + Sync + 'static> Output for T {}

/// The input of a pass.
pub trait PassInput: Send + Sync + 'static {}

impl<T: Send + Sync + 'static> PassInput for T {}

/// The outputs of a pass, by the names of its nodes, and outputs of earlier passes for nodes that did not run
/// in this one.
///
/// ```
/// use agentgraph::prelude::*;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// let graph = DependencyGraph::<u64>::new()
///     .node("two", || 2)
///     .node("square", |deps: Deps<u64>| deps[0] * deps[0])
///     .edge("two", "square")
///     .compile()?;
/// let outputs = graph.invoke(()).finish().await?;
/// assert_eq!(outputs["square"], 4);
/// assert_eq!(outputs.get("cube"), None);
/// let in_order: Vec<(&str, &u64)> = outputs.iter().collect();
/// assert_eq!(in_order, [("two", &2), ("square", &4)]);
/// # Ok(())
/// # }
/// ```
pub struct Outputs<O, S = ()> {
    table: OutputTable,
    /// Slots of temporary nodes come after those of the graph.
    pub(crate) slots: Vec<Slot<O>>,
    /// The nodes that ran in this pass, in order.
    pub(in crate::dependency) order: Vec<u32>,
    /// The same nodes as a bit set.
    ran: Vec<u64>,
    /// The names of temporary nodes.
    pub(crate) temporary: Vec<Arc<str>>,
    pub(in crate::dependency) input: Option<Arc<S>>,
    /// The edits made before the pass.
    pub(crate) before: Vec<Op<O, S>>,
    pub(crate) report: Report,
    /// The edits of this pass, in order.
    pub(crate) edits: Vec<GraphEdit>,
    /// Whether the pass is over, so that its record contains its outcome.
    is_over: bool,
    /// The view of a task; the other fields are then empty.
    task: Option<View<O, S>>,
}

/// The view of a task on its pass.
struct View<O, S> {
    held: Option<Arc<[HeldOutput<O>]>>,
    desk: Arc<PassDesk<O, S>>,
}

impl<O, S> Outputs<O, S> {
    fn without_slots(table: &OutputTable) -> Self {
        Outputs {
            table: table.clone(),
            slots: Vec::new(),
            order: Vec::new(),
            ran: Vec::new(),
            temporary: Vec::new(),
            input: None,
            before: Vec::new(),
            report: Report::default(),
            edits: Vec::new(),
            is_over: false,
            task: None,
        }
    }

    /// The output of a node in this pass. A skipped node has its last output.
    pub fn get(&self, name: &str) -> Option<&O> {
        let node = self.find(name)?;
        self.slots.get(node as usize)?.value().filter(|_| self.has_run(node))
    }

    /// The last output of a node, of any pass. Temporary nodes only have outputs of this pass.
    pub fn last(&self, name: &str) -> Option<&O> {
        self.slots.get(self.find(name)? as usize)?.value()
    }

    /// The outputs of this pass, in the order in which the nodes finished.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &O)> {
        self.order
            .iter()
            .filter_map(|node| Some((self.name(*node), self.slots.get(*node as usize)?.value()?)))
    }

    /// The nodes of this pass, in the order in which they finished.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.order.iter().map(|node| self.name(*node))
    }

    /// The number of nodes that finished in this pass.
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Whether no node finished in this pass.
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// The nodes that did not run in this pass, with the reasons.
    pub fn not_run(&self) -> &[NotRun] {
        &self.report.not_run
    }

    /// The dropped edits: parallel nodes had made them impossible when their nodes were done.
    pub fn dropped(&self) -> &[DroppedEdits] {
        &self.report.dropped
    }

    /// The edits of this pass, in order; those made before it come first. The stream of the pass reports
    /// which node made them;
    /// [`CompiledDependencyGraph::mermaid_of`](crate::CompiledDependencyGraph::mermaid_of) draws the graph
    /// with them.
    pub fn edits(&self) -> &[GraphEdit] {
        &self.edits
    }

    /// The input of the pass.
    pub fn input(&self) -> Option<&S> {
        self.input.as_deref()
    }

    pub(crate) fn name(&self, node: u32) -> &str {
        let names = &self.table.0.names;
        let temporary = || self.temporary.get(node as usize - names.len());
        names.get(node as usize).or_else(temporary).map_or("?", |name| name)
    }

    pub(crate) fn shared_name(&self, node: u32) -> Option<Arc<str>> {
        let names = &self.table.0.names;
        let temporary = || self.temporary.get(node as usize - names.len());
        names.get(node as usize).or_else(temporary).cloned()
    }

    /// Whether each node of the graph has an output; empty if none has.
    pub(crate) fn kept(&self) -> Vec<bool> {
        let slots = self.slots.iter().take(self.table.0.names.len());
        let kept: Vec<bool> = slots.map(|slot| slot.value().is_some()).collect();
        if kept.contains(&true) { kept } else { Vec::new() }
    }

    pub(crate) fn all_names(&self) -> [&[Arc<str>]; 2] {
        [&self.table.0.names, &self.temporary]
    }

    fn find(&self, name: &str) -> Option<u32> {
        let known = self.table.0.names.id(name).filter(|_| self.temporary.is_empty());
        known.or_else(|| {
            // A temporary node may replace a removed node of the same name.
            let at = self.temporary.iter().rposition(|known| **known == *name);
            let temporary = at.map(|at| (self.table.0.names.len() + at) as u32);
            temporary.filter(|node| self.has_run(*node)).or_else(|| self.table.0.names.id(name))
        })
    }

    fn has_run(&self, node: u32) -> bool {
        self.ran.get(node as usize / 64).is_some_and(|word| word >> (node % 64) & 1 == 1)
    }

    /// Marks a node as done. Its output is in its slot.
    #[inline]
    pub(crate) fn finish(&mut self, node: u32) {
        self.order.push(node);
        let at = node as usize / 64;
        if self.ran.len() <= at {
            self.ran.resize((self.table.0.names.len() / 64).max(at) + 1, 0);
        }
        self.ran[at] |= 1 << (node % 64);
    }

    /// Adds the slot of a temporary node.
    pub(crate) fn add_temporary(&mut self, name: Arc<str>) -> u32 {
        self.temporary.push(name);
        self.slots.push(Slot::Empty);
        self.slots.len() as u32 - 1
    }

    /// Sets the edits made before the pass.
    fn set_before(&mut self, before: Vec<Op<O, S>>) {
        self.edits = before.iter().map(|op| op.edit.clone()).collect();
        self.before = before;
    }

    /// The edits in effect, without skips, and the nodes that are still to be skipped.
    pub(crate) fn edits_that_hold(&self) -> (Vec<GraphEdit>, Vec<String>) {
        let is_skip = |edit: &&GraphEdit| matches!(edit, GraphEdit::Skip { .. });
        let (skips, edits): (Vec<&GraphEdit>, Vec<_>) = self.edits.iter().partition(is_skip);
        let skipped = skips.into_iter().flat_map(|edit| match edit {
            GraphEdit::Skip { nodes } => &nodes[..],
            _ => &[],
        });
        let to_come = |node: &&String| !self.is_over && self.get(node).is_none();
        let skips = skipped.filter(to_come).cloned().collect();
        (edits.into_iter().cloned().collect(), skips)
    }

    /// Clears the parts that end when a pass starts.
    fn forget_pass(&mut self) {
        self.order.clear();
        self.ran.clear();
        self.slots.truncate(self.table.0.names.len());
        self.temporary.clear();
        self.before.clear();
        self.input = None;
        self.report = Report::default();
        self.edits.clear();
        self.is_over = false;
    }
}

/// The view of a task. It is a separate value, so that no task's reference makes the loop copy the outputs.
impl<O: Output, S: PassInput> Outputs<O, S> {
    pub(crate) fn view(&self, held: Option<Arc<[HeldOutput<O>]>>, desk: &Arc<PassDesk<O, S>>) -> Self {
        let task = Some(View { held, desk: Arc::clone(desk) });
        Outputs { input: self.input.clone(), task, ..Outputs::without_slots(&self.table) }
    }

    /// Gives the view of a task other outputs.
    pub(crate) fn hold(&mut self, held: Option<Arc<[HeldOutput<O>]>>) {
        if let Some(view) = &mut self.task {
            view.held = held;
        }
    }

    pub(super) fn held(&self) -> Option<Arc<[HeldOutput<O>]>> {
        self.task.as_ref().and_then(|view| view.held.clone())
    }

    pub(super) fn begin_attempt(&self, request: TaskRequest) {
        if let Some(view) = &self.task {
            view.desk.begin_attempt(request);
        }
    }
}

impl<O, S> Index<&str> for Outputs<O, S> {
    type Output = O;

    /// # Panics
    /// If the node has no output in this pass, like a map.
    #[allow(clippy::panic)]
    fn index(&self, name: &str) -> &O {
        match self.get(name) {
            Some(output) => output,
            None => panic!("`{name}` has no output in this pass"),
        }
    }
}

clones!([O, S] View<O, S> { held, desk });
clones!([O: Clone, S] Outputs<O, S> {
    table, slots, order, ran, temporary, input, before, report, edits, is_over, task
});

impl<O: fmt::Debug, S> fmt::Debug for Outputs<O, S> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_map().entries(self.iter()).finish()
    }
}

/// The nodes of a dependency graph as channels. Cheap to clone.
#[derive(Clone, Debug)]
pub struct OutputTable(Arc<NodeTable>);

#[derive(Debug)]
struct NodeTable {
    names: Arc<NodeNames>,
    /// Built when a checkpointer needs them, which saves memory in large graphs without one.
    channels: OnceLock<Vec<Channel>>,
}

impl OutputTable {
    pub(super) fn of(names: Arc<NodeNames>) -> Self {
        OutputTable(Arc::new(NodeTable { names, channels: OnceLock::new() }))
    }

    fn nodes(&self) -> usize {
        self.0.names.len()
    }

    fn channels(&self) -> &[Channel] {
        self.0.channels.get_or_init(|| {
            let channel = |name: String, lifetime| Channel {
                name: name.into(),
                reducer: "output".into(),
                exclusive: true,
                lifetime,
                aliases: (&[]).into(),
                secret: false,
            };
            let nodes = self.0.names.iter().map(|name| channel(name.to_string(), Lifetime::Thread));
            nodes.chain([INPUT, PASS].map(|name| channel(name.to_owned(), Lifetime::Run))).collect()
        })
    }
}

/// The changes of a step in a pass: outputs by the names of their nodes.
pub struct OutputsUpdate<O, S = ()> {
    /// The output of the task that returns the update.
    pub(crate) own: Option<O>,
    pub(crate) outputs: Vec<(Arc<str>, Arc<O>)>,
    pub(crate) begins: Option<Box<PassBegin<O, S>>>,
    pub(crate) report: Option<Box<Report>>,
}

/// The start of a pass.
pub(crate) struct PassBegin<O, S> {
    pub(in crate::dependency) input: Arc<S>,
    pub(crate) before: Vec<Op<O, S>>,
}

impl<O, S> OutputsUpdate<O, S> {
    pub(super) fn own(output: O) -> Self {
        OutputsUpdate { own: Some(output), ..Self::default() }
    }

    pub(crate) fn output(name: Arc<str>, output: Arc<O>) -> Self {
        OutputsUpdate { outputs: vec![(name, output)], ..Self::default() }
    }

    pub(crate) fn begin(input: S) -> Self {
        let begins = PassBegin { input: Arc::new(input), before: Vec::new() };
        OutputsUpdate { begins: Some(Box::new(begins)), ..Self::default() }
    }

    /// The outputs, by the names of their nodes.
    pub fn outputs(&self) -> impl Iterator<Item = (&str, &O)> {
        self.outputs.iter().map(|(name, output)| (&**name, &**output))
    }
}

impl<O, S> Default for OutputsUpdate<O, S> {
    fn default() -> Self {
        OutputsUpdate { own: None, outputs: Vec::new(), begins: None, report: None }
    }
}

clones!([O, S] PassBegin<O, S> { input, before });
clones!([O: Clone, S] OutputsUpdate<O, S> { own, outputs, begins, report });

impl<O: fmt::Debug, S> fmt::Debug for OutputsUpdate<O, S> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_map().entries(self.outputs()).finish()
    }
}

impl<O: Output, S: PassInput> State for Outputs<O, S> {
    type Schema = OutputTable;
    type Update = OutputsUpdate<O, S>;

    fn channels(table: &OutputTable) -> &[Channel] {
        table.channels()
    }

    fn initial(table: &OutputTable) -> Self {
        let mut outputs = Outputs::without_slots(table);
        outputs.slots.resize_with(table.nodes(), || Slot::Empty);
        outputs
    }

    fn apply(&mut self, _: &OutputTable, update: OutputsUpdate<O, S>) -> Result<(), StateError> {
        if let Some(begins) = update.begins {
            self.input = Some(begins.input);
            self.set_before(begins.before);
        }
        for (name, output) in update.outputs {
            let known = self.table.0.names.id(&name);
            let node = known.unwrap_or_else(|| self.add_temporary(name));
            self.slots[node as usize] = Slot::Shared(output);
            self.finish(node);
        }
        if let Some(report) = update.report {
            self.report = *report;
            self.is_over = true;
        }
        Ok(())
    }

    fn peek<R>(
        &mut self,
        table: &OutputTable,
        update: &mut OutputsUpdate<O, S>,
        look: impl FnOnce(&Self) -> R,
    ) -> Result<R, StateError> {
        let mut after = self.clone();
        after.apply(table, update.clone())?;
        Ok(look(&after))
    }

    fn reset(&mut self, _: &OutputTable, lifetime: Lifetime) {
        if lifetime == Lifetime::Run {
            self.forget_pass();
        }
    }

    fn writes(table: &OutputTable, update: &OutputsUpdate<O, S>, each: &mut dyn FnMut(usize, WriteKind)) {
        for (name, _) in &update.outputs {
            if let Some(node) = table.0.names.id(name) {
                each(node as usize, WriteKind::Reduce);
            }
        }
        if update.begins.is_some() {
            each(table.nodes(), WriteKind::Reduce);
        }
        if update.report.is_some() {
            each(table.nodes() + 1, WriteKind::Reduce);
        }
    }

    fn discard(table: &OutputTable, update: &mut OutputsUpdate<O, S>, channel: usize) {
        update.outputs.retain(|(name, _)| table.0.names.id(name).is_none_or(|node| node as usize != channel));
        if channel == table.nodes() {
            update.begins = None;
        }
        if channel == table.nodes() + 1 {
            update.report = None;
        }
    }

    fn compose(
        _: &OutputTable,
        update: &mut OutputsUpdate<O, S>,
        later: OutputsUpdate<O, S>,
    ) -> Result<(), StateError> {
        update.outputs.extend(later.outputs);
        update.begins = later.begins.or(update.begins.take());
        update.report = later.report.or(update.report.take());
        Ok(())
    }
}
