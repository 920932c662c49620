//! [`Siblings`]: what becomes of the rest of a superstep when a task fails.

/// What becomes of the other tasks of a superstep when one fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Siblings {
    /// What has started is finished and stored, then the run fails. The default.
    #[default]
    Drain,
    /// What has started is dropped at its next await. It runs again when the run goes on.
    Cancel,
}
