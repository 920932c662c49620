//! The usual changes between statuses.
//!
//! The server accepts any change, so only this table protects a running experiment from a slip such as an
//! accidental archiving. Other changes need the force flag.

use crate::client::ExperimentState;
use ExperimentState::{Archived, Cancelled, Enrolling, EnrollmentComplete, Inactive, Preview, Scheduled};

/// Whether a change is a usual one.
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

/// The usual next statuses.
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
