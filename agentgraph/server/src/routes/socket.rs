//! `GET /threads/{id}/stream/events`: commands and the events of a thread on one WebSocket. An event that
//! several subscriptions want is sent once.

use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::extract::Path;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade};
use axum::response::Response;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout, timeout_at};

use super::Shared;
use super::commands::{Command, Failure};
use super::events::Filter;
use super::gate::Place;
use crate::app::App;
use crate::error::{ApiError, RecordError};
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
    let mut connection = Connection { app, log, at, subscriptions: Vec::new(), unread: None };
    loop {
        let answers = tokio::select! {
            events = timeout(app.settings.heartbeat, app.events_after(&connection.log, &mut connection.at)) => {
                match events {
                    Err(_) => vec![Message::Ping(Vec::new().into())],
                    Ok(Ok(events)) => connection.wanted(&events),
                    Ok(Err(error)) => return failed(error),
                }
            }
            received = receive(socket, &mut connection.unread) => match received {
                Some(Ok(message @ (Message::Text(_) | Message::Binary(_)))) => {
                    connection.answer(socket, message).await
                }
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

/// How long a subscription waits for others that the client sends with it. Clients open several at once. One
/// that hears of the end of a run by the first of them, before the rest of the run by the next one, takes the
/// run for ended and never shows the rest.
const TOGETHER: Duration = Duration::from_millis(20);

/// What a socket received: nothing once it has ended.
type Received = Option<Result<Message, axum::Error>>;

async fn receive(socket: &mut WebSocket, unread: &mut Option<Received>) -> Received {
    match unread.take() {
        Some(received) => received,
        None => socket.recv().await,
    }
}

struct Connection<'a> {
    app: &'a Arc<App>,
    log: Arc<ThreadLog>,
    /// The number of the last event that subscriptions have had, if they want it.
    at: u64,
    subscriptions: Vec<(String, Filter)>,
    /// What came after subscriptions that were sent together.
    unread: Option<Received>,
}

/// A subscription that begins.
struct Begun {
    filter: Filter,
    since: u64,
    replayed: u64,
}

impl Begun {
    fn read(params: &Value) -> Result<Self, Failure> {
        let refused = |error: ApiError| Failure::new("invalid_argument", error.detail);
        let filter = Filter::read(params).map_err(refused)?;
        Ok(Begun { filter, since: params["since"].as_u64().unwrap_or(0), replayed: 0 })
    }

    /// Whether it has missed an event, which is counted.
    fn takes(&mut self, event: &LoggedEvent) -> bool {
        let takes = event.seq > self.since && self.filter.selects(event);
        self.replayed += u64::from(takes);
        takes
    }
}

fn read(message: Message) -> Result<Command, Value> {
    Command::read(serde_json::from_slice(&message.into_data()).unwrap_or(Value::Null))
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

    /// Carries out a command.
    async fn answer(&mut self, socket: &mut WebSocket, received: Message) -> Vec<Message> {
        let command = match read(received) {
            Ok(command) => command,
            Err(refused) => return vec![message(&refused)],
        };
        match &*command.method {
            "subscription.subscribe" => {
                let commands = self.sent_with(command, socket).await;
                self.subscribe(socket, &commands).await
            }
            "subscription.unsubscribe" => {
                let result = self.unsubscribe(&command.params);
                vec![self.reply(&command, result).await]
            }
            _ => vec![message(&command.answer(self.app, &self.log.thread).await)],
        }
    }

    async fn reply(&self, command: &Command, result: Result<Value, Failure>) -> Message {
        match result {
            Ok(result) => {
                // It goes on over events that are another caller's, without a word of them.
                let seen = self.app.seen_through(&self.log).await.unwrap_or(0).min(self.at);
                message(&command.success(&result, seen))
            }
            Err(failure) => message(&command.failure(&failure)),
        }
    }

    /// A subscription, and those that the client has sent with it.
    async fn sent_with(&mut self, first: Command, socket: &mut WebSocket) -> Vec<Command> {
        let mut commands = vec![first];
        let end = Instant::now() + TOGETHER;
        while let Ok(received) = timeout_at(end, socket.recv()).await {
            let next = match &received {
                Some(Ok(message @ (Message::Text(_) | Message::Binary(_)))) => read(message.clone()).ok(),
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => continue,
                _ => None,
            };
            match next.filter(|next| next.method == "subscription.subscribe") {
                Some(next) => commands.push(next),
                None => {
                    self.unread = Some(received);
                    break;
                }
            }
        }
        commands
    }

    /// Begins subscriptions. The events that they have missed come first, in the order of the log, then the
    /// answers.
    async fn subscribe(&mut self, socket: &mut WebSocket, commands: &[Command]) -> Vec<Message> {
        let begun = commands.iter().map(|command| Begun::read(&command.params));
        let mut begun: Vec<Result<Begun, Failure>> = begun.collect();
        if let Err(error) = self.replay(socket, &mut begun).await {
            let failure = Failure::from(error);
            return commands.iter().map(|command| message(&command.failure(&failure))).collect();
        }
        let mut answers = Vec::new();
        for (command, begun) in commands.iter().zip(begun) {
            let result = begun.map(|Begun { filter, replayed, .. }| {
                let id = ids::new_id();
                self.subscriptions.push((id.clone(), filter));
                json!({ "subscription_id": id, "replayed_events": replayed })
            });
            answers.push(self.reply(command, result).await);
        }
        answers
    }

    async fn replay(
        &self,
        socket: &mut WebSocket,
        begun: &mut [Result<Begun, Failure>],
    ) -> Result<(), RecordError> {
        let Some(mut at) = begun.iter().flatten().map(|begun| begun.since).min() else { return Ok(()) };
        while at < self.at {
            let events = self.app.known_events(&self.log, &mut at).await?;
            for event in events.iter().filter(|event| event.seq <= self.at) {
                let mut is_taken = false;
                for begun in begun.iter_mut().flatten() {
                    is_taken |= begun.takes(event);
                }
                if is_taken && socket.send(Message::Text((&*event.text).into())).await.is_err() {
                    // The next read of the socket ends the connection.
                    return Ok(());
                }
            }
        }
        Ok(())
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
