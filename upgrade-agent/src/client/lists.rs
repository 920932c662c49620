//! The lists of an experiment, which from 6.3 on have calls of their own, and the global list of a context.

use serde_json::json;

use super::call::Call;
use super::draft::ExperimentPatch;
use super::error::ClientError;
use super::experiments::unexpected_answer;
use super::model::{GlobalExclusion, Raw};
use super::session::UpgradeClient;
use super::wire::{self, ListStep, Side};

impl UpgradeClient {
    /// The members that a context excludes from all its experiments.
    ///
    /// # Errors
    ///
    /// Those of any call. An unknown context has an empty list.
    pub async fn global_exclusion(&self, context: &str) -> Result<GlobalExclusion, ClientError> {
        let answer = self.call(Call::get(&["segments", "global"])).await?;
        wire::global_exclusion(&answer, context).ok_or_else(|| unexpected_answer("GET /segments/global"))
    }

    /// Makes an experiment's lists match the patch. An error has the number of calls before it.
    pub(super) async fn write_lists(
        &self,
        experiment: &Raw,
        patch: &ExperimentPatch,
    ) -> Result<(), (usize, ClientError)> {
        for (done, (side, step)) in list_steps(experiment, patch).into_iter().enumerate() {
            self.call(list_call(experiment, side, step)).await.map_err(|why| (done, why))?;
        }
        Ok(())
    }
}

/// Exclusions first, so that a member who moves between the lists is always on one of them.
fn list_steps(experiment: &Raw, patch: &ExperimentPatch) -> Vec<(Side, ListStep)> {
    let sides = [(Side::Exclusion, &patch.exclusion), (Side::Inclusion, &patch.inclusion)];
    let wanted = sides.into_iter().filter_map(|(side, members)| Some((side, members.as_ref()?)));
    let steps = |(side, members)| {
        wire::list_steps(experiment, side, members).into_iter().map(move |step| (side, step))
    };
    wanted.flat_map(steps).collect()
}

fn list_call(experiment: &Raw, side: Side, step: ListStep) -> Call {
    let body = |list| json!({ "experimentId": experiment.get("id"), "list": list });
    match step {
        ListStep::Add(list) => Call::post(&["experiments", side.route()], body(list)),
        ListStep::Change(id, list) => Call::put(&["experiments", side.route(), &id], body(list)),
        ListStep::Remove(id) => Call::delete(&["experiments", side.route(), &id]),
    }
}
