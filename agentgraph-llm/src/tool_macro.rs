//! What the code written by `#[tool]` needs at run time. It does not know the loops and graphs that run
//! tools.

mod arguments;
mod inject;
mod into_tool;
mod output;
mod schema;

#[cfg(feature = "mcp")]
pub(crate) use arguments::pairs;
pub use inject::FromToolCall;
pub use into_tool::IntoTool;

/// The names that the code written by `#[tool]` uses. Not for people; may change with every release.
pub mod written {
    pub use async_trait::async_trait;

    pub use super::arguments::{Access, Argument, Given, argument};
    pub use super::inject::{Injection, injected};
    pub use super::output::{Failure, Outcome, Output, future, outcome, output};
    pub use super::schema::ArgumentsSchema;
}
