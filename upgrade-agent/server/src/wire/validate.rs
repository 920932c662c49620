//! The validation of bodies. The original checks shapes, enums and the consistency of group and unit, and no
//! meaning: weights, names, sites and transitions are free.
//!
//! `rules` evaluates forms, `forms` defines them, `words` has their enums.

mod forms;
mod rules;
mod words;

use serde_json::{Value, json};

use super::body::check_texts;
use super::dialect::Dialect;
use super::fault::Fault;
use super::shape::{each, filled, has, number, one_of, optional};
pub(super) use rules::Complaint;
use rules::Form;

/// A whole experiment, for create and update.
pub(crate) fn experiment(dialect: Dialect, body: &Value) -> Result<(), Fault> {
    check(experiment_form(dialect), body)
}

fn experiment_form(dialect: Dialect) -> &'static Form {
    match dialect {
        Dialect::V62 => &forms::EXPERIMENT_62,
        _ => &forms::EXPERIMENT_65,
    }
}

/// A change of state.
pub(crate) fn state_change(dialect: Dialect, body: &Value) -> Result<(), Fault> {
    match dialect {
        Dialect::V62 => check(&forms::STATE_CHANGE_62, body),
        _ => check(&forms::STATE_CHANGE_65, body),
    }
}

/// A page of experiments.
pub(crate) fn page(dialect: Dialect, body: &Value) -> Result<(), Fault> {
    match dialect {
        Dialect::V62 => check(&forms::PAGE_62, body),
        _ => check(&forms::PAGE_65, body),
    }
}

/// An id in a path, in its stored form.
pub(crate) fn path_id(id: &str) -> Result<String, Fault> {
    let complaints = rules::judge(&forms::ID, &json!({ "id": id }));
    if complaints.is_empty() { Ok(id.to_lowercase()) } else { Err(Fault::params().with(&complaints)) }
}

/// The experiments to count.
pub(crate) fn counted(body: &Value) -> Result<(), Fault> {
    check(&forms::COUNTED, body)
}

/// The experiment to count in detail.
pub(crate) fn detailed(body: &Value) -> Result<(), Fault> {
    check(&forms::DETAILED, body)
}

/// A student's groups; other fields are rejected.
pub(crate) fn init(body: &Value) -> Result<(), Fault> {
    check_student(&forms::INIT, body)
}

/// The groups that a student belongs to.
pub(crate) fn group_membership(body: &Value) -> Result<(), Fault> {
    check_student(&forms::GROUP_MEMBERSHIP, body)
}

/// The working groups of a student.
pub(crate) fn working_group(body: &Value) -> Result<(), Fault> {
    check_student(&forms::WORKING_GROUP, body)
}

/// A request for assignments.
pub(crate) fn assign(body: &Value) -> Result<(), Fault> {
    check_student(&forms::ASSIGN, body)
}

/// A visit.
pub(crate) fn mark(body: &Value) -> Result<(), Fault> {
    check_student(&forms::MARK, body)
}

/// Logged metrics.
pub(crate) fn log(body: &Value) -> Result<(), Fault> {
    check_student(&forms::LOG, body)
}

/// Aliases of a student.
pub(crate) fn aliases(body: &Value) -> Result<(), Fault> {
    check_student(&forms::ALIASES, body)
}

/// A request for feature flags.
pub(crate) fn flags(body: &Value) -> Result<(), Fault> {
    check_student(&forms::FLAGS, body)
}

/// A reward of an adaptive experiment.
pub(crate) fn reward(body: &Value) -> Result<(), Fault> {
    check_student(&forms::REWARD, body)
}

/// A student with groups, named in the body.
pub(crate) fn v5_init(body: &Value) -> Result<(), Fault> {
    check_student(&forms::V5_INIT, body)
}

/// The working groups of a student named in the body.
pub(crate) fn v5_working_group(body: &Value) -> Result<(), Fault> {
    check_student(&forms::V5_WORKING_GROUP, body)
}

