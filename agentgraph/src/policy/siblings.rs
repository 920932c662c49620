//! [`Siblings`]: the fate of the other tasks of a superstep when one fails.

/// The fate of the other tasks of a superstep when one fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Siblings {
    /// Started tasks finish and are stored, then the run fails. The default.
    #[default]
    Drain,
    /// Started tasks are dropped at their next await. They run again when the run continues.
    Cancel,
}
