//! Calls of a student's application.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::error::ClientError;
use super::experiments::unexpected_answer;
use super::session::UpgradeClient;
use super::student_routes::StudentCall;
use super::visit::{Assignment, Mark, MarkedPoint, NewUser, User};
use super::wire;

impl UpgradeClient {
    /// Makes a student known. A repeated call changes only the given parts.
    ///
    /// Old servers take the student's id in the body, newer ones in a header. An id that does not fit into a
    /// header is sent by the older route of a newer server.
    ///
    /// # Errors
    ///
    /// `E_UPGRADE_BAD_REQUEST` if the id is empty or holds control characters, and those of any
    /// call.
    pub async fn init_user(&self, user: &NewUser) -> Result<User, ClientError> {
        let mut body = serde_json::Map::new();
        if let Some(groups) = &user.groups {
            body.insert("group".into(), json!(groups));
        }
        if let Some(working) = &user.working_group {
            body.insert("workingGroup".into(), json!(working));
        }
        let call = StudentCall::post("init", &user.id, Value::Object(body)).repeatable();
        self.known_student(call).await
    }

    /// Replaces all groups of a known student.
    ///
    /// # Errors
    ///
    /// `E_UPGRADE_NOT_FOUND` if the student is unknown, and those of any call.
    pub async fn set_groups(
        &self,
        user_id: &str,
        groups: &BTreeMap<String, Vec<String>>,
    ) -> Result<User, ClientError> {
        self.known_student(StudentCall::set("groupmembership", user_id, json!({ "group": groups }))).await
    }

    /// Sets the working groups of a known student, by kind.
    ///
    /// # Errors
    ///
    /// As [`Self::set_groups`].
    pub async fn set_working_group(
        &self,
        user_id: &str,
        groups: &BTreeMap<String, String>,
    ) -> Result<User, ClientError> {
        self.known_student(StudentCall::set("workinggroup", user_id, json!({ "workingGroup": groups }))).await
    }

    /// The response contains only the fields that were set.
    async fn known_student(&self, call: StudentCall<'_>) -> Result<User, ClientError> {
        let name = call.name();
        wire::user(&self.student_call(call).await?).ok_or_else(|| unexpected_answer(&name))
    }

    /// Adds ids for the same student, and returns all of them.
    ///
    /// # Errors
    ///
    /// As [`Self::set_groups`], and `E_UPGRADE_SERVER` if an alias is another student's id.
    pub async fn set_aliases(&self, user_id: &str, aliases: &[&str]) -> Result<Vec<String>, ClientError> {
        let call = StudentCall::set("useraliases", user_id, json!({ "aliases": aliases }));
        let name = call.name();
        let answer = self.student_call(call).await?;
        wire::aliases(&answer).ok_or_else(|| unexpected_answer(&name))
    }

    /// The conditions of a student at the decision points of a context. Stores nothing: only [`Self::mark`]
    /// enrols.
    ///
    /// # Errors
    ///
    /// `E_UPGRADE_NOT_FOUND` if the student is unknown, `E_UPGRADE_BAD_REQUEST` if the context is unknown,
    /// and those of any call.
    pub async fn assign(&self, user_id: &str, context: &str) -> Result<Vec<Assignment>, ClientError> {
        let call = StudentCall::post("assign", user_id, json!({ "context": context })).repeatable();
        let name = call.name();
        wire::list(&self.student_call(call).await?, wire::assignment).ok_or_else(|| unexpected_answer(&name))
    }

    /// Records a student's visit of a decision point, which enrols or excludes the student.
    ///
    /// # Errors
    ///
    /// `E_UPGRADE_NOT_FOUND` if the student is unknown or the experiment has no such point,
    /// `E_UPGRADE_BAD_REQUEST` if the experiment has no such condition (`E_UPGRADE_SERVER` on servers up to
    /// 6.2), and those of any call.
    pub async fn mark(&self, user_id: &str, mark: &Mark) -> Result<MarkedPoint, ClientError> {
        let call = StudentCall::post("mark", user_id, wire::mark_body(mark));
        let name = call.name();
        wire::marked(&self.student_call(call).await?).ok_or_else(|| unexpected_answer(&name))
    }
}
