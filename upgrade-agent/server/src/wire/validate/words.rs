//! The words of enum properties, in the order of the original's messages.

/// The states that a body may have, in both vocabularies.
pub(super) const STATES_65: [&str; 11] = [
    "inactive",
    "draft",
    "preview",
    "scheduled",
    "enrolling",
    "running",
    "enrollmentComplete",
    "paused",
    "cancelled",
    "completed",
    "archived",
];
pub(super) const STATES_62: [&str; 8] =
    ["inactive", "preview", "scheduled", "enrolling", "enrollmentComplete", "cancelled", "archived", "draft"];
pub(super) const UNITS: [&str; 3] = ["individual", "group", "within-subjects"];
pub(super) const CONSISTENCY: [&str; 3] = ["individual", "experiment", "group"];
pub(super) const POST_RULES: [&str; 3] = ["continue", "revert", "assign"];
pub(super) const ALGORITHMS: [&str; 3] = ["random", "stratified random sampling", "ts_configurable"];
pub(super) const ORDERS: [&str; 3] = ["random", "random round robin", "ordered round robin"];
pub(super) const FILTERS: [&str; 2] = ["includeAll", "excludeAll"];
pub(super) const TYPES: [&str; 2] = ["Simple", "Factorial"];
pub(super) const PAYLOADS: [&str; 3] = ["string", "json", "csv"];
pub(super) const SEGMENTS: [&str; 3] = ["public", "private", "global_exclude"];
pub(super) const STATUSES: [&str; 3] =
    ["condition applied", "condition not applied", "no condition assigned"];
pub(super) const MEASURES: [&str; 5] = ["MEAN", "EARLIEST", "MOST RECENT", "COUNT", "PERCENTAGE"];
pub(super) const SEARCH_KEYS_62: [&str; 5] = ["all", "name", "status", "tag", "context"];
pub(super) const SEARCH_KEYS_65: [&str; 6] = ["all", "name", "status", "tag", "context", "id"];
pub(super) const SORT_KEYS: [&str; 4] = ["name", "state", "updatedAt", "postExperimentRule"];
pub(super) const DIRECTIONS: [&str; 2] = ["ASC", "DESC"];
pub(super) const REWARDS: [&str; 2] = ["SUCCESS", "FAILURE"];
pub(super) const FLAG_STATUSES: [&str; 3] = ["enabled", "disabled", "archived"];
