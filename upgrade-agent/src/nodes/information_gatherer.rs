//! Collects the data that a request needs. A model calls tools over a desk, and fixed rules judge the desk:
//! an error ends the action, a missing parameter becomes a question, and a complete action is checked and
//! proposed.

mod conclusion;
mod facts;
mod question;

use std::sync::Arc;

use agentgraph::{Ctx, Dep, Snapshot};
use agentgraph_llm::ToolLoop;

use super::{begin, failure};
use crate::agent::Settings;
use crate::client::UpgradeClient;
use crate::prompts;
use crate::reply::{is_cancel, is_no};
use crate::restores;
use crate::state::{
    CachedValue, ConversationState, ConversationStateUpdate, FurtherRequests, Pending, PresetReply,
    ResponseKind,
};
use crate::tools::{self, Desk, Draft, Gathered};

/// The limit of model calls in one gathering.
const ROUNDS: usize = 10;

pub(crate) async fn run(
    state: Snapshot<ConversationState>,
    settings: Dep<Settings>,
    client: Dep<UpgradeClient>,
    ctx: Ctx,
) -> ConversationStateUpdate {
    let update = begin(&ctx).await;
    let gives_up = is_cancel(&state.user_input) || is_no(&state.user_input);
    if let (Pending::Missing(missing), true) = (&state.pending, gives_up) {
        let what = missing.action.map_or_else(|| "that".to_owned(), |action| action.in_words().to_owned());
        let text = format!("All right, I will not {what}. Nothing was changed.");
        return update.preset(Some(PresetReply::new(ResponseKind::Answer, text))).pending(Pending::Nothing);
    }
    let desk = Arc::new(Desk::new(UpgradeClient::clone(&client), Draft::of(&state)));
    let request = prompts::gatherer(&state, &settings);
    let gathering = ToolLoop::new(&settings.model).tools(tools::gathering(&desk)).max_rounds(ROUNDS);
    if let Err(error) = gathering.run(request).await {
        // The pending question stays open, so the message can be sent again.
        let error = failure::of_model(&error, ctx.node());
        return keep(update, desk.clear(), state.turns)
            .preset(Some(failure::model_preset(&error)))
            .errors([error]);
    }
    let outcome = conclusion::conclude(&desk, &state, &settings, ctx.node()).await;
    let shown = outcome.experiments(&desk);
    let mut update = update.notes(restores::elsewhere(&ctx, &shown).await);
    update = update.notes(desk.notes().chosen.take());
    let further = std::mem::take(&mut desk.notes().further);
    if !further.is_empty() {
        update = update.further(FurtherRequests::new(further, state.turns));
    }
    outcome.write(keep(update, desk.clear(), state.turns), &state)
}

/// Stores the fetched data.
fn keep(update: ConversationStateUpdate, gathered: Gathered, turn: u64) -> ConversationStateUpdate {
    let mut update = update.gathered_info(gathered.info);
    // If there are several splits, the turn has no single one to show.
    if gathered.splits.len() == 1 {
        update = update.balance(gathered.splits.into_values().next());
    }
    if let Some(contexts) = gathered.contexts {
        update = update.context_metadata(Some(CachedValue::new(contexts, turn)));
    }
    if let Some(names) = gathered.names {
        update = update.experiment_names(Some(CachedValue::new(names, turn)));
    }
    if let Some(experiments) = gathered.experiments {
        update = update.experiments(Some(CachedValue::new(experiments, turn)));
    }
    update
}
