//! The gatherer's desk: the data and notes of one gathering. It lives as long as one call of the node, so its
//! content cannot reach another conversation.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use agentgraph_llm::ToolError;
use serde::Serialize;
use serde_json::{Value, json};

use super::Draft;
use crate::actions::ExperimentRef;
use crate::balance::BalanceReport;
use crate::client::{ClientError, ContextMetadata, ErrorKind, Experiment, ExperimentName, UpgradeClient};
use crate::state::ErrorClass;

/// The desk. No lock is held across an await.
pub(crate) struct Desk {
    client: UpgradeClient,
    notes: Mutex<Gathered>,
}

/// The content of the desk.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gathered {
    pub(crate) info: BTreeMap<String, Value>,
    pub(crate) contexts: Option<ContextMetadata>,
    pub(crate) names: Option<Vec<ExperimentName>>,
    pub(crate) experiments: Option<Vec<Experiment>>,
    pub(crate) draft: Draft,
    /// A sentence about a value that was taken because no other one is possible.
    pub(crate) chosen: Option<String>,
    /// Requests of the message that are met later.
    pub(crate) further: Vec<String>,
    /// The reasons for which a model has given a request up.
    pub(crate) errors: Vec<(ErrorClass, String)>,
    /// Failures of the server.
    pub(crate) failures: Vec<(ErrorClass, String)>,
    /// Look-ups without a result. A model may try again, so they become errors only if nothing follows.
    pub(crate) misses: Vec<(ErrorClass, String)>,
    /// The experiments whose details were read.
    pub(crate) seen: Vec<ExperimentRef>,
    /// The splits of enrolled students, by the experiment's id.
    pub(crate) splits: BTreeMap<String, BalanceReport>,
}

impl Desk {
    pub(crate) fn new(client: UpgradeClient, draft: Draft) -> Self {
        Desk { client, notes: Mutex::new(Gathered { draft, ..Gathered::default() }) }
    }

    pub(crate) fn client(&self) -> &UpgradeClient {
        &self.client
    }

    pub(crate) fn notes(&self) -> MutexGuard<'_, Gathered> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes and returns all notes.
    pub(crate) fn clear(&self) -> Gathered {
        std::mem::take(&mut *self.notes())
    }

    /// Stores a value under a name and returns it to the model.
    pub(super) fn keep(&self, name: impl Into<String>, value: &impl Serialize) -> Result<Value, ToolError> {
        let value = serde_json::to_value(value)?;
        self.notes().info.insert(name.into(), value.clone());
        Ok(value)
    }

    /// Stores a value among others of its kind, by id.
    pub(super) fn keep_by_id(
        &self,
        name: &str,
        id: &str,
        value: &impl Serialize,
    ) -> Result<Value, ToolError> {
        let value = serde_json::to_value(value)?;
        let mut notes = self.notes();
        let all = notes.info.entry(name.to_owned()).or_insert_with(|| json!({}));
        all[id] = value.clone();
        Ok(value)
    }

    /// Notes an error of the server and returns it to the model.
    pub(super) fn failed(&self, error: &ClientError) -> ToolError {
        let note = (crate::nodes::failure::class_of(error), error.to_string());
        match error.kind() {
            ErrorKind::NotFound | ErrorKind::BadRequest => self.notes().misses.push(note),
            _ => note_once(&mut self.notes().failures, note),
        }
        ToolError::failed(error)
    }

    pub(super) fn note_error(&self, note: (ErrorClass, String)) {
        note_once(&mut self.notes().errors, note);
    }

    /// The contexts, fetched once.
    pub(crate) async fn contexts(&self) -> Result<ContextMetadata, ClientError> {
        let known = self.notes().contexts.clone();
        match known {
            Some(contexts) => Ok(contexts),
            None => {
                let contexts = self.client.context_metadata().await?;
                self.notes().contexts = Some(contexts.clone());
                Ok(contexts)
            }
        }
    }

    /// The names of the experiments, fetched once and sorted.
    pub(crate) async fn names(&self) -> Result<Vec<ExperimentName>, ClientError> {
        let known = self.notes().names.clone();
        match known {
            Some(names) => Ok(names),
            None => {
                let mut names = self.client.experiment_names().await?;
                names.sort_by(|one, other| (&one.name, &one.id).cmp(&(&other.name, &other.id)));
                self.notes().names = Some(names.clone());
                Ok(names)
            }
        }
    }
}

fn note_once(notes: &mut Vec<(ErrorClass, String)>, note: (ErrorClass, String)) {
    if !notes.contains(&note) {
        notes.push(note);
    }
}
