//! Checks of a student: id, groups, places.

use std::collections::BTreeMap;

use super::Problems;
use super::words::{check_known, check_twice};
use crate::actions::display::display;
use crate::actions::{Facts, InitExperimentUser, MarkDecisionPoint};

/// The limit of a student's id in bytes: it is a key of the server's database.
const LONGEST_ID: usize = 255;

/// A student's id is sent in a header.
pub(super) fn check_user(id: &str, found: &mut Problems) {
    if let Some(why) = wrong_id(id) {
        found.push(format!("`{}` is no id of a student: {why}", display(id)));
    }
}

pub(super) fn wrong_id(id: &str) -> Option<&'static str> {
    if id.trim().is_empty() {
        Some("it must not be empty")
    } else if id != id.trim() || id.chars().any(char::is_control) {
        Some("it must not begin or end with a space or hold line ends and other control signs")
    } else if id.len() > LONGEST_ID {
        Some("it must not be longer than 255 bytes")
    } else {
        None
    }
}

pub(super) fn check_init(init: &InitExperimentUser, found: &mut Problems) {
    check_user(&init.user_id, found);
    check_groups(init.group.as_ref(), init.working_group.as_ref(), found);
}

/// The groups by kind, and the working group by kind.
pub(super) fn check_groups(
    groups: Option<&BTreeMap<String, Vec<String>>>,
    working: Option<&BTreeMap<String, String>>,
    found: &mut Problems,
) {
    for (kind, ids) in groups.into_iter().flatten() {
        check_kind(kind, found);
        check_twice(&format!("group of the type {}", display(kind)), ids, found);
        if ids.iter().any(|id| id.trim().is_empty()) {
            found.push(format!(
                "a group of the type `{}` has no name: name it, or leave it out",
                display(kind)
            ));
        }
    }
    for (kind, id) in working.into_iter().flatten() {
        check_kind(kind, found);
        if id.trim().is_empty() {
            found.push(format!("the working group of the type `{}` has no name: name it", display(kind)));
        }
    }
}

fn check_kind(kind: &str, found: &mut Problems) {
    if kind.trim().is_empty() {
        found.push("a group needs its type, such as classId".to_owned());
    }
}

/// A visit for an experiment must be at one of its points, with one of its conditions. Otherwise the server
/// returns an error.
pub(super) fn check_mark(mark: &MarkDecisionPoint, facts: &Facts<'_>, found: &mut Problems) {
    check_user(&mark.user_id, found);
    let place = &mark.decision_point;
    if place.site.trim().is_empty() {
        found.push("a decision point needs a site: say where the student was".to_owned());
    }
    let (Some(experiment), Some(shown_to)) = (facts.experiment, &mark.assigned_condition) else { return };
    let own = format!("experiment '{}'", display(&experiment.name));
    let codes: Vec<&str> = experiment.conditions.iter().map(|known| known.code.as_str()).collect();
    if let Some(code) = &shown_to.condition_code {
        check_known("condition", code, &codes, &own, found);
    }
    let points: Vec<String> =
        experiment.decision_points.iter().map(|point| format!("{} / {}", point.site, point.target)).collect();
    check_known("decision point", &format!("{} / {}", place.site, place.target), &points, &own, found);
}
