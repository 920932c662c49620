//! Errors about the things that a request names: unknown, taken, or not available.

use axum::http::StatusCode;

use super::{Fault, INVALID_TOKEN, NO_USER, RawError, SHAPE};

const NO_CONDITION: &str = "Condition not found";
const SHARED: &str = "Experiment ID not provided for shared Decision Point";
const NOT_THERE: &str = "Experiment ID provided is invalid for shared Decision Point";

impl Fault {
    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "Error", message).kind("Query Failed")
    }

    pub(crate) fn unknown_context(name: &str) -> Self {
        Self::refused(format!("The app context \"{name}\" is not defined in CONTEXT_METADATA."))
    }

    pub(crate) fn default_code() -> Self {
        Self::refused("'default' as ConditionCode is not allowed.")
    }

    pub(crate) fn invalid_context(name: &str) -> Self {
        let message = format!("Invalid app context: {name}");
        Self::new(StatusCode::BAD_REQUEST, "Error", message)
            .kind(SHAPE)
            .raw(RawError::Typed("Invalid app context"))
    }

    pub(crate) fn unknown_user(id: &str) -> Self {
        let message = format!("User not found: {id}");
        Self::new(StatusCode::NOT_FOUND, "Error", message).kind(NO_USER).raw(RawError::Typed(NO_USER))
    }

    /// The same for older applications.
    pub(crate) fn no_experiment_user(id: &str) -> Self {
        Self::not_found(format!("Experiment User not found: {id}")).raw(RawError::Nameless)
    }

    /// A visit names an experiment that is not at its place.
    pub(crate) fn not_at_point(user: &str) -> Self {
        Self::shared_point(user).raw(RawError::Typed(NOT_THERE))
    }

    pub(crate) fn shared_point(user: &str) -> Self {
        let message =
            format!("Experiment ID not provided for shared Decision Point in markExperimentPoint: {user}");
        Self::new(StatusCode::NOT_FOUND, "Error", message).kind("Query Failed").raw(RawError::Typed(SHARED))
    }

    pub(crate) fn condition_not_found(code: &str) -> Self {
        let message = format!("Condition not found: {code}");
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "Error", message)
            .kind(NO_CONDITION)
            .raw(RawError::Typed(NO_CONDITION))
    }

    pub(crate) fn no_experiment() -> Self {
        let message = "Experiment not found!";
        Self::new(StatusCode::NOT_FOUND, "Error", message).kind("Query Failed").raw(RawError::Nameless)
    }

    pub(crate) fn nothing_to_delete() -> Self {
        Self::new(StatusCode::NOT_FOUND, "NotFoundException", "Experiment not found.").raw(RawError::Nested)
    }

    pub(crate) fn no_lists(side: &str) -> Self {
        let message = format!("{side} lists not found.");
        Self::new(StatusCode::NOT_FOUND, "NotFoundException", message).raw(RawError::Nested)
    }

    pub(crate) fn no_segment() -> Self {
        Self::new(StatusCode::NOT_FOUND, "NotFoundException", "Segment not found.").raw(RawError::Nested)
    }

    /// The original throws this error without a name.
    pub(crate) fn segment_name_is_taken(name: &str, context: &str) -> Self {
        let message = format!("Segment name {name} already exists in context {context}");
        Self::new(StatusCode::BAD_REQUEST, "", message).kind(SHAPE)
    }

    /// Metrics can be declared only while undeclared ones are refused.
    pub(crate) fn metrics_are_free() -> Self {
        Self::thrown("Metrics filter not enabled").kind(INVALID_TOKEN)
    }

    /// Rewards are for adaptive experiments.
    pub(crate) fn no_rewards() -> Self {
        Self::refused("Failed to send reward: mooclet is not currently enabled on backend.")
    }

    /// Mail cannot be sent. The original throws this error without a name.
    pub(crate) fn no_mail() -> Self {
        let message = "Email send error";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "", message).kind("Email send error")
    }

    /// Two flags of a context would have the same key.
    pub(crate) fn flag_key_is_taken() -> Self {
        let message = "A flag with this key already exists for this app-context";
        Self::new(StatusCode::CONFLICT, "Error", message)
            .kind("Feature Flag with same key already exists for this app-context")
    }

    /// An adaptive experiment needs a service that is not available.
    pub(crate) fn no_mooclets(deed: &str) -> Self {
        Self::refused(format!(
            "Failed to {deed} Experiment: moocletPolicyParameters was provided but mooclets are not enabled \
             on backend."
        ))
    }

    /// There is no such factor to export.
    pub(crate) fn no_table() -> Self {
        Self::thrown("Failed to generate CSV")
    }
}
