//! A graph behind HTTP: a thread for each id in the path, its events as they happen, cancel, and a restart
//! that loses nothing. `docs/guide/http.md` explains it.
//!
//! ```text
//! cargo run -p serving -- reports.db 127.0.0.1:8080
//! curl localhost:8080/threads/7 -H content-type:application/json -d '{"topic":"tea","sections":3,"pause":500}'
//! curl -N localhost:8080/threads/7/events
//! ```
//!
//! `--model anthropic:claude-...` names a model in the place of the script.

mod report;

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agentgraph::prelude::*;
use agentgraph::run::{OpenReason, RunBuilder};
use agentgraph::{CancellationToken, Checkpointer, Error, SqliteSaver};
use axum::extract::{Path, State as Shared};
use axum::http::StatusCode;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use futures_util::{Stream, StreamExt, stream};
use report::{Report, graph, script};
use serde_json::{Value, json};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::broadcast;
use tokio_util::task::TaskTracker;

#[derive(Clone)]
struct App {
    graph: CompiledGraph<Report>,
    /// Whoever reads the events of the runs of this process, by thread.
    readers: Arc<Mutex<HashMap<String, broadcast::Sender<String>>>>,
    /// Cancelled when the server is to stop.
    drain: CancellationToken,
    runs: TaskTracker,
}

impl App {
    /// Starts a call, which goes on when its request has ended, whether anybody reads its events or not.
    async fn start(&self, thread: String, call: RunBuilder<Report>) -> Reply {
        let views = [View::Updates, View::Tasks, View::Messages, View::Custom];
        let mut events = call.thread(&*thread).views(views).drain(self.drain.clone()).stream();
        let first = match events.next().await {
            Some(refused) if matches!(refused.outcome(), Some(Err(_))) => {
                refused.into_outcome().transpose()?;
                None
            }
            first => first,
        };
        let (readers, _) = broadcast::channel(256);
        self.readers().insert(thread.clone(), readers.clone());
        let app = self.clone();
        self.runs.spawn(async move {
            let mut events = stream::iter(first).chain(events);
            while let Some(event) = events.next().await {
                // An error means that nobody reads.
                let _ = readers.send(serde_json::to_string(&event).unwrap_or_default());
            }
            app.readers().retain(|_, other| !other.same_channel(&readers));
        });
        Ok(Json(json!({ "thread": thread })))
    }

    fn readers(&self) -> MutexGuard<'_, HashMap<String, broadcast::Sender<String>>> {
        self.readers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Continues every run that an earlier process left before its end, unless it waits for somebody or has
    /// failed.
    async fn go_on(&self, saver: &impl Checkpointer) -> Result<()> {
        for thread in saver.threads().await? {
            let Some(report) = self.graph.report(&thread).await? else { continue };
            let goes_on = |why: &OpenReason| matches!(why, OpenReason::Next | OpenReason::Inside(_));
            let is_left = !report.is_finished() && report.running.is_none();
            if is_left && report.open.iter().all(|open| goes_on(&open.why)) {
                println!("going on with {report}");
                let _ = self.start(thread, self.graph.proceed()).await;
            }
        }
        Ok(())
    }
}

type Reply = Result<Json<Value>, Refused>;

struct Refused(Error);

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        Refused(error)
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let Refused(error) = self;
        let body = json!({ "code": error.code().as_str(), "message": error.to_string() });
        (StatusCode::CONFLICT, Json(body)).into_response()
    }
}

#[derive(serde::Deserialize)]
struct NewReport {
    topic: String,
    sections: usize,
    #[serde(default)]
    pause: u64,
}

async fn start(Shared(app): Shared<App>, Path(thread): Path<String>, Json(new): Json<NewReport>) -> Reply {
    let input = Report::update().topic(new.topic).sections(new.sections).pause(new.pause);
    app.start(thread, app.graph.invoke(input)).await
}

async fn answer(Shared(app): Shared<App>, Path(thread): Path<String>, Json(answer): Json<Value>) -> Reply {
    app.start(thread, app.graph.resume(answer)).await
}

async fn proceed(Shared(app): Shared<App>, Path(thread): Path<String>) -> Reply {
    app.start(thread, app.graph.proceed()).await
}

async fn cancel(Shared(app): Shared<App>, Path(thread): Path<String>) -> Reply {
    let answer = app.graph.cancel(thread).until_ended().await?;
    Ok(Json(json!({ "cancel": format!("{answer:?}") })))
}

async fn show(Shared(app): Shared<App>, Path(thread): Path<String>) -> Reply {
    let report = app.graph.report(&thread).await?.map(|report| report.to_string());
    let state = app.graph.state(&thread).await?.map(|found| app.graph.state_json(&found.values));
    Ok(Json(json!({ "state": state, "report": report })))
}

/// The events of the run that is under way in this process, from now on. Ends with the run.
async fn events(
    Shared(app): Shared<App>,
    Path(thread): Path<String>,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let reader = app.readers().get(&thread).map(broadcast::Sender::subscribe);
    let events = stream::unfold(reader, async |reader| {
        let mut reader = reader?;
        loop {
            match reader.recv().await {
                Ok(event) => return Some((Ok(Event::default().data(event)), Some(reader))),
                // A slow reader misses events, and sees that by their numbers.
                Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => return None,
            }
        }
    });
    Sse::new(events).keep_alive(KeepAlive::default())
}

#[tokio::main]
async fn main() -> Result<()> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let model = example_model::take_from(&mut arguments)?.unwrap_or_else(script);
    let mut arguments = arguments.into_iter();
    let file = arguments.next().unwrap_or_else(|| "reports.db".to_owned());
    let address = arguments.next().unwrap_or_else(|| "127.0.0.1:8080".to_owned());
    let saver = SqliteSaver::open(file).await?;
    let graph = graph(model)?.checkpointer(saver.clone());
    let app =
        App { graph, readers: Arc::default(), drain: CancellationToken::new(), runs: TaskTracker::new() };
    app.go_on(&saver).await?;

    let routes = Router::new()
        .route("/threads/{thread}", get(show).post(start))
        .route("/threads/{thread}/answer", post(answer))
        .route("/threads/{thread}/proceed", post(proceed))
        .route("/threads/{thread}/cancel", post(cancel))
        .route("/threads/{thread}/events", get(events))
        .with_state(app.clone());
    let listener = tokio::net::TcpListener::bind(address).await?;
    println!("listening on {}", listener.local_addr()?);
    let (mut terminate, drain) = (signal(SignalKind::terminate())?, app.drain.clone());
    let server = axum::serve(listener, routes).with_graceful_shutdown(async move {
        terminate.recv().await;
        // Each run ends its superstep and stores it. With the runs end their streams and connections.
        drain.cancel();
    });
    server.await?;
    app.runs.close();
    app.runs.wait().await;
    Ok(())
}
