//! Calls about experiments, one method per endpoint. Creating and updating have their own files.

use serde_json::{Value, json};

use super::call::Call;
use super::error::{ClientError, ErrorKind};
use super::model::{
    Condition, ContextMetadata, DeletedExperiment, EnrollmentDetail, Experiment, ExperimentName, Raw,
};
use super::session::UpgradeClient;
use super::wire;
use super::words::ExperimentState;

impl UpgradeClient {
    /// The contexts that the server knows, with their sites, targets, condition codes and kinds
    /// of groups.
    ///
    /// # Errors
    ///
    /// Those of any call: no response, rejected token, failing server, invalid response.
    pub async fn context_metadata(&self) -> Result<ContextMetadata, ClientError> {
        let answer = self.call(Call::get(&["experiments", "contextMetaData"])).await?;
        wire::context_metadata(&answer).ok_or_else(|| unexpected_answer("GET /experiments/contextMetaData"))
    }

    /// Ids and names of all experiments, archived ones included, in no particular order.
    ///
    /// # Errors
    ///
    /// Those of any call.
    pub async fn experiment_names(&self) -> Result<Vec<ExperimentName>, ClientError> {
        let answer = self.call(Call::get(&["experiments", "names"])).await?;
        wire::list(&answer, wire::experiment_name).ok_or_else(|| unexpected_answer("GET /experiments/names"))
    }

    /// All experiments.
    ///
    /// # Errors
    ///
    /// Those of any call.
    pub async fn experiments(&self) -> Result<Vec<Experiment>, ClientError> {
        let answer = self.call(Call::get(&["experiments"])).await?;
        wire::list(&answer, wire::experiment).ok_or_else(|| unexpected_answer("GET /experiments"))
    }

    /// One experiment.
    ///
    /// # Errors
    ///
    /// `E_UPGRADE_NOT_FOUND` if there is none of this id, `E_UPGRADE_BAD_REQUEST` if the id is no
    /// UUID, and those of any call.
    pub async fn experiment(&self, id: &str) -> Result<Experiment, ClientError> {
        read_experiment("GET /experiments/single", &self.raw_experiment(id).await?)
    }

    /// The conditions of one experiment, in their order.
    ///
    /// # Errors
    ///
    /// As [`Self::experiment`].
    pub async fn conditions(&self, id: &str) -> Result<Vec<Condition>, ClientError> {
        let call = "GET /experiments/conditions";
        check_id(call, id)?;
        let answer = self.call(Call::get(&["experiments", "conditions", id])).await?;
        wire::conditions(&answer).ok_or_else(|| unexpected_answer(call))
    }

    /// Sets the state of an experiment. The server accepts every change. Fields that its response omits come
    /// from a read before.
    ///
    /// # Errors
    ///
    /// As [`Self::experiment`]; nothing is changed if the experiment does not exist.
    pub async fn set_state(&self, id: &str, state: &ExperimentState) -> Result<Experiment, ClientError> {
        self.move_to(id, json!({ "experimentId": id, "state": state })).await
    }

    /// Sets the state `scheduled` with a start time (RFC 3339, as in `2027-01-31T08:00:00.000Z`).
    ///
    /// # Errors
    ///
    /// As [`Self::set_state`].
    pub async fn schedule(&self, id: &str, start_on: &str) -> Result<Experiment, ClientError> {
        let state = ExperimentState::Scheduled;
        self.move_to(id, json!({ "experimentId": id, "state": state, "scheduleDate": start_on })).await
    }

    async fn move_to(&self, id: &str, body: Value) -> Result<Experiment, ClientError> {
        let mut whole = self.raw_experiment(id).await?;
        let answer = self.call(Call::post(&["experiments", "state"], body)).await?;
        let call = "POST /experiments/state";
        let changed = answer.as_object().ok_or_else(|| unexpected_answer(call))?;
        whole.extend(changed.clone());
        read_experiment(call, &whole)
    }

    /// Deletes an experiment with all its enrolments.
    ///
    /// # Errors
    ///
    /// As [`Self::experiment`].
    pub async fn delete(&self, id: &str) -> Result<DeletedExperiment, ClientError> {
        check_id("DELETE /experiments", id)?;
        let answer = self.call(Call::delete(&["experiments", id])).await?;
        Ok(wire::deleted(id, &answer))
    }

    /// The numbers of students and groups in an experiment, by condition and point.
    ///
    /// # Errors
    ///
    /// As [`Self::experiment`].
    pub async fn enrollment(&self, id: &str) -> Result<EnrollmentDetail, ClientError> {
        self.raw_experiment(id).await?;
        let path = ["stats", "enrollment", "detail"];
        let call = Call::post(&path, json!({ "experimentId": id })).repeatable();
        let name = call.name();
        wire::enrollment(&self.call(call).await?).ok_or_else(|| unexpected_answer(&name))
    }

    /// An experiment with all of its fields, because an update has to write unknown ones too.
    pub(super) async fn raw_experiment(&self, id: &str) -> Result<Raw, ClientError> {
        let call = "GET /experiments/single";
        check_id(call, id)?;
        match self.call(Call::get(&["experiments", "single", id])).await? {
            Value::Object(raw) => Ok(raw),
            _ => Err(unexpected_answer(call)),
        }
    }
}

pub(super) fn read_experiment(call: &str, raw: &Raw) -> Result<Experiment, ClientError> {
    wire::experiment_of(raw).ok_or_else(|| unexpected_answer(call))
}

/// An id becomes part of a path, and the server's own error for an invalid one names no field.
pub(super) fn check_id(call: &str, id: &str) -> Result<(), ClientError> {
    uuid::Uuid::try_parse(id).map(drop).map_err(|_| {
        let why = format!("{:?} is not an experiment's id, which is a UUID", wire::short(id));
        ClientError::new(ErrorKind::BadRequest, call, why)
    })
}

pub(super) fn unexpected_answer(call: &str) -> ClientError {
    ClientError::new(ErrorKind::Protocol, call, "the answer does not have the expected shape")
}
