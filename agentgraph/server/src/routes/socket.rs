//! `GET /threads/{id}/stream/events`: commands and the events of a thread on one WebSocket. An event that
//! several subscriptions want is sent once.

use std::sync::Arc;

use axum::Extension;
use axum::extract::Path;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade};
use axum::response::Response;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::Shared;
use super::commands::{Command, Failure};
use super::events::Filter;
use super::gate::Place;
use crate::app::App;
use crate::ids;
use crate::live::{LoggedEvent, ThreadLog};

pub(super) async fn socket(
    Shared(app): Shared,
    Path(id): Path<String>,
    Extension(place): Extension<Place>,
    upgrade: WebSocketUpgrade,
) -> Response {
    let upgrade = upgrade.max_message_size(app.settings.max_body);
    upgrade.on_upgrade(async move |mut socket| {
        let _until_the_end = place;
        let end = match ids::parse_uuid("thread_id", &id) {
            Ok(thread) => serve(&app, &mut socket, &thread).await,
            // A page cannot read the status of a refused upgrade. Clients know these codes as final.
            Err(error) => Some((4000 + error.status.as_u16(), error.detail)),
        };
        if let Some((code, reason)) = end {
            // It fails if the client has gone.
            let _ = socket.send(Message::Close(Some(CloseFrame { code, reason: reason.into() }))).await;
        }
    })
}

/// Serves until one side ends it. Returns why the server does.
async fn serve(app: &Arc<App>, socket: &mut WebSocket, thread: &str) -> Option<(u16, String)> {
    let failed = |error| {
        tracing::error!(%error, "a stream of events failed");
        Some((4500, "the store of records failed".to_owned()))
    };
    let log = match app.thread_log(thread).await {
        Ok(log) => log,
        Err(error) => return failed(error),
    };
    let at = match app.seen_through(&log).await {
        Ok(at) => at,
        Err(error) => return failed(error),
    };
    let mut connection = Connection { app, log, at, subscriptions: Vec::new() };
    loop {
        let answers = tokio::select! {
            events = timeout(app.settings.heartbeat, app.events_after(&connection.log, &mut connection.at)) => {
                match events {
                    Err(_) => vec![Message::Ping(Vec::new().into())],
                    Ok(Ok(events)) => connection.wanted(&events),
                    Ok(Err(error)) => return failed(error),
                }
            }
            message = socket.recv() => match message {
                Some(Ok(Message::Text(text))) => connection.answer(socket, text.as_bytes()).await,
                Some(Ok(Message::Binary(bytes))) => connection.answer(socket, &bytes).await,
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => Vec::new(),
                Some(Ok(Message::Close(_)) | Err(_)) | None => return None,
            },
            () = app.live.drain.cancelled() => return Some((1001, "the server ends".to_owned())),
        };
        for answer in answers {
            socket.send(answer).await.ok()?;
        }
    }
}

struct Connection<'a> {
    app: &'a Arc<App>,
    log: Arc<ThreadLog>,
    /// The number of the last event that subscriptions have had, if they want it.
    at: u64,
    subscriptions: Vec<(String, Filter)>,
}

fn message(value: &Value) -> Message {
    Message::Text(value.to_string().into())
}

impl Connection<'_> {
    fn wanted(&self, events: &[Arc<LoggedEvent>]) -> Vec<Message> {
        let is_wanted =
            |event: &&Arc<LoggedEvent>| self.subscriptions.iter().any(|(_, filter)| filter.selects(event));
        events.iter().filter(is_wanted).map(|event| Message::Text((&*event.text).into())).collect()
    }

    /// Carries out a command. The answer to a subscription comes after the events that it had missed.
    async fn answer(&mut self, socket: &mut WebSocket, text: &[u8]) -> Vec<Message> {
        let read = serde_json::from_slice(text).unwrap_or(Value::Null);
        let command = match Command::read(read) {
            Ok(command) => command,
            Err(refused) => return vec![message(&refused)],
        };
        let result = match &*command.method {
            "subscription.subscribe" => self.subscribe(socket, &command.params).await,
            "subscription.unsubscribe" => self.unsubscribe(&command.params),
            _ => return vec![message(&command.answer(self.app, &self.log.thread).await)],
        };
        match result {
            Ok(result) => {
                // It goes on over events that are another caller's, without a word of them.
                let seen = self.app.seen_through(&self.log).await.unwrap_or(0).min(self.at);
                vec![message(&command.success(&result, seen))]
            }
            Err(failure) => vec![message(&command.failure(&failure))],
        }
    }

    async fn subscribe(&mut self, socket: &mut WebSocket, params: &Value) -> Result<Value, Failure> {
        let refused = |error: crate::error::ApiError| Failure::new("invalid_argument", error.detail);
        let filter = Filter::read(params).map_err(refused)?;
        let mut at = params["since"].as_u64().unwrap_or(0);
        let mut replayed = 0_u64;
        while at < self.at {
            let events = self.app.known_events(&self.log, &mut at).await?;
            for event in events.iter().filter(|event| event.seq <= self.at && filter.selects(event)) {
                replayed += 1;
                if socket.send(Message::Text((&*event.text).into())).await.is_err() {
                    // The next read of the socket ends the connection.
                    return Ok(Value::Null);
                }
            }
        }
        let id = ids::new_id();
        self.subscriptions.push((id.clone(), filter));
        Ok(json!({ "subscription_id": id, "replayed_events": replayed }))
    }

    fn unsubscribe(&mut self, params: &Value) -> Result<Value, Failure> {
        let id = params["subscription_id"].as_str().unwrap_or_default();
        let before = self.subscriptions.len();
        self.subscriptions.retain(|(known, _)| known != id);
        if self.subscriptions.len() == before {
            return Err(Failure::new("no_such_subscription", format!("Unknown subscription: {id}")));
        }
        Ok(json!({}))
    }
}
