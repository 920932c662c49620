//! The reference model of a pass in which several nodes run at once. The caller reports when each of them
//! starts, edits, asks and ends.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::{Edit, Model, Pass, Report, output};

pub(crate) struct Course {
    pass: Pass,
    drafts: HashMap<usize, Draft>,
    /// The number of transactions that have changed the graph.
    settled: usize,
    /// The dependencies that each node has started with.
    sources: HashMap<usize, Vec<usize>>,
    /// The nodes that have asked, each with whether it was answered.
    asked: BTreeMap<usize, bool>,
    /// The answered nodes that are to start again.
    again: HashSet<usize>,
    /// The names and the outputs of finished nodes, in order.
    order: Vec<(String, String)>,
    /// The nodes whose edits were dropped.
    dropped: Vec<String>,
}

/// The edits of a running node.
struct Draft {
    /// The edits, each with whether it changes nothing because its target runs.
    edits: Vec<(Edit, bool)>,
    /// The pass as the node sees it.
    view: Pass,
    /// The number of settled transactions that `view` is based on.
    based_on: usize,
}

impl Course {
    /// Begins a pass after the edits in `before`; `None` if one of them is refused.
    pub(crate) fn begin(model: &Model, before: &[Edit]) -> Option<Self> {
        let permanent = model.graph.names.len();
        let mut pass = Pass {
            queue: (0..permanent).filter(|node| model.graph.root[*node]).collect(),
            done: Vec::new(),
            running: HashSet::new(),
            kept: model.kept.clone(),
            permanent,
            graph: model.graph.clone(),
        };
        before.iter().try_for_each(|edit| pass.edit(edit))?;
        pass.enter_roots(permanent);
        Some(Course {
            pass,
            drafts: HashMap::new(),
            settled: 0,
            sources: HashMap::new(),
            asked: BTreeMap::new(),
            again: HashSet::new(),
            order: Vec::new(),
            dropped: Vec::new(),
        })
    }

    fn node(&self, name: &str) -> usize {
        self.pass.find(name).unwrap()
    }

    fn name(&self, node: usize) -> String {
        self.pass.graph.names[node].clone()
    }

    pub(crate) fn is_permanent(&self, name: &str) -> bool {
        self.node(name) < self.pass.permanent
    }

    fn may_start(&self, node: usize) -> bool {
        let begun = self.pass.running.contains(&node) || self.pass.done.contains(&node);
        self.again.contains(&node) || (!begun && self.pass.is_ready(node))
    }

    /// Starts the next node and returns its name and its output. Finishes the skipped nodes before it.
    pub(crate) fn start(&mut self) -> Option<(String, String)> {
        loop {
            let node = self.pass.queue.iter().copied().find(|node| self.may_start(*node))?;
            let name = self.name(node);
            if self.pass.graph.skips.contains(&node) {
                self.order.push((name.clone(), self.pass.kept[&name].clone()));
                self.pass.finish(node);
                continue;
            }
            if !self.again.remove(&node) {
                let sources = self.pass.graph.sources[node].iter().copied();
                let sources = sources.filter(|source| self.pass.done.contains(source)).collect();
                self.sources.insert(node, sources);
            }
            self.pass.running.insert(node);
            return Some((name.clone(), self.output_of(node)));
        }
    }

    fn output_of(&self, node: usize) -> String {
        let names = &self.pass.graph.names;
        output(&names[node], self.sources[&node].iter().map(|source| &*names[*source]))
    }

    /// Adds an edit to the draft of a node. Returns whether it is accepted.
    pub(crate) fn edit(&mut self, name: &str, edit: &Edit) -> bool {
        let node = self.node(name);
        let fresh = || Draft { edits: Vec::new(), view: self.pass.clone(), based_on: self.settled };
        let draft = self.drafts.entry(node).or_insert_with(fresh);
        if draft.based_on != self.settled {
            draft.based_on = self.settled;
            draft.view = self.pass.clone();
            for (edit, _) in draft.edits.iter().filter(|(_, moot)| !moot) {
                if !coincides(&self.pass, &draft.view, edit) {
                    let _ = draft.view.edit(edit);
                }
            }
        }
        draft.view.done.clone_from(&self.pass.done);
        draft.view.running.clone_from(&self.pass.running);
        let moot = is_moot(&draft.view, edit);
        let accepted = draft.view.edit(edit).is_some();
        if accepted {
            draft.edits.push((edit.clone(), moot));
        }
        accepted
    }

