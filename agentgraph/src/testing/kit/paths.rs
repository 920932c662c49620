//! Paths of nodes: the names of the graphs around a node, and its own, separated by `/`.

use std::any::Any;
use std::collections::BTreeSet;

use crate::erased::observed::{DecideLater, ObservedCall, ObservedTask, Observer, path_in};
use crate::error::nearest;
use agentgraph_checkpoint::engine::Lock;

/// The path of a node in the subgraph with this namespace.
pub(super) fn path_of(namespace: &str, node: &str) -> String {
    let mut path = String::new();
    for part in namespace.split('|').filter(|part| !part.is_empty()) {
        let name = part.split(':').next().unwrap_or(part);
        path = path_in(&path, &name.replace("%3A", ":").replace("%7C", "|").replace("%25", "%")).to_string();
    }
    path_in(&path, node).to_string()
}

/// The paths of all nodes of a graph that are not temporary.
#[derive(Default)]
pub(super) struct Paths(Lock<BTreeSet<String>>);

impl Paths {
    /// Why no node has this path.
    pub(super) fn problem(&self, path: &str) -> Option<String> {
        let known = self.0.lock();
        if known.contains(path) {
            return None;
        }
        let hint = match nearest(path, known.iter().map(String::as_str)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("its nodes are {}", known.iter().cloned().collect::<Vec<_>>().join(", ")),
        };
        Some(format!("the graph under test has no node `{path}`; {hint}"))
    }
}

/// Collects the paths while the graph is copied.
impl Observer for Paths {
    fn replacement(&self, path: &str) -> Option<&(dyn Any + Send + Sync)> {
        self.0.lock().insert(path.to_owned());
        None
    }

    fn unfit(&self, _: &str, _: &'static str) {}

    fn called(&self, _: ObservedTask) -> Box<dyn ObservedCall> {
        Box::new(NeverCalled)
    }

    fn decides(&self, _: &str, decide: &mut dyn FnMut() -> String, _: DecideLater) {
        decide();
    }
}

/// The copy that the paths are read from never runs.
struct NeverCalled;

impl ObservedCall for NeverCalled {
    fn poll(
        &mut self,
        cx: &mut std::task::Context<'_>,
        poll: &mut dyn FnMut(&mut std::task::Context<'_>) -> Option<crate::erased::observed::ObservedEnd>,
    ) -> std::task::Poll<Result<(), crate::error::BoxError>> {
        match poll(cx) {
            Some(_) => std::task::Poll::Ready(Ok(())),
            None => std::task::Poll::Pending,
        }
    }

    fn done(&self, _: crate::record::content::Content) {}
}
