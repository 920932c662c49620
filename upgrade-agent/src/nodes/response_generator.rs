//! Stub.
use agentgraph::{Ctx, Dep, Snapshot};

use super::begin;
use crate::agent::Settings;
use crate::client::UpgradeClient;
use crate::state::{ConversationState, ConversationStateUpdate};

pub(crate) async fn run(
    _state: Snapshot<ConversationState>,
    _settings: Dep<Settings>,
    _server: Dep<UpgradeClient>,
    ctx: Ctx,
) -> ConversationStateUpdate {
    begin(&ctx).await
}
