//! Updates an experiment: reads it whole, changes it, and writes it whole, since the server has no partial
//! update. Unknown fields pass through unchanged.

use std::collections::HashSet;

use serde_json::{Value, json};
use uuid::Uuid;

use super::call::Call;
use super::create::check_rule;
use super::dialect::Dialect;
use super::draft::{ExperimentPatch, NewCondition, NewDecisionPoint};
use super::error::{ClientError, ErrorKind};
use super::experiments::{read_experiment, unexpected_answer};
use super::model::{Experiment, PostRule, Raw, Revision};
use super::session::UpgradeClient;
use super::wire;
use super::words::AssignmentUnit;

const CALL: &str = "PUT /experiments";

impl UpgradeClient {
    /// Changes an experiment. Remaining conditions and points keep their ids. Lists are changed as little as
    /// possible, and segments on them stay. An empty patch writes nothing.
    ///
    /// The server has no lock: of two concurrent updates, the later one wins entirely. The experiment is read
    /// directly before the write. [`Self::update_unchanged`] also detects earlier changes by others.
    ///
    /// # Errors
    ///
    /// As [`Self::experiment`]. `E_UPGRADE_BAD_REQUEST` if the post-experiment rule names a condition that
    /// the changed experiment does not have, or if the server rejects the change. `E_UPGRADE_UNFINISHED` if
    /// only a part was done, which can happen on servers from 6.3 on: they take each list in a separate call.
    pub async fn update(&self, id: &str, patch: &ExperimentPatch) -> Result<Experiment, ClientError> {
        let whole = self.raw_experiment(id).await?;
        self.write_over(id, whole, patch).await.map(|written| written.experiment)
    }