/// A request for assignments of a student named in the body.
pub(crate) fn v5_assign(body: &Value) -> Result<(), Fault> {
    check_student(&forms::V5_ASSIGN, body)
}

/// A visit of a student named in the body.
pub(crate) fn v5_mark(body: &Value) -> Result<(), Fault> {
    check_student(&forms::V5_MARK, body)
}

/// Metrics of a student named in the body.
pub(crate) fn v5_log(body: &Value) -> Result<(), Fault> {
    check_student(&forms::V5_LOG, body)
}

/// Aliases of a student named in the body.
pub(crate) fn v5_aliases(body: &Value) -> Result<(), Fault> {
    check_student(&forms::V5_ALIASES, body)
}

/// Declarations of metrics.
pub(crate) fn metrics(body: &Value) -> Result<(), Fault> {
    check(&forms::METRIC_UNITS, body)
}

/// The queries to evaluate.
pub(crate) fn analysis(body: &Value) -> Result<(), Fault> {
    check(&forms::ANALYSIS, body)
}

/// A feature flag.
pub(crate) fn flag(body: &Value) -> Result<(), Fault> {
    check(&forms::FLAG, body)
}

/// The status of a flag.
pub(crate) fn flag_status(body: &Value) -> Result<(), Fault> {
    check(&forms::FLAG_STATUS, body)
}

/// The filter of a flag.
pub(crate) fn flag_filter(body: &Value) -> Result<(), Fault> {
    check(&forms::FLAG_FILTER, body)
}

/// A list of a flag.
pub(crate) fn flag_list(body: &Value) -> Result<(), Fault> {
    check(&forms::FLAG_LIST, body)
}

/// Students whose assignments at one place are requested.
pub(crate) fn is_batch(body: &Value) -> bool {
    ["context", "site", "target"].iter().all(|field| has(body, field, filled))
        && has(body, "userIds", each(filled))
}

/// A segment, for create and update.
pub(crate) fn segment(body: &Value) -> Result<(), Fault> {
    check(&forms::SEGMENT, body)
}

fn check(form: &Form, body: &Value) -> Result<(), Fault> {
    let complaints = rules::judge(form, body);
    if complaints.is_empty() { Ok(()) } else { Err(Fault::body().with(&complaints)) }
}

/// A body of a student's application: even a valid one may have values that cannot be stored.
fn check_student(form: &Form, body: &Value) -> Result<(), Fault> {
    check(form, body)?;
    check_texts(body)
}

/// The properties that prevent a body from being an experiment, with the violated rules.
pub(crate) fn failing_fields(dialect: Dialect, body: &Value) -> Vec<(String, String)> {
    failing(experiment_form(dialect), body)
}

/// The same for a segment.
pub(crate) fn failing_segment_fields(body: &Value) -> Vec<(String, String)> {
    failing(&forms::SEGMENT, body)
}

fn failing(form: &Form, body: &Value) -> Vec<(String, String)> {
    rules::judge(form, body).iter().flat_map(Complaint::failures).collect()
}

/// A page of segments.
pub(crate) fn is_segment_page(body: &Value) -> bool {
    let is_search = |search: &Value| {
        has(search, "key", one_of(&["all", "name", "tag", "context", "id"])) && has(search, "string", filled)
    };
    let is_sort = |sort: &Value| {
        has(sort, "key", one_of(&["name", "updatedAt"])) && has(sort, "sortAs", one_of(&words::DIRECTIONS))
    };
    has(body, "skip", number)
        && has(body, "take", number)
        && has(body, "searchParams", optional(is_search))
        && has(body, "sortParams", optional(is_sort))
}

/// The form of an id: with four hyphens, in either case.
pub(crate) fn is_uuid(value: &Value) -> bool {
    value.as_str().is_some_and(|text| text.len() == 36 && uuid::Uuid::try_parse(text).is_ok())
}
