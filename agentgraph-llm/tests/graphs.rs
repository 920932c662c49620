//! Models and tools in graphs: agents, what they are made of, and what is put around them.
#![allow(missing_docs, unreachable_pub)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod agents;
mod middleware;
mod nodes;
mod teams;
mod tools;

mod support {
    pub(crate) use crate::agents::support::*;
    pub(crate) use crate::middleware::support::*;
}
