//! A pass in which several nodes run at once, as somebody sees it who knows when each of them begins, edits
//! and ends.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::{Edit, Model, Pass, Report, output};

pub(crate) struct Course {
    pass: Pass,
    drafts: HashMap<usize, Draft>,
    /// How many transactions have changed the graph.
    settled: usize,
    /// What nodes began with.
    sources: HashMap<usize, Vec<usize>>,
    /// They have asked, and whether they were answered.
    asked: BTreeMap<usize, bool>,
    /// Those that were answered and are to begin again.
    again: HashSet<usize>,
    order: Vec<(String, String)>,
    dropped: Vec<String>,
}

/// What a node has edited that runs.
struct Draft {
    /// And whether each changed nothing because its target ran.
    edits: Vec<(Edit, bool)>,
    /// The pass as the node sees it, when so many transactions were settled.
    view: Pass,
    above: usize,
}

impl Course {
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

    /// The next node begins, and what it gives. Those that are skipped are done at once.
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
            return Some((name.clone(), self.gives(node)));
        }
    }

    fn gives(&self, node: usize) -> String {
        let names = &self.pass.graph.names;
        output(&names[node], self.sources[&node].iter().map(|source| &*names[*source]))
    }

    /// Whether an edit is accepted.
    pub(crate) fn edit(&mut self, name: &str, edit: &Edit) -> bool {
        let node = self.node(name);
        let fresh = || Draft { edits: Vec::new(), view: self.pass.clone(), above: self.settled };
        let draft = self.drafts.entry(node).or_insert_with(fresh);
        if draft.above != self.settled {
            draft.above = self.settled;
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

    /// A node is done: its edits are made, all or none.
    pub(crate) fn end(&mut self, name: &str) {
        let node = self.node(name);
        let draft = self.drafts.remove(&node);
        self.asked.remove(&node);
        if draft.is_some_and(|draft| self.settle(&draft.edits).is_none()) {
            self.dropped.push(name.to_owned());
        }
        let gives = self.gives(node);
        self.pass.finish(node);
        if node < self.pass.permanent {
            self.pass.kept.insert(name.to_owned(), gives.clone());
        }
        self.order.push((name.to_owned(), gives));
    }

    fn settle(&mut self, edits: &[(Edit, bool)]) -> Option<()> {
        let (mut view, mut made) = (self.pass.clone(), self.pass.clone());
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

    /// A node asks instead of ending.
    pub(crate) fn ask(&mut self, name: &str) {
        let node = self.node(name);
        self.drafts.remove(&node);
        self.asked.insert(node, false);
    }

    /// The call is over: who ran and has not asked has not begun.
    pub(crate) fn leave(&mut self) {
        self.drafts.clear();
        self.pass.running.retain(|node| self.asked.contains_key(node));
        self.again = self.asked.iter().filter(|(_, answered)| **answered).map(|(node, _)| *node).collect();
    }

    /// A node is answered between two calls.
    pub(crate) fn answer(&mut self, name: &str) {
        let node = self.node(name);
        self.asked.insert(node, true);
        self.again.insert(node);
    }

    /// Who waits for an answer, in order.
    pub(crate) fn waiting(&self) -> Vec<String> {
        self.asked.iter().filter(|(_, answered)| !**answered).map(|(node, _)| self.name(*node)).collect()
    }

    pub(crate) fn is_answered(&self, name: &str) -> bool {
        self.asked.get(&self.node(name)) == Some(&true)
    }

    /// Who could go on between two calls, in order, those among them that wait for answers.
    pub(crate) fn next(&self) -> Vec<String> {
        let next = |node: &&usize| self.asked.contains_key(node) || self.may_start(**node);
        self.pass.queue.iter().filter(next).map(|node| self.name(*node)).collect()
    }

    pub(crate) fn kept(&self) -> BTreeMap<String, String> {
        self.pass.kept.clone()
    }

    /// Whose edits were dropped.
    pub(crate) fn dropped(&self) -> &[String] {
        &self.dropped
    }

    pub(crate) fn report(&self) -> Report {
        Report { order: self.order.clone(), not_run: self.pass.not_run(), refused: Vec::new() }
    }
}

/// Whether an edit changes nothing because the node that it leads to has begun.
fn is_moot(view: &Pass, edit: &Edit) -> bool {
    match edit {
        Edit::AddEdge(_, to) | Edit::PrependEdge(_, to) | Edit::RemoveEdge(_, to) => {
            view.find(to).is_some_and(|to| view.running.contains(&to))
        }
        _ => false,
    }
}

/// Whether others have settled just that edit, as one sees it who has edited more.
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
            let was_there = view.graph.gone.iter().any(|node| view.graph.names[*node] == *name);
            was_there && view.find(name).is_none()
        }
        Edit::Skip(_) => false,
    }
}
