//! Calls that a student's application makes.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::error::ClientError;
use super::experiments::strange;
use super::session::UpgradeClient;
use super::student_routes::StudentCall;
use super::visit::{Assignment, Mark, MarkedPoint, NewUser, User};
use super::wire;

impl UpgradeClient {
    /// Makes a student known. Doing so again changes only the parts that are given.
    ///
    /// Old servers take the student's id in the body, newer ones in a header. An id that no header
    /// can hold goes by the older route of a newer server.
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

    /// Replaces the groups of a student who is known: of each kind all that he is in.
    ///
    /// # Errors
    ///
    /// `E_UPGRADE_NOT_FOUND` if the student was not made known, and those of any call.
    pub async fn set_groups(
        &self,
        user_id: &str,
        groups: &BTreeMap<String, Vec<String>>,
    ) -> Result<User, ClientError> {
        self.known_student(StudentCall::set("groupmembership", user_id, json!({ "group": groups }))).await
    }

    /// Says in which groups a student who is known works now, by kind.
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

    /// The answer names what was set only.
    async fn known_student(&self, call: StudentCall<'_>) -> Result<User, ClientError> {
        let name = call.name();
        wire::user(&self.student_call(call).await?).ok_or_else(|| strange(&name))
    }

    /// Gives a student other ids, under which he is the same; answers all that he has then.
    ///
    /// # Errors
    ///
    /// As [`Self::set_groups`], and `E_UPGRADE_SERVER` if an alias is another student's id.
    pub async fn set_aliases(&self, user_id: &str, aliases: &[&str]) -> Result<Vec<String>, ClientError> {
        let call = StudentCall::set("useraliases", user_id, json!({ "aliases": aliases }));
        let name = call.name();
        let answer = self.student_call(call).await?;
        wire::aliases(&answer).ok_or_else(|| strange(&name))
    }

    /// What a student gets at the decision points of a context. Stores nothing: only
    /// [`Self::mark`] enrols.
    ///
    /// # Errors
    ///
    /// `E_UPGRADE_NOT_FOUND` if the student was not made known, `E_UPGRADE_BAD_REQUEST` if the
    /// server does not know the context, and those of any call.
    pub async fn assign(&self, user_id: &str, context: &str) -> Result<Vec<Assignment>, ClientError> {
        let call = StudentCall::post("assign", user_id, json!({ "context": context })).repeatable();
        let name = call.name();
        wire::list(&self.student_call(call).await?, wire::assignment).ok_or_else(|| strange(&name))
    }

    /// Writes down that a student was at a decision point, which enrols or excludes him.
    ///
    /// # Errors
    ///
    /// `E_UPGRADE_NOT_FOUND` if the student was not made known or the experiment is not at that
    /// point, `E_UPGRADE_BAD_REQUEST` if the experiment has no such condition (servers up to 6.2
    /// give `E_UPGRADE_SERVER` instead), and those of any call.
    pub async fn mark(&self, user_id: &str, mark: &Mark) -> Result<MarkedPoint, ClientError> {
        let call = StudentCall::post("mark", user_id, wire::mark_body(mark));
        let name = call.name();
        wire::marked(&self.student_call(call).await?).ok_or_else(|| strange(&name))
    }
}