    /// Ends a node: its edits are applied, all or none.
    pub(crate) fn end(&mut self, name: &str) {
        let node = self.node(name);
        let draft = self.drafts.remove(&node);
        self.asked.remove(&node);
        if draft.is_some_and(|draft| self.settle(&draft.edits).is_none()) {
            self.dropped.push(name.to_owned());
        }
        let value = self.output_of(node);
        self.pass.finish(node);
        if node < self.pass.permanent {
            self.pass.kept.insert(name.to_owned(), value.clone());
        }
        self.order.push((name.to_owned(), value));
    }

    /// Applies the edits of a draft to the pass; `None` if one of them is refused.
    fn settle(&mut self, edits: &[(Edit, bool)]) -> Option<()> {
        let mut view = self.pass.clone();
        let mut made = self.pass.clone();
        let mut changes = false;
        for (edit, _) in edits.iter().filter(|(_, moot)| !moot) {
            if coincides(&self.pass, &view, edit) {
                continue;
            }
            let moot = is_moot(&view, edit);
            view.edit(edit)?;
            if !moot {
                changes = true;
                made.edit(edit).unwrap();
            }
        }
        made.enter_roots(self.pass.graph.names.len());
        self.pass = made;
        self.settled += usize::from(changes);
        Some(())
    }

    /// Ends a node with a question: its edits are discarded.
    pub(crate) fn ask(&mut self, name: &str) {
        let node = self.node(name);
        self.drafts.remove(&node);
        self.asked.insert(node, false);
    }

    /// Ends the call: a node that ran and has not asked will start again.
    pub(crate) fn end_call(&mut self) {
        self.drafts.clear();
        self.pass.running.retain(|node| self.asked.contains_key(node));
        self.again = self.asked.iter().filter(|(_, answered)| **answered).map(|(node, _)| *node).collect();
    }

    /// Answers a node between two calls.
    pub(crate) fn answer(&mut self, name: &str) {
        let node = self.node(name);
        self.asked.insert(node, true);
        self.again.insert(node);
    }

    /// Returns the nodes that wait for an answer, in order.
    pub(crate) fn waiting(&self) -> Vec<String> {
        self.asked.iter().filter(|(_, answered)| !**answered).map(|(node, _)| self.name(*node)).collect()
    }

    pub(crate) fn is_answered(&self, name: &str) -> bool {
        self.asked.get(&self.node(name)) == Some(&true)
    }

    /// Returns the nodes that are next between two calls, in order, including those that wait for answers.
    pub(crate) fn next(&self) -> Vec<String> {
        let next = |node: &&usize| self.asked.contains_key(node) || self.may_start(**node);
        self.pass.queue.iter().filter(next).map(|node| self.name(*node)).collect()
    }

    pub(crate) fn kept(&self) -> BTreeMap<String, String> {
        self.pass.kept.clone()
    }

    pub(crate) fn dropped(&self) -> &[String] {
        &self.dropped
    }

    pub(crate) fn report(&self) -> Report {
        Report { order: self.order.clone(), not_run: self.pass.not_run(), refused: Vec::new() }
    }
}

/// Whether an edit changes nothing because the target of its edge runs.
fn is_moot(view: &Pass, edit: &Edit) -> bool {
    match edit {
        Edit::AddEdge(_, to) | Edit::PrependEdge(_, to) | Edit::RemoveEdge(_, to) => {
            view.find(to).is_some_and(|to| view.running.contains(&to))
        }
        _ => false,
    }
}

/// Whether another node has already settled the same edit. `view` is the settled pass with the earlier edits
/// of this node.
fn coincides(settled: &Pass, view: &Pass, edit: &Edit) -> bool {
    let edge = |from: &String, to: &String| Some((view.find(from)?, view.find(to)?));
    let is_added = |from: &String, to: &String, front: bool| {
        edge(from, to).is_some_and(|(from, to)| {
            view.graph.sources[to].contains(&from) && settled.graph.added.contains(&(from, to, front))
        })
    };
    match edit {
        Edit::AddNode(name, _) => {
            view.find(name).is_some_and(|node| node >= settled.permanent && node < settled.graph.names.len())
        }
        Edit::AddEdge(from, to) => is_added(from, to, false),
        Edit::PrependEdge(from, to) => is_added(from, to, true),
        Edit::RemoveEdge(from, to) => edge(from, to).is_some_and(|(from, to)| {
            !view.graph.sources[to].contains(&from) && settled.graph.cut.contains(&(from, to))
        }),
        Edit::RemoveNode(name) => {
            let was_there = view.graph.removed.iter().any(|node| view.graph.names[*node] == *name);
            was_there && view.find(name).is_none()
        }
        Edit::Skip(_) => false,
    }
}
