//! Who made the experiments, from the server's audit log.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::call::Call;
use super::error::ClientError;
use super::experiments::unexpected_answer;
use super::session::UpgradeClient;

/// The entries that are read at a time.
const TAKE: u64 = 500;

impl UpgradeClient {
    /// The person who made each experiment, by the experiment's id: the name and mail address of the audit
    /// log. Experiments that were made without a login are not in it.
    ///
    /// ```
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// use upgrade_agent::client::{NewExperiment, UpgradeClient};
    /// use upgrade_agent::server::EmbeddedServer;
    ///
    /// let server = EmbeddedServer::builder().in_memory().start().await?;
    /// let client = UpgradeClient::builder(server.url()).build()?;
    /// client.create(&NewExperiment::new("Hints", "assign-prog")).await?;
    /// assert!(client.authors().await?.is_empty(), "the embedded server knows no logins");
    /// # server.shutdown().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// Those of any call.
    pub async fn authors(&self) -> Result<BTreeMap<String, String>, ClientError> {
        let (mut authors, mut skip) = (BTreeMap::new(), 0);
        loop {
            let body = json!({ "skip": skip, "take": TAKE, "filter": "experimentCreated" });
            let answer = self.call(Call::post(&["audit"], body).repeatable()).await?;
            let entries = answer["nodes"].as_array().ok_or_else(|| unexpected_answer("POST /audit"))?;
            authors.extend(entries.iter().filter_map(author));
            skip += TAKE;
            if entries.is_empty() || answer["total"].as_u64().is_none_or(|total| skip >= total) {
                return Ok(authors);
            }
        }
    }
}

fn author(entry: &Value) -> Option<(String, String)> {
    let text = |name: &str| entry["user"][name].as_str().filter(|text| !text.is_empty());
    let names: Vec<&str> = ["firstName", "lastName", "email"].into_iter().filter_map(text).collect();
    let id = entry["data"]["experimentId"].as_str()?;
    (!names.is_empty()).then(|| (id.to_owned(), names.join(" ")))
}
