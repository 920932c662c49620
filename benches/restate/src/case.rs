//! [`Case`]: what is measured.

use crate::work::Work;

/// The numbers of branches.
pub(crate) const BRANCHES: [usize; 2] = [10, 100];

/// A kind of call, made by so many clients at once.
#[derive(Clone)]
pub(crate) struct Case {
    pub(crate) work: Work,
    pub(crate) clients: usize,
    /// The calls of each client in a round.
    pub(crate) calls: usize,
    /// Whether the history goes to SQLite.
    pub(crate) kept: bool,
    /// The nodes of the server.
    pub(crate) nodes: usize,
}

impl Case {
    pub(crate) fn name(&self) -> String {
        let work = match self.work {
            Work::Steps(steps) => format!("steps/{steps}"),
            Work::Branches { number, remote: false } => format!("branches/{number}"),
            Work::Branches { number, remote: true } => format!("remote/{number}"),
        };
        let kept = if self.kept { "/history" } else { "" };
        let nodes = if self.nodes > 1 { "/cluster" } else { "" };
        format!("{work}{kept}{nodes}/{}", self.clients)
    }

    /// The same case with one call of each of a few clients.
    pub(crate) fn quick(self) -> Self {
        Case { calls: 1, clients: self.clients.min(10), ..self }
    }

    fn new(work: Work, clients: usize, calls: usize) -> Self {
        Case { work, clients, calls, kept: false, nodes: 1 }
    }

    fn kept(self) -> Self {
        Case { kept: true, ..self }
    }

    fn on_a_cluster(self) -> Self {
        Case { nodes: 3, ..self }
    }
}

/// All cases. A round takes some seconds.
pub(crate) fn all() -> Vec<Case> {
    let branches = |number| Work::Branches { number, remote: false };
    let remote = |number| Work::Branches { number, remote: true };
    vec![
        Case::new(Work::Steps(10), 1, 100),
        Case::new(Work::Steps(10), 10, 20),
        Case::new(Work::Steps(10), 100, 4),
        Case::new(Work::Steps(100), 1, 10),
        Case::new(Work::Steps(100), 10, 3),
        Case::new(Work::Steps(100), 100, 1),
        Case::new(Work::Steps(10_000), 1, 1),
        Case::new(branches(10), 1, 50),
        Case::new(branches(10), 10, 10),
        Case::new(branches(100), 1, 5),
        Case::new(branches(100), 10, 1),
        Case::new(remote(10), 1, 50),
        Case::new(remote(100), 1, 5),
        Case::new(Work::Steps(10), 1, 100).kept(),
        Case::new(Work::Steps(10), 10, 20).kept(),
        Case::new(Work::Steps(100), 10, 3).kept(),
        Case::new(branches(10), 1, 50).kept(),
        Case::new(Work::Steps(10), 1, 30).on_a_cluster(),
        Case::new(Work::Steps(10), 10, 10).on_a_cluster(),
        Case::new(Work::Steps(10), 100, 3).on_a_cluster(),
        Case::new(Work::Steps(100), 10, 1).on_a_cluster(),
        Case::new(branches(10), 1, 20).on_a_cluster(),
        Case::new(branches(100), 1, 2).on_a_cluster(),
    ]
}
