//! A shop inside the process. It speaks the part of Shopify's Admin GraphQL API that
//! [`Shop`](crate::shop::Shop) uses: it executes GraphQL, and knows neither the operations nor the types of
//! that client.
//!
//! Data live in memory; with a file, each change is written there before its request is answered, so a
//! program that is killed finds its carts again.

mod catalog;
mod schema;
mod world;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_graphql::{EmptySubscription, Request, Schema};
use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde_json::{Value, json};

use crate::money::Money;
use crate::shop::ShopSettings;
use schema::{Mutation, Query};
use world::World;

use crate::server::listen;

/// The token that the embedded shop asks for.
const TOKEN: &str = "embedded-shop";
/// The points that a query may cost, and those that come back in a second, as Shopify's smallest plan has
/// them.
const POINTS: f64 = 2000.0;
const POINTS_A_SECOND: f64 = 100.0;

/// A running shop. It ends with its last clone.
#[derive(Clone)]
pub struct EmbeddedShop {
    shared: Arc<Shared>,
    address: SocketAddr,
    _server: Arc<AbortOnDrop>,
}

struct Shared {
    world: Mutex<World>,
    file: Option<PathBuf>,
    faults: Faults,
    mutations: AtomicU64,
    origin: String,
}

/// What a test makes the shop do wrong.
#[derive(Default)]
struct Faults {
    /// The next calls that fail with status 503.
    failing: AtomicU32,
    /// The next calls that are throttled.
    throttled: AtomicU32,
    /// The next mutations whose effect is made, and whose answer never comes.
    silent: AtomicU32,
    /// How long each call takes, in milliseconds.
    delay: AtomicU64,
}

