//! Scenes of updates, recorded from UpGrade 6.5.0 and 6.2.0, are replayed against the embedded server: its
//! responses and its stored data must match the recordings.

use crate::recording::{Ids, Recording, fixture, http, send};
use upgrade_simulator::{Dialect, EmbeddedServer};

/// Sends the calls of a scene in their order. A response that was not recorded is not compared.
async fn play(dialect: Dialect, scene: &str) {
    let server = EmbeddedServer::builder().dialect(dialect).lasting_connections().start().await.unwrap();
    let http = http();
    let mut ids = Ids::default();
    let calls: Vec<Recording> = serde_json::from_value(fixture(scene)).unwrap();
    for (at, call) in calls.into_iter().enumerate() {
        let Recording { method, path, headers, request, status, content_type, mut response } = call;
        let path = ids.text(&path);
        let request = ids.value(&request);
        let mut answer = send(&http, server.url(), &method, &path, &headers, &request).await;
        let place = format!("{scene}, call {at}: {method} {path}");
        assert_eq!(
            (answer.status, &answer.content_type),
            (status, &content_type),
            "{place}: {}",
            answer.body
        );
        if response.is_null() {
            continue;
        }
        if let Some(echo) = response.as_object_mut().and_then(|body| body.remove("request")) {
            let ours = answer.body.as_object_mut().and_then(|body| body.remove("request"));
            assert_eq!(ours, Some(ids.value(&echo)), "{place}");
        }
        if let Err(why) = ids.compare(&response, &answer.body) {
            panic!("{place}: {why}");
        }
    }
    server.shutdown().await;
}

#[tokio::test]
async fn an_experiment_is_updated_as_in_6_5() {
    play(Dialect::V65, "v65/updates").await;
}

#[tokio::test]
async fn an_experiment_is_updated_as_in_6_2() {
    play(Dialect::V62, "v62/updates").await;
}

#[tokio::test]
async fn a_factorial_design_is_read_and_updated_as_in_6_5() {
    play(Dialect::V65, "v65/factorial_updates").await;
}

#[tokio::test]
async fn a_factorial_design_is_read_and_updated_as_in_6_2() {
    play(Dialect::V62, "v62/factorial_updates").await;
}

#[tokio::test]
async fn refusals_orders_pages_counts_and_settings_are_those_of_6_2() {
    play(Dialect::V62, "v62/manners").await;
}
