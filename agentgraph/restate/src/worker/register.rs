//! Registration of a worker at the server's admin API.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use reqwest::{Client, RequestBuilder, StatusCode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::ServeError;
use super::hosted::Settings;
use crate::http::{self, GatewayHeaders};

/// Where and how a worker is registered.
pub(super) struct Registration {
    pub(super) admin: String,
    pub(super) headers: GatewayHeaders,
    /// Whether a deployment with other services under the same address is replaced, although calls are under
    /// way there.
    pub(super) replaces: bool,
    pub(super) patience: Duration,
}

/// The services of a worker by name, each with what the server keeps of it.
pub(super) type Services = HashMap<String, Settings>;

/// A deployment as the server knows it.
#[derive(Deserialize)]
struct Deployment {
    id: String,
    services: Vec<KnownService>,
}

#[derive(Deserialize)]
struct KnownService {
    name: String,
    #[serde(default)]
    metadata: Settings,
}

impl Deployment {
    fn has(self, services: &Services) -> bool {
        let known = self.services.into_iter().map(|service| (service.name, service.metadata));
        known.collect::<Services>() == *services
    }
}

/// Says where the worker serves. A server that knows the address does not look what is there now. If that is
/// something else, and no invocation is under way there, the deployment is replaced.
pub(super) async fn register(
    registration: &Registration,
    uri: &str,
    services: &Services,
) -> Result<(), ServeError> {
    let Registration { admin, headers, replaces, patience } = registration;
    let failed = |problem: String| ServeError::Register { admin: admin.clone(), problem };
    headers.check().map_err(failed)?;
    let client = http::client(admin).map_err(failed)?;
    let server =
        Admin { client, admin: admin.trim_end_matches('/'), headers, until: Instant::now() + *patience };
    let known = server.deploy(uri, *replaces).await.map_err(failed)?;
    let id = known.id.clone();
    if *replaces || known.has(services) {
        return Ok(());
    }
    match server.pinned(&id).await.map_err(failed)? {
        0 => server.deploy(uri, true).await.map_err(failed).map(drop),
        open => Err(failed(format!(
            "{open} invocations are under way on other code at {uri}: serve on another address and keep the old worker \
             until they are over, or, if they may fail, `.replace(true)`"
        ))),
    }
}

/// The admin API of a server.
struct Admin<'a> {
    client: Client,
    admin: &'a str,
    headers: &'a GatewayHeaders,
    /// A request that fails is sent again until then.
    until: Instant,
}

impl Admin<'_> {
    async fn deploy(&self, uri: &str, force: bool) -> Result<Deployment, String> {
        let body = json!({ "uri": uri, "force": force, "use_http_11": false });
        self.post("deployments", &body).await
    }

    /// The number of invocations that began on a deployment and are open.
    async fn pinned(&self, deployment: &str) -> Result<u64, String> {
        let sql = format!(
            "select count(*) as open from sys_invocation where pinned_deployment_id = '{deployment}' \
             and status <> 'completed'"
        );
        let found: Value = self.post("query", &json!({ "query": sql })).await?;
        found["rows"][0]["open"].as_u64().ok_or_else(|| format!("no number of open invocations: {found}"))
    }

    async fn post<T: DeserializeOwned>(&self, path: &str, body: &Value) -> Result<T, String> {
        let url = format!("{}/{path}", self.admin);
        let mut wait = Duration::from_millis(50);
        loop {
            let request = self.client.post(&url).header("accept", "application/json").json(body);
            let (problem, may_pass) = match self.send(request).await? {
                Ok((status, text)) if status.is_success() => {
                    return serde_json::from_str(&text).map_err(|error| format!("{error}: {text}"));
                }
                Ok((status, text)) => (format!("status {status}: {text}"), may_pass(status)),
                Err(problem) => (problem, true),
            };
            if !may_pass || Instant::now() >= self.until {
                return Err(problem);
            }
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(Duration::from_secs(2));
        }
    }

    /// The answer, or why there was none.
    async fn send(&self, request: RequestBuilder) -> Result<Result<(StatusCode, String), String>, String> {
        let answer = self.headers.on(request).await?.send().await;
        Ok(match answer {
            Ok(answer) => Ok((answer.status(), answer.text().await.unwrap_or_default())),
            Err(error) => Err(http::text_of(&error)),
        })
    }
}

/// Whether the same request may succeed later.
fn may_pass(status: StatusCode) -> bool {
    status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS || status == StatusCode::CONFLICT
}
