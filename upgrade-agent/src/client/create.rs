//! Creates an experiment: looks the id up, posts, and sets the rule that a POST cannot set.

use serde_json::Value;

use super::call::Call;
use super::draft::{ExperimentPatch, NewExperiment};
use super::error::{ClientError, ErrorKind};
use super::experiments::{check_id, read_experiment, unexpected_answer};
use super::model::{Experiment, PostRule};
use super::session::UpgradeClient;
use super::wire;

const CALL: &str = "POST /experiments";

impl UpgradeClient {
    /// Creates an experiment.
    ///
    /// Servers from 6.3 on ignore the rule `assign` here, so a second request sets it. If the client dies
    /// between the two, the experiment exists with the rule `continue`. With an id chosen by the caller it
    /// can be found again, and [`Self::update`] sets the rule.
    ///
    /// An experiment that was created but cannot be read back is returned as far as it is known.
    ///
    /// # Errors
    ///
    /// `E_UPGRADE_CONFLICT` if the id is taken, since the server would merge the two;
    /// `E_UPGRADE_BAD_REQUEST` if the server refuses the experiment or the rule names a condition
    /// that it does not have; `E_UPGRADE_UNFINISHED` if it was created and the rule could not be set
    /// then; and those of any call.
    pub async fn create(&self, new: &NewExperiment) -> Result<Experiment, ClientError> {
        check_rule(CALL, &new.post_rule, new.conditions.iter().map(|c| c.code.as_str()))?;
        if let Some(id) = &new.id {
            self.refuse_taken(id).await?;
        }
        let body = wire::create_body(self.dialect().await?, new);
        let answer = self.call(Call::post(&["experiments"], Value::Object(body))).await?;
        let raw = answer.as_object().ok_or_else(|| unexpected_answer(CALL))?;
        let created = read_experiment(CALL, raw)?;
        if created.post_rule != new.post_rule {
            return self.set_rule(&created.id, &new.post_rule).await;
        }
        let known = || Experiment {
            inclusion: new.inclusion.clone(),
            exclusion: new.exclusion.clone(),
            ..created.clone()
        };
        Ok(self.experiment(&created.id).await.unwrap_or_else(|_| known()))
    }

    async fn set_rule(&self, id: &str, rule: &PostRule) -> Result<Experiment, ClientError> {
        let rule = ExperimentPatch { post_rule: Some(rule.clone()), ..ExperimentPatch::default() };
        let done = "the experiment was created with the rule continue";
        self.update(id, &rule).await.map_err(|why| why.in_the_middle(id, done, rule.clone()))
    }

    async fn refuse_taken(&self, id: &str) -> Result<(), ClientError> {
        check_id(CALL, id)?;
        match self.raw_experiment(id).await {
            Ok(_) => {
                let why = format!("the id {id} is taken by an existing experiment");
                Err(ClientError::new(ErrorKind::Conflict, CALL, why))
            }
            Err(why) if why.kind() == ErrorKind::NotFound => Ok(()),
            Err(why) => Err(why),
        }
    }
}

/// A rule that names a condition must name one of the experiment.
pub(super) fn check_rule<'a>(
    call: &str,
    rule: &PostRule,
    mut codes: impl Iterator<Item = &'a str>,
) -> Result<(), ClientError> {
    match &rule.condition_code {
        Some(wanted) if !codes.any(|code| code == wanted) => {
            let wanted = wire::short(wanted);
            let why = format!("the rule names the condition {wanted:?}, which is not among those");
            Err(ClientError::new(ErrorKind::BadRequest, call, why))
        }
        _ => Ok(()),
    }
}
