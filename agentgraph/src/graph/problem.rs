//! The findings of `compile()`: problems, which it refuses, and warnings, which it accepts.

use std::fmt;
use std::panic::Location;

use crate::error::{Code, Error, hint};
use crate::words::{MAX_SUPERSTEPS, quoted};

/// The error of `compile()`: all problems of a graph at once.
#[derive(thiserror::Error)]
#[error("{}: {}", self.code(), self.listed())]
pub struct CompileError {
    problems: Vec<Problem>,
}

impl CompileError {
    pub(crate) fn new(problems: Vec<Problem>) -> Self {
        CompileError { problems }
    }

    /// The problems, in the order of the builder calls that caused them.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    fn listed(&self) -> String {
        let count = self.problems.len();
        let mut text = format!("the graph has {count} problem{}", if count == 1 { "" } else { "s" });
        self.problems.iter().for_each(|problem| text.push_str(&format!("\n  {problem}")));
        text
    }

    /// The stable code of this error: `E_COMPILE`.
    pub const fn code(&self) -> &'static str {
        Code::Compile.as_str()
    }
}

/// The message, as `fn main() -> Result<()>` prints `Debug`; `{:#?}` shows the problems as data.
impl fmt::Debug for CompileError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !out.alternate() {
            return fmt::Display::fmt(self, out);
        }
        out.debug_struct("CompileError").field("problems", &self.problems).finish()
    }
}

/// For functions that compile a graph and run it. The message lists the problems.
impl From<CompileError> for Error {
    fn from(error: CompileError) -> Self {
        Error::new(Code::Compile, error.listed()).with_source(error)
    }
}

/// One problem of a graph, and its place in the code.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Problem {
    /// The kind of the problem.
    pub kind: ProblemKind,
    /// The call that caused it; `None` if something is missing as a whole.
    pub place: Option<&'static Location<'static>>,
}

impl fmt::Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        show(&self.kind, self.place, out)
    }
}

/// Shows a finding and its place.
fn show(kind: &impl fmt::Display, place: Option<&Location<'_>>, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    kind.fmt(out)?;
    match place {
        Some(place) => write!(out, " ({}:{})", place.file(), place.line()),
        None => Ok(()),
    }
}

/// The kinds of problems.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProblemKind {
    /// No edge or route leaves START.
    #[error("the graph has no entry: add `.edge(START, ..)` or `.route(START, ..)`")]
    NoEntry,
    /// A call names a node that was not added.
    #[error("{} names `{name}`, which is not a node of this graph{}", with_article(.what), hint(.nearest.as_ref()))]
    UnknownNode {
        /// The call that names it: `edge`, `order`, `join`, `route`, `branch`, `targets`, `interrupt_before`,
        /// `interrupt_after`, `on_limit` or `on_error`.
        what: &'static str,
        /// The name.
        name: String,
        /// The most similar node name, if there is one.
        nearest: Option<String>,
    },
    /// Two nodes have one name.
    #[error(
        "there are two nodes named `{name}`: names must differ, since checkpoints refer to nodes by name"
    )]
    DuplicateNode {
        /// The name.
        name: String,
    },
    /// The same edge was added twice.
    #[error("the edge {from} -> `{to}` exists already")]
    DuplicateEdge {
        /// Its source, or sources.
        from: String,
        /// Its target.
        to: String,
    },
    /// A name that is reserved for the engine.
    #[error("`{name}` cannot be the name of a node: names are not empty and do not begin with `__`")]
    ReservedName {
        /// The name.
        name: String,
    },
    /// An edge or route out of END.
    #[error("END has no way out: a branch that reaches it is over")]
    OutOfEnd,
    /// An edge or route into START.
    #[error("START cannot be a target: to go round in a loop, name the first node")]
    IntoStart,
    /// A join without sources, or with the same source twice.
    #[error("the join into `{to}` {problem}")]
    BadJoin {
        /// Its target.
        to: String,
        /// The problem with its sources.
        problem: &'static str,
    },
    /// A node takes a dependency that the graph does not have.
    #[error("node `{node}` takes a `Dep<{dep}>` and the graph has none: add `.dep(..)` to the builder")]
    MissingDep {
        /// The node.
        node: String,
        /// The type.
        dep: &'static str,
    },
    /// A node takes a session that the graph does not declare.
    #[error(
        "node `{node}` takes a `Session<{session}>` and the graph declares none: add `.session::<..>(name)` to the builder"
    )]
    MissingSession {
        /// The node.
        node: String,
        /// The type.
        session: &'static str,
    },
    /// An edge, a join or a route without input leads to a node that takes one.
    #[error(
        "{} leads to `{node}` without an input, and `{node}` takes an `Input<{input}>`: dispatch to it (`Dispatch::new`, or \
         a route variant with a payload), or let it take an `Option<Input<{input}>>`",
        with_article(.what)
    )]
    NoInput {
        /// The call that leads to it: `edge`, `join`, `route` or `on_limit`.
        what: &'static str,
        /// The node.
        node: String,
        /// The type of the input.
        input: &'static str,
    },
    /// A node of a dependency graph takes an input.
    #[error(
        "node `{node}` takes an `Input<{input}>`, and no node of a dependency graph gets one: let it take `Deps` or \
         the input of the pass"
    )]
    InputInPass {
        /// The node.
        node: String,
        /// The type of the input.
        input: &'static str,
    },
    /// A migration that can never be used, or that exists twice.
    #[error("the migration from version {from} of the state {problem}")]
    BadMigration {
        /// The version it starts from.
        from: u32,
        /// The problem with the migration.
        problem: &'static str,
    },
    /// A key of a [`JsonState`](crate::JsonState) has a wrong initial value, or lacks its function.
    #[error("key `{key}`: {problem}")]
    BadKey {
        /// The key.
        key: String,
        /// The problem, and what to do.
        problem: String,
    },
    /// A dropped field that the state has.
    #[error("`.drops(\"{field}\")` drops a stored field that the state has a channel for")]
    DropsChannel {
        /// The field.
        field: String,
    },
    /// A detached node at a place where it is not allowed.
    #[error("node `{node}` is detached, {problem}")]
    Detached {
        /// The node.
        node: String,
        /// The reason why it is not allowed there.
        problem: &'static str,
    },
    /// Nodes of a dependency graph wait for one another.
    #[error("the edges form a cycle: {} -> `{}`", quoted(.nodes, " -> "), .nodes.first().map_or("", String::as_str))]
    Cycle {
        /// The nodes, each before the one that depends on it.
        nodes: Vec<String>,
    },
    /// Two templates have one name.
    #[error(
        "there are two templates named `{name}`: names must differ, since checkpoints refer to templates by name"
    )]
    DuplicateTemplate {
        /// The name.
        name: String,
    },
    /// A node has a setting that does not fit it.
    #[error("node `{node}` cannot have `{setting}`: {why}")]
    Misfit {
        /// The node.
        node: String,
        /// The setting: `cache`, `limit`, `blocking` or `spawned`.
        setting: &'static str,
        /// The reason.
        why: &'static str,
    },
    /// A timeout of zero.
    #[error("node `{node}` has a timeout of zero: it could never finish")]
    ZeroTimeout {
        /// The node.
        node: String,
    },
}