    /// As [`Self::update`], but only if the experiment has not changed since an earlier read.
    ///
    /// The experiment is read again directly before the write. A change in between cannot be prevented, but
    /// the number of changes reveals it afterwards. A change of lists alone is not detected.
    ///
    /// # Errors
    ///
    /// As [`Self::update`], and `E_UPGRADE_CONFLICT` if somebody else changed the experiment: either earlier,
    /// and nothing was written, or between read and write, and the other change may be overwritten
    /// ([`ClientError::may_have_acted`] distinguishes the two).
    ///
    /// ```
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// use upgrade_agent::client::{ErrorKind, ExperimentPatch, NewExperiment, UpgradeClient};
    /// use upgrade_agent::server::EmbeddedServer;
    ///
    /// let server = EmbeddedServer::builder().in_memory().start().await?;
    /// let client = UpgradeClient::builder(server.url()).build()?;
    /// let seen = client.create(&NewExperiment::new("Math hints", "assign-prog")).await?;
    ///
    /// let theirs = ExperimentPatch { name: Some("Theirs".into()), ..Default::default() };
    /// client.update(&seen.id, &theirs).await?;
    ///
    /// let mine = ExperimentPatch { name: Some("Mine".into()), ..Default::default() };
    /// let refused = client.update_unchanged(&seen.id, &mine, &seen.revision()).await.unwrap_err();
    /// assert_eq!(refused.kind(), ErrorKind::Conflict);
    /// assert_eq!(client.experiment(&seen.id).await?.name, "Theirs");
    /// # server.shutdown().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub async fn update_unchanged(
        &self,
        id: &str,
        patch: &ExperimentPatch,
        seen: &Revision,
    ) -> Result<Experiment, ClientError> {
        let whole = self.raw_experiment(id).await?;
        if read_experiment(CALL, &whole)?.revision() != *seen {
            let why = "somebody else changed the experiment meanwhile, so nothing was written";
            return Err(ClientError::new(ErrorKind::Conflict, CALL, why));
        }
        let writes = self.write_over(id, whole, patch).await?;
        let (Some(before), Some(after)) = (seen.number, writes.experiment.version_number) else {
            return Ok(writes.experiment);
        };
        if after > before.saturating_add(writes.puts) {
            let why = "the change was made, but in the same instant somebody else made one, which may be written over";
            return Err(ClientError::new(ErrorKind::Conflict, CALL, why).maybe_done());
        }
        Ok(writes.experiment)
    }

    async fn write_over(
        &self,
        id: &str,
        whole: Raw,
        patch: &ExperimentPatch,
    ) -> Result<WrittenExperiment, ClientError> {
        if patch.is_empty() {
            return Ok(WrittenExperiment { experiment: read_experiment(CALL, &whole)?, puts: 0 });
        }
        let dialect = self.dialect().await?;
        if dialect == Dialect::V62 {
            return written(&self.put(id, whole, patch, dialect).await?);
        }
        let columns = patch.without_lists();
        let mut rest = patch.lists();
        if columns.is_empty() && !rest.is_empty() {
            return self.write_rest(id, whole, &rest, 0).await;
        }
        let whole = self.put(id, whole, &columns, dialect).await?;
        // A new context resets the filter mode, whatever the body says.
        rest.filter_mode =
            patch.filter_mode.clone().filter(|wanted| whole.get("filterMode") != Some(&json!(wanted)));
        if rest.is_empty() {
            return written(&whole);
        }
        let again = self.raw_experiment(id).await.map_err(|why| half_done(why, id, &rest))?;
        self.write_rest(id, again, &rest, 1).await
    }

    /// The changes that need separate calls from 6.3 on.
    async fn write_rest(
        &self,
        id: &str,
        mut whole: Raw,
        rest: &ExperimentPatch,
        mut puts: u64,
    ) -> Result<WrittenExperiment, ClientError> {
        let stopped = |is_begun, why: ClientError| {
            if is_begun || why.may_have_acted() { half_done(why, id, rest) } else { why }
        };
        if rest.filter_mode.is_some() {
            let filter = rest.without_lists();
            whole = self.put(id, whole, &filter, Dialect::V65).await.map_err(|why| stopped(puts > 0, why))?;
            puts += 1;
        }
        let lists = self.write_lists(&whole, rest).await;
        lists.map_err(|(done, why)| stopped(puts > 0 || done > 0, why))?;
        let experiment = self.experiment(id).await.map_err(|why| half_done(why, id, rest))?;
        Ok(WrittenExperiment { experiment, puts })
    }

    /// Writes the whole experiment with the change, and returns its new state.
    async fn put(
        &self,
        id: &str,
        mut whole: Raw,
        patch: &ExperimentPatch,
        dialect: Dialect,
    ) -> Result<Raw, ClientError> {
        apply(patch, &mut whole)?;
        if dialect == Dialect::V62 {
            wire::v62::complete_update(&mut whole, patch);
        }
        let answer = self.call(Call::put(&["experiments", id], Value::Object(whole.clone()))).await?;
        whole.extend(answer.as_object().ok_or_else(|| unexpected_answer(CALL))?.clone());
        Ok(whole)
    }
}

/// An experiment, and the number of times it was written.
struct WrittenExperiment {
    experiment: Experiment,
    puts: u64,
}

fn written(whole: &Raw) -> Result<WrittenExperiment, ClientError> {
    Ok(WrittenExperiment { experiment: read_experiment(CALL, whole)?, puts: 1 })
}

fn half_done(why: ClientError, id: &str, rest: &ExperimentPatch) -> ClientError {
    why.in_the_middle(id, "a part of the change is done", rest.clone())
}

fn apply(patch: &ExperimentPatch, whole: &mut Raw) -> Result<(), ClientError> {
    set(whole, "name", &patch.name);
    set(whole, "description", &patch.description);
    set(whole, "tags", &patch.tags);
    set(whole, "consistencyRule", &patch.consistency_rule);
    set(whole, "filterMode", &patch.filter_mode);
    set(whole, "context", &patch.context.as_ref().map(|context| [context]));
    set(whole, "assignmentUnit", &patch.assignment_unit);
    set(whole, "group", &patch.group_type);
    if patch.assignment_unit.as_ref().is_some_and(|unit| *unit != AssignmentUnit::Group) {
        whole.insert("group".into(), Value::Null);
    }
    if let Some(conditions) = &patch.conditions {
        change(whole, "conditions", conditions, condition_matches, condition);
    }
    if let Some(points) = &patch.decision_points {
        change(whole, "partitions", points, point_matches, point);
    }
    drop_orphaned_payloads(whole);
    apply_rule(patch.post_rule.as_ref(), whole)
}

