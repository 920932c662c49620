//! Preview users: students who see experiments in preview before others.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::call::Call;
use super::error::{ClientError, ErrorKind};
use super::experiments::{check_id, unexpected_answer};
use super::session::UpgradeClient;
use super::wire;

const CALL: &str = "POST /previewusers/assign";

/// The server lists preview users by pages only.
const PAGE: usize = 100;

/// A student who sees experiments in preview.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreviewUser {
    /// The student's id.
    pub id: String,
    /// The conditions chosen for this student.
    pub assignments: Vec<PreviewAssignment>,
}

/// A condition chosen for a preview user.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreviewAssignment {
    /// The experiment's id.
    pub experiment_id: String,
    /// Its name.
    pub experiment_name: Option<String>,
    /// The condition's id.
    pub condition_id: String,
    /// Its code.
    pub condition_code: Option<String>,
}

impl UpgradeClient {
    /// All preview users.
    ///
    /// # Errors
    ///
    /// Those of any call.
    pub async fn preview_users(&self) -> Result<Vec<PreviewUser>, ClientError> {
        let mut users: Vec<PreviewUser> = Vec::new();
        for skip in (0_u64..).step_by(PAGE) {
            let path = ["previewusers", "paginated"];
            let call = Call::post(&path, json!({ "skip": skip, "take": PAGE })).repeatable();
            let name = call.name();
            let answer = self.call(call).await?;
            let page =
                wire::list(&answer["nodes"], wire::preview_user).ok_or_else(|| unexpected_answer(&name))?;
            let came = answer["nodes"].as_array().map_or(0, Vec::len);
            users.extend(page);
            let total = answer["total"].as_u64().unwrap_or(0);
            if came < PAGE || total <= skip.saturating_add(PAGE as u64) {
                break;
            }
        }
        Ok(users)
    }

    /// Makes a student a preview user. Idempotent.
    ///
    /// # Errors
    ///
    /// Those of any call.
    pub async fn add_preview_user(&self, user_id: &str) -> Result<PreviewUser, ClientError> {
        let call = "POST /previewusers";
        check_user(call, user_id)?;
        let answer = self.call(Call::post(&["previewusers"], json!({ "id": user_id }))).await?;
        wire::preview_user(&answer).ok_or_else(|| unexpected_answer(call))
    }

    /// Sets the conditions of a preview user, by the ids of experiment and condition. Creates the preview
    /// user if necessary, and drops earlier choices that are not in the list.
    ///
    /// UpGrade 6.5 stores the choice and draws anyway.
    ///
    /// # Errors
    ///
    /// `E_UPGRADE_BAD_REQUEST` if an id is no UUID, and those of any call.
    pub async fn assign_preview(
        &self,
        user_id: &str,
        chosen: &[(&str, &str)],
    ) -> Result<PreviewUser, ClientError> {
        check_user(CALL, user_id)?;
        for (experiment, condition) in chosen {
            check_id(CALL, experiment)?;
            check_id(CALL, condition)?;
        }
        let one = |(experiment, condition): &(&str, &str)| json!({ "experiment": { "id": experiment }, "experimentCondition": { "id": condition } });
        let chosen: Vec<Value> = chosen.iter().map(one).collect();
        let body = json!({ "id": user_id, "assignments": chosen });
        let answer = self.call(Call::post(&["previewusers", "assign"], body)).await?;
        wire::preview_user(&answer).ok_or_else(|| unexpected_answer(CALL))
    }

    /// Removes a preview user. Idempotent.
    ///
    /// # Errors
    ///
    /// `E_UPGRADE_BAD_REQUEST` if the id cannot be part of a path, and those of any call.
    pub async fn remove_preview_user(&self, user_id: &str) -> Result<(), ClientError> {
        check_user("DELETE /previewusers", user_id)?;
        match self.call(Call::delete(&["previewusers", user_id])).await {
            Err(why) if why.kind() == ErrorKind::NotFound => Ok(()),
            other => other.map(drop),
        }
    }
}

/// A path cannot contain `.` and `..` as names, escaped or not.
fn check_user(call: &str, id: &str) -> Result<(), ClientError> {
    if id.trim().is_empty() || matches!(id, "." | "..") || id.chars().any(char::is_control) {
        let why = "a student's id must not be empty, be . or .. or hold control characters";
        return Err(ClientError::new(ErrorKind::BadRequest, call, why));
    }
    Ok(())
}