/// A construct that is allowed and probably not intended.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Warning {
    /// The kind of the warning.
    pub kind: WarningKind,
    /// The call that caused it.
    pub place: Option<&'static Location<'static>>,
}

impl fmt::Display for Warning {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        show(&self.kind, self.place, out)
    }
}

/// The kinds of warnings.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WarningKind {
    /// No path from START leads to the node.
    #[error("node `{node}` can never run: no way leads to it from START")]
    Unreachable {
        /// The node.
        node: String,
    },
    /// A loop without exit.
    #[error("node `{node}` has no way to END: the run can only stop at its limit")]
    NoWayToEnd {
        /// The node.
        node: String,
    },
    /// A join with a source that can never run.
    #[error("the join into `{to}` can never fire: `{source_node}` can never run")]
    JoinNeverFires {
        /// The join's target.
        to: String,
        /// The source that cannot run.
        source_node: String,
    },
    /// A join that waits for several branches of which a route takes one.
    #[error(
        "the join into `{to}` can never fire: the route of `{route}` leads to `{first}` or to `{second}`, never to both; \
         let the join wait for `any` of its sources, or give each an edge of its own"
    )]
    ExclusiveSources {
        /// The join's target.
        to: String,
        /// The node, or START, whose route decides.
        route: String,
        /// The target of the route that one source of the join depends on.
        first: String,
        /// The target that another source depends on.
        second: String,
    },
    /// A node, or START, with the same route or branch twice.
    #[error(
        "{from} has the same `{what}` twice, so its function chooses twice, and what it dispatches runs twice: remove \
         one of the two calls"
    )]
    RepeatedRouter {
        /// The node, or START.
        from: String,
        /// `route` or `branch`.
        what: &'static str,
    },
    /// Deferred nodes in one loop.
    #[error(
        "the deferred nodes {} lead to each other, so none of them waits for another: those that wait are released together",
        quoted(.nodes, ", ")
    )]
    DeferredLoop {
        /// The nodes.
        nodes: Vec<String>,
    },
    /// A path that is longer than the supersteps which a call takes by default.
    #[error(
        "the longest path has {length} nodes and ends at `{last}`, and a call stops after {MAX_SUPERSTEPS} supersteps: raise its \
         limit with `.max_supersteps({length})`"
    )]
    LongChain {
        /// The last node of the path.
        last: String,
        /// The number of its nodes; of a loop one counts.
        length: u64,
    },
    /// A node that returns commands without declaring targets.
    #[error(
        "node `{node}` returns commands and does not declare their targets: add `.targets([..])`, or nothing is known \
         about what is reachable"
    )]
    UndeclaredTargets {
        /// The node.
        node: String,
    },
}

fn with_article(what: &str) -> String {
    match what {
        "edge" | "order" | "interrupt_before" | "interrupt_after" | "on_limit" | "on_error" => {
            format!("an `{what}`")
        }
        "targets" => "a `targets` list".into(),
        _ => format!("a `{what}`"),
    }
}
