//! [`WorldServer`]: the world over HTTP, on a free port of the loopback address.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use axum::routing::{get, post};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::{World, evaluation, media, search};

/// A server of a world. It ends when this is dropped.
///
/// ```
/// use gaia_agent::evaluation::EvaluationClient;
/// use gaia_agent::world::{World, WorldServer};
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let server = WorldServer::start(World::new()).await?;
/// let questions = EvaluationClient::new(server.url())?.questions().await?;
/// assert_eq!(questions.len(), 20);
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Debug)]
pub struct WorldServer {
    url: String,
    requests: Arc<AtomicU64>,
    serving: JoinHandle<()>,
}

impl WorldServer {
    /// Starts a server.
    ///
    /// # Errors
    /// If no port is free.
    pub async fn start(world: World) -> std::io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}", listener.local_addr()?);
        let requests = Arc::new(AtomicU64::new(0));
        let routes = WorldServer::routes(world).layer(from_fn_with_state(Arc::clone(&requests), count));
        let serving = tokio::spawn(async move {
            // It ends with its handle.
            let _ = axum::serve(listener, routes).await;
        });
        Ok(WorldServer { url, requests, serving })
    }

    /// The routes, for a server that has more of them.
    pub fn routes(world: World) -> Router {
        Router::new()
            .route("/questions", get(evaluation::questions))
            .route("/random-question", get(evaluation::random_question))
            .route("/files/{task}", get(evaluation::file))
            .route("/submit", post(evaluation::submit))
            .route("/library/{name}", get(evaluation::library))
            .route("/wikipedia/w/api.php", get(search::wikipedia))
            .route("/arxiv/api/query", get(search::arxiv))
            .route("/duckduckgo/html/", get(search::duckduckgo))
            .route("/tavily/search", post(search::tavily))
            .route("/youtube/watch", get(search::watch))
            .route("/youtube/youtubei/v1/player", post(search::player))
            .route("/youtube/api/timedtext", get(search::captions))
            .route("/gemini/v1beta/models/{method}", post(media::generate))
            .layer(DefaultBodyLimit::max(32 << 20))
            .with_state(Arc::new(world))
    }

    /// The address of the evaluation server. The services are below it: see
    /// [`Addresses::on`](crate::settings::Addresses::on).
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The address of the model that sees and hears.
    pub fn media_url(&self) -> String {
        format!("{}/gemini", self.url)
    }

    /// The number of requests so far.
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }
}

impl Drop for WorldServer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn count(State(requests): State<Arc<AtomicU64>>, request: Request, next: Next) -> Response {
    requests.fetch_add(1, Ordering::Relaxed);
    next.run(request).await
}
