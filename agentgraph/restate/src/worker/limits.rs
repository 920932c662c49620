//! The object `agentgraph.limits`: the places of a node's [limit](agentgraph::policy::Limit), over all
//! workers, by the name of the limit.
//!
//! The invocation of a task enters, and waits for an awakeable. Who has a place is watched by an
//! invocation that attaches to it: so a place is given back however its task ends, by a kill, too.

use std::collections::VecDeque;
use std::time::Duration;

use agentgraph::host::TaskLimit;
use bytes::Bytes;
use restate_sdk::context::RequestTarget;
use restate_sdk::errors::{HandlerError, TerminalError};
use serde::{Deserialize, Serialize};

use super::sdk::{About, Journal};

pub(super) const SERVICE: &str = "agentgraph.limits";

/// The tasks of a limit, as JSON, for people who look into the server.
const PLACES: &str = "places";

#[derive(Default, Serialize, Deserialize)]
struct Places {
    most: u64,
    /// The invocations that have a place.
    running: Vec<String>,
    waiting: VecDeque<Waiting>,
}

#[derive(Serialize, Deserialize)]
struct Waiting {
    invocation: String,
    awakeable: String,
    most: u64,
}

/// Waits for a place of a limit. `part` has places of its own.
pub(super) async fn wait(
    ctx: &Journal,
    about: &About,
    limit: &TaskLimit,
    part: Option<&str>,
) -> Result<(), TerminalError> {
    let (awakeable, place) = ctx.awakeable();
    let waiting = Waiting { invocation: about.invocation_id.clone(), awakeable, most: limit.most };
    let key = part.map_or_else(|| limit.name.clone(), |part| format!("{}/{part}", limit.name));
    send(ctx, &key, "enter", json(&waiting));
    place.await.map(drop)
}

/// Takes a place, or waits for one.
pub(super) async fn enter(ctx: &Journal, about: &About, input: Bytes) -> Result<Bytes, HandlerError> {
    let waiting: Waiting = serde_json::from_slice(&input)?;
    let mut places = places(ctx).await?;
    places.most = waiting.most;
    places.waiting.push_back(waiting);
    places.give(ctx, &about.key);
    Ok(Bytes::new())
}

/// Waits until an invocation that has a place has ended.
pub(super) async fn watch(ctx: &Journal, about: &About, input: Bytes) -> Result<Bytes, HandlerError> {
    // However it ended; one that the server does not know any more has ended, too.
    let _ = ctx.attach(String::from_utf8_lossy(&input).into_owned()).await;
    send(ctx, &about.key, "leave", input);
    Ok(Bytes::new())
}

/// Gives a place back.
pub(super) async fn leave(ctx: &Journal, about: &About, input: Bytes) -> Result<Bytes, HandlerError> {
    let mut places = places(ctx).await?;
    places.running.retain(|invocation| invocation.as_bytes() != &*input);
    places.give(ctx, &about.key);
    Ok(Bytes::new())
}

impl Places {
    /// Gives free places to those who wait, in the order of their coming.
    fn give(mut self, ctx: &Journal, key: &str) {
        while (self.running.len() as u64) < self.most
            && let Some(Waiting { invocation, awakeable, .. }) = self.waiting.pop_front()
        {
            ctx.resolve_awakeable(&awakeable, Bytes::new());
            send(ctx, key, "watch", invocation.clone().into());
            self.running.push(invocation);
        }
        match self.running.is_empty() {
            true => ctx.clear(PLACES),
            false => ctx.set(PLACES, json(&self)),
        }
    }
}

async fn places(ctx: &Journal) -> Result<Places, HandlerError> {
    let known = ctx.get::<Bytes>(PLACES).await?;
    Ok(known.map(|known| serde_json::from_slice(&known)).transpose()?.unwrap_or_default())
}

fn send(ctx: &Journal, key: &str, handler: &str, input: Bytes) {
    ctx.send(RequestTarget::object(SERVICE, key, handler), input, Duration::ZERO);
}

/// Names and numbers, which always have a form in JSON.
fn json(value: &impl Serialize) -> Bytes {
    serde_json::to_vec(value).unwrap_or_default().into()
}
