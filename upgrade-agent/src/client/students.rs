//! Calls that a student's application makes, version 6 of them: the student is named in a header.

use serde_json::{Value, json};

use super::error::ClientError;
use super::experiments::strange;
use super::session::UpgradeClient;
use super::transport::Call;
use super::visit::{Assignment, Mark, MarkedPoint, NewUser, User};
use super::wire;

impl UpgradeClient {
    /// Makes a student known. Doing so again changes only the parts that are given.
    ///
    /// # Errors
    ///
    /// Those of any call.
    pub async fn init_user(&self, user: &NewUser) -> Result<User, ClientError> {
        let mut body = serde_json::Map::new();
        if let Some(groups) = &user.groups {
            body.insert("group".into(), json!(groups));
        }
        if let Some(working) = &user.working_group {
            body.insert("workingGroup".into(), json!(working));
        }
        let call = Call::post(&["v6", "init"], Value::Object(body)).repeatable();
        let answer = self.call(call.of_user(&user.id)?).await?;
        wire::user(&answer).ok_or_else(|| strange("POST /v6/init"))
    }

    /// What a student gets at the decision points of a context. Stores nothing: only
    /// [`Self::mark`] enrols.
    ///
    /// # Errors
    ///
    /// `E_UPGRADE_NOT_FOUND` if the student was not made known, `E_UPGRADE_BAD_REQUEST` if the
    /// server does not know the context, and those of any call.
    pub async fn assign(&self, user_id: &str, context: &str) -> Result<Vec<Assignment>, ClientError> {
        let call = Call::post(&["v6", "assign"], json!({ "context": context })).repeatable();
        let answer = self.call(call.of_user(user_id)?).await?;
        wire::list(&answer, wire::assignment).ok_or_else(|| strange("POST /v6/assign"))
    }

    /// Writes down that a student was at a decision point, which enrols or excludes him.
    ///
    /// # Errors
    ///
    /// `E_UPGRADE_NOT_FOUND` if the student was not made known or the experiment is not at that
    /// point, `E_UPGRADE_BAD_REQUEST` if the experiment has no such condition (servers up to 6.2
    /// give `E_UPGRADE_SERVER` instead), and those of any call.
    pub async fn mark(&self, user_id: &str, mark: &Mark) -> Result<MarkedPoint, ClientError> {
        let call = Call::post(&["v6", "mark"], wire::mark_body(mark));
        let answer = self.call(call.of_user(user_id)?).await?;
        wire::marked(&answer).ok_or_else(|| strange("POST /v6/mark"))
    }
}
