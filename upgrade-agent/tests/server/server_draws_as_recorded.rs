//! The embedded server gives 400 students the conditions that a real server gave, with four sets of weights,
//! two of them unusual (thirds, and weights with a sum of 40).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::recording;

use std::collections::BTreeMap;

use upgrade_agent::client::{ExperimentState, NewExperiment, NewUser, UpgradeClient};
use upgrade_agent::server::EmbeddedServer;

#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct Vector {
    experiment_id: String,
    weights: Vec<f64>,
    codes: Vec<String>,
    user_id: String,
    condition: String,
}

#[tokio::test]
async fn every_recorded_student_gets_the_recorded_condition() {
    let vectors = recording::fixture("assignment_vectors");
    let vectors: Vec<Vector> = serde_json::from_value(vectors).unwrap();
    assert_eq!(vectors.len(), 400);
    let mut experiments: BTreeMap<&str, Vec<&Vector>> = BTreeMap::new();
    for vector in &vectors {
        experiments.entry(&vector.experiment_id).or_default().push(vector);
    }
    for (id, students) in experiments {
        check(id, &students).await;
    }
}

async fn check(id: &str, students: &[&Vector]) {
    let server = EmbeddedServer::builder().in_memory().start().await.unwrap();
    let client = UpgradeClient::builder(server.url()).build().unwrap();
    let mut new = NewExperiment::new("draw", "assign-prog").id(id).include_all().point("site", "");
    for (code, weight) in students[0].codes.iter().zip(&students[0].weights) {
        new = new.condition(code, *weight);
    }
    client.create(&new).await.unwrap();
    client.set_state(id, &ExperimentState::Enrolling).await.unwrap();
    for student in students {
        client.init_user(&NewUser::new(&student.user_id)).await.unwrap();
        let assigned = client.assign(&student.user_id, "assign-prog").await.unwrap();
        let code = assigned[0].conditions[0].condition_code.as_deref();
        assert_eq!(code, Some(student.condition.as_str()), "{id} {}", student.user_id);
    }
    server.shutdown().await;
}
