//! The kit for tests of graphs.

mod drive;
mod end;
mod every_kill;
mod every_order;
mod finding;
mod kill_switch;
mod merged;
mod paths;
mod play;
mod probe;
mod script;
mod test_graph;
mod test_run;
mod time;
mod trace;
mod turns;

pub use every_kill::EveryKill;
pub use every_order::EveryOrder;
pub use finding::{Finding, FindingKind, Report};
pub use kill_switch::KillPoint;
pub use probe::{Effect, Probe};
pub use test_graph::{TestGraph, Testable};
pub use time::VirtualTime;
pub use trace::Trace;
