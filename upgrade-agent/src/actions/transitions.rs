//! Which moves between statuses are usual.
//!
//! The server refuses none, so this table is all that stands between a slip of the tongue and a running
//! experiment that is suddenly archived. A move that is not in it needs the force flag.

use crate::client::ExperimentState;
use ExperimentState::{Archived, Cancelled, Enrolling, EnrollmentComplete, Inactive, Preview, Scheduled};

/// Whether a move is a usual one.
///
/// ```
/// use upgrade_agent::actions::is_usual;
/// use upgrade_agent::client::ExperimentState::*;
///
/// assert!(is_usual(&Inactive, &Enrolling));
/// assert!(!is_usual(&Cancelled, &Enrolling));
/// ```
pub fn is_usual(from: &ExperimentState, to: &ExperimentState) -> bool {
    usual_targets(from).contains(to)
}

/// Where an experiment usually goes from a status.
pub(super) fn usual_targets(from: &ExperimentState) -> &'static [ExperimentState] {
    match from {
        Inactive => &[Enrolling, Preview, Scheduled, Cancelled],
        Preview | Scheduled => &[Inactive, Enrolling],
        Enrolling => &[EnrollmentComplete, Cancelled],
        EnrollmentComplete => &[Enrolling, Cancelled],
        Cancelled => &[Archived],
        _ => &[],
    }
}