struct AbortOnDrop(tokio::task::JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl EmbeddedShop {
    /// Starts a shop on a free port of loopback.
    ///
    /// # Errors
    /// If the port cannot be had.
    pub async fn start() -> std::io::Result<Self> {
        Self::start_on(0, None).await
    }

    /// Starts a shop on a port, with a file for its data.
    ///
    /// # Errors
    /// If the port cannot be had, or the file has no data of a shop.
    pub async fn start_on(port: u16, file: Option<PathBuf>) -> std::io::Result<Self> {
        let listener = listen((Ipv4Addr::LOCALHOST, port)).await?;
        let address = listener.local_addr()?;
        let world = match file.as_ref().filter(|file| file.exists()) {
            Some(file) => serde_json::from_slice(&std::fs::read(file)?).map_err(std::io::Error::other)?,
            None => World::new(),
        };
        let shared = Arc::new(Shared {
            world: Mutex::new(world),
            file,
            faults: Faults::default(),
            mutations: AtomicU64::new(0),
            origin: format!("http://{address}"),
        });
        let schema = Schema::build(Query, Mutation, EmptySubscription).data(Arc::clone(&shared)).finish();
        let routes = Router::new()
            .route("/admin/api/{version}/graphql.json", post(answer))
            .route("/files/{picture}", get(picture))
            .with_state((Arc::clone(&shared), schema));
        let server = tokio::spawn(async move {
            if let Err(error) = axum::serve(listener, routes).await {
                tracing::error!(%error, "the embedded shop has ended");
            }
        });
        Ok(EmbeddedShop { shared, address, _server: Arc::new(AbortOnDrop(server)) })
    }

    /// The settings of a client.
    pub fn settings(&self) -> ShopSettings {
        ShopSettings::new(&*self.shared.origin, TOKEN)
    }

    /// The address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The id of the first variant of a product by its title.
    pub fn variant_of(&self, title: &str) -> Option<u64> {
        self.shared.world().variant_of(title)
    }

    /// The id of a product by its title.
    pub fn product_of(&self, title: &str) -> Option<u64> {
        self.shared.world().product_of(title)
    }

    /// Sets the price of a variant.
    pub fn set_price(&self, variant: u64, price: Money) {
        self.shared.world().set_price(variant, price);
    }

    /// Sets the pieces that are left of a variant.
    pub fn set_stock(&self, variant: u64, pieces: i64) {
        self.shared.world().set_stock(variant, pieces);
    }

    /// Removes a product with its variants.
    pub fn remove_product(&self, product: u64) {
        self.shared.world().remove_product(product);
    }

    /// Makes the next calls fail.
    pub fn fail_next(&self, calls: u32) {
        self.shared.faults.failing.store(calls, Relaxed);
    }

    /// Makes the next calls be throttled.
    pub fn throttle_next(&self, calls: u32) {
        self.shared.faults.throttled.store(calls, Relaxed);
    }

    /// Makes the next mutations take effect and never answer.
    pub fn silence_next(&self, mutations: u32) {
        self.shared.faults.silent.store(mutations, Relaxed);
    }

    /// Makes each call take this long.
    pub fn delay(&self, delay: Duration) {
        self.shared.faults.delay.store(delay.as_millis().try_into().unwrap_or(u64::MAX), Relaxed);
    }

    /// The number of mutations that took effect.
    pub fn mutations(&self) -> u64 {
        self.shared.mutations.load(Relaxed)
    }

    /// The lines of all open carts: title and pieces.
    pub fn carts(&self) -> Vec<Vec<(String, i32)>> {
        self.shared.world().carts()
    }

    /// The confirmation numbers of all orders.
    pub fn orders(&self) -> Vec<String> {
        self.shared.world().orders()
    }
}

impl Shared {
    fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a change, and writes it to the file before it is answered.
    fn change<T>(&self, change: impl FnOnce(&mut World) -> Result<T, String>) -> Result<T, String> {
        let mut world = self.world();
        let done = change(&mut world)?;
        self.mutations.fetch_add(1, Relaxed);
        if let Some(file) = &self.file {
            let write = || -> std::io::Result<()> {
                let beside = file.with_extension("new");
                std::fs::write(&beside, serde_json::to_vec(&*world)?)?;
                std::fs::rename(beside, file)
            };
            write().map_err(|error| format!("The shop cannot store the change: {error}"))?;
        }
        Ok(done)
    }
}

fn take(faults: &AtomicU32) -> bool {
    faults.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok()
}

type Shops = (Arc<Shared>, Schema<Query, Mutation, EmptySubscription>);

async fn answer(
    State((shared, schema)): State<Shops>,
    Path(_version): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let faults = &shared.faults;
    tokio::time::sleep(Duration::from_millis(faults.delay.load(Relaxed))).await;
    if headers.get("x-shopify-access-token").is_none_or(|token| token != TOKEN) {
        let body = json!({ "errors": "[API] Invalid API key or access token (unrecognized login or wrong password)" });
        return (StatusCode::UNAUTHORIZED, axum::Json(body)).into_response();
    }
    if take(&faults.failing) {
        return (StatusCode::SERVICE_UNAVAILABLE, "Service Unavailable").into_response();
    }
    let request: Request = match serde_json::from_slice(&body) {
        Ok(request) => request,
        Err(error) => return (StatusCode::BAD_REQUEST, error.to_string()).into_response(),
    };
    if take(&faults.throttled) {
        let error = json!({ "message": "Throttled", "extensions": { "code": "THROTTLED" } });
        return axum::Json(json!({ "errors": [error], "extensions": cost(52.0, None, 50.0) }))
            .into_response();
    }
    let before = shared.mutations.load(Relaxed);
    let answer = schema.execute(request).await;
    if shared.mutations.load(Relaxed) > before && take(&faults.silent) {
        std::future::pending::<()>().await;
    }
    let mut answer = json!(answer);
    if let Value::Object(answer) = &mut answer {
        answer.insert("extensions".to_owned(), cost(12.0, Some(12.0), POINTS - 12.0));
    }
    axum::Json(answer).into_response()
}

/// The cost of a call, in the form of Shopify. The embedded shop does not count points.
fn cost(requested: f64, actual: Option<f64>, available: f64) -> Value {
    json!({ "cost": { "requestedQueryCost": requested, "actualQueryCost": actual, "throttleStatus": {
        "maximumAvailable": POINTS, "currentlyAvailable": available, "restoreRate": POINTS_A_SECOND } } })
}

async fn picture(Path(picture): Path<String>) -> Response {
    match catalog::picture(&picture) {
        Some(svg) => {
            let headers = [
                (header::CONTENT_TYPE, "image/svg+xml"),
                (header::CONTENT_SECURITY_POLICY, "default-src 'none'; style-src 'unsafe-inline'"),
            ];
            (headers, svg).into_response()
        }
        None => StatusCode::NOT_FOUND.into_response(),
    }
}
