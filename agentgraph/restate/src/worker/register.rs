//! Registration of a worker at the server's admin API.

use std::time::{Duration, Instant};

use reqwest::StatusCode;
use serde_json::json;

use super::ServeError;
use crate::http;

/// Says where the worker serves. A server that knows the address asks it again for its services, so that a
/// worker with changed graphs may come back under its old address.
pub(super) async fn register(admin: &str, uri: &str, patience: Duration) -> Result<(), ServeError> {
    let failed = |problem: String| ServeError::Register { admin: admin.to_owned(), problem };
    let client = http::client(admin).map_err(failed)?;
    let url = format!("{}/deployments", admin.trim_end_matches('/'));
    let body = json!({ "uri": uri, "force": true, "use_http_11": false });
    let begun = Instant::now();
    let mut wait = Duration::from_millis(50);
    loop {
        let problem = match client.post(&url).json(&body).send().await {
            Ok(answer) if answer.status().is_success() => return Ok(()),
            Ok(answer) => {
                let status = answer.status();
                let text = answer.text().await.unwrap_or_default();
                let problem = format!("status {status}: {text}");
                if !may_pass(status) {
                    return Err(failed(problem));
                }
                problem
            }
            Err(error) => http::text_of(&error),
        };
        if begun.elapsed() >= patience {
            return Err(failed(problem));
        }
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(Duration::from_secs(2));
    }
}

/// Whether the same request may succeed later.
fn may_pass(status: StatusCode) -> bool {
    status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS || status == StatusCode::CONFLICT
}