fn set<T: serde::Serialize>(whole: &mut Raw, field: &str, value: &Option<T>) {
    if let Some(value) = value {
        whole.insert(field.to_owned(), json!(value));
    }
}

/// Replaces a list: each new entry is merged into the stored entry that it matches, if any.
fn change<T>(
    whole: &mut Raw,
    field: &str,
    wanted: &[T],
    matches: fn(&Value, &T) -> bool,
    fields: fn(&T) -> Raw,
) {
    let mut stored = match whole.remove(field) {
        Some(Value::Array(stored)) => stored,
        _ => Vec::new(),
    };
    let entries = wanted.iter().zip(1..).map(|(entry, order)| {
        let mut object = match stored.iter().position(|old| matches(old, entry)) {
            Some(at) => stored.remove(at),
            None => json!({ "id": Uuid::new_v4(), "name": "", "description": "" }),
        };
        if let Some(object) = object.as_object_mut() {
            object.extend(fields(entry));
            object.insert("order".into(), json!(order));
        }
        object
    });
    let entries = Value::Array(entries.collect());
    whole.insert(field.to_owned(), entries);
}

fn condition_matches(stored: &Value, wanted: &NewCondition) -> bool {
    stored["conditionCode"] == wanted.code
}

fn condition(wanted: &NewCondition) -> Raw {
    Raw::from_iter([
        ("conditionCode".into(), json!(wanted.code)),
        ("assignmentWeight".into(), json!(wanted.weight)),
    ])
}

fn point_matches(stored: &Value, wanted: &NewDecisionPoint) -> bool {
    stored["site"] == wanted.site && stored["target"].as_str().unwrap_or("") == wanted.target
}

fn point(wanted: &NewDecisionPoint) -> Raw {
    Raw::from_iter([
        ("site".into(), json!(wanted.site)),
        ("target".into(), json!(wanted.target)),
        ("excludeIfReached".into(), json!(wanted.exclude_if_reached)),
    ])
}

/// The server would fail on a payload of a removed condition or point, and on a missing list of payloads.
fn drop_orphaned_payloads(whole: &mut Raw) {
    let ids: HashSet<String> = ["conditions", "partitions"]
        .iter()
        .filter_map(|field| whole.get(*field)?.as_array())
        .flatten()
        .filter_map(|entry| Some(entry["id"].as_str()?.to_owned()))
        .collect();
    let known = |id: &Value| match id {
        Value::Object(whole) => whole.get("id").and_then(Value::as_str).is_some_and(|id| ids.contains(id)),
        Value::String(id) => ids.contains(id),
        _ => true,
    };
    let payloads = whole.entry("conditionPayloads").or_insert_with(|| json!([]));
    match payloads {
        Value::Array(payloads) => {
            payloads.retain(|entry| known(&entry["parentCondition"]) && known(&entry["decisionPoint"]));
        }
        other => *other = json!([]),
    }
}

fn apply_rule(rule: Option<&PostRule>, whole: &mut Raw) -> Result<(), ClientError> {
    let conditions = whole.get("conditions").and_then(Value::as_array).cloned().unwrap_or_default();
    let Some(rule) = rule else {
        return check_revert(whole, &conditions);
    };
    check_rule(CALL, rule, conditions.iter().filter_map(|entry| entry["conditionCode"].as_str()))?;
    let named = |entry: &&Value| entry["conditionCode"].as_str() == rule.condition_code.as_deref();
    let id = conditions.iter().find(named).map(|entry| entry["id"].clone());
    whole.insert("postExperimentRule".into(), json!(rule.rule));
    whole.insert("revertTo".into(), id.unwrap_or(Value::Null));
    Ok(())
}

/// Refuses to remove the condition that the present rule assigns. Otherwise the server would fail or assign
/// the default to everybody.
fn check_revert(whole: &Raw, conditions: &[Value]) -> Result<(), ClientError> {
    let assigns = whole.get("postExperimentRule").is_some_and(|rule| rule == "assign");
    match whole.get("revertTo") {
        Some(Value::String(id)) if assigns && !conditions.iter().any(|c| c["id"] == **id) => {
            let why = "the post-experiment rule assigns a condition that is removed; change the rule too";
            Err(ClientError::new(ErrorKind::BadRequest, CALL, why))
        }
        _ => Ok(()),
    }
}
