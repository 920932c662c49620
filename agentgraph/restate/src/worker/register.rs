//! Registration of a worker at the server's admin API.

use std::collections::HashMap;
use std::time::Duration;

use reqwest::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use super::ServeError;
use super::hosted::Settings;
use crate::admin::Admin;
use crate::http::GatewayHeaders;

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

/// Registers the worker's address. A server that has a deployment at this address does not discover it again,
/// so a deployment with other services is replaced, unless invocations of it are under way.
pub(super) async fn register(
    registration: &Registration,
    uri: &str,
    services: &Services,
) -> Result<(), ServeError> {
    let Registration { admin, headers, replaces, patience } = registration;
    let failed = |problem: String| ServeError::Register { admin: admin.clone(), problem };
    let server = Admin::new(admin, headers.clone()).map_err(failed)?;
    let known = deploy(&server, uri, *replaces, *patience).await.map_err(failed)?;
    let id = known.id.clone();
    if *replaces || known.has(services) {
        return Ok(());
    }
    match pinned(&server, &id, *patience).await.map_err(failed)? {
        0 => deploy(&server, uri, true, *patience).await.map_err(failed).map(drop),
        open => Err(failed(format!(
            "{uri} has other code, and calls are under way there ({open} invocations): serve on another address \
             and keep the old worker until they are over, or, if they may fail, `.replace(true)`"
        ))),
    }
}

/// Registers an address. The deployment that was known by it is replaced with `force`.
async fn deploy(admin: &Admin, uri: &str, force: bool, patience: Duration) -> Result<Deployment, String> {
    let body = json!({ "uri": uri, "force": force, "use_http_11": false });
    admin.send(Method::POST, "deployments", Some(&body), patience).await
}

/// The number of invocations that began on a deployment and are open.
async fn pinned(admin: &Admin, deployment: &str, patience: Duration) -> Result<u64, String> {
    let sql = format!(
        "select count(*) as open from sys_invocation where pinned_deployment_id = '{deployment}' \
         and status <> 'completed'"
    );
    let found: Vec<Value> = admin.rows(&sql, patience).await?;
    let open = found.first().and_then(|row| row["open"].as_u64());
    open.ok_or_else(|| format!("no number of open invocations: {found:?}"))
}
