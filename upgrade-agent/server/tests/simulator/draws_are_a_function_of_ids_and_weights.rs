//! Ids and weights alone determine the draws that a real server made for 400 students, with four sets of
//! weights.

use serde::Deserialize;
use upgrade_simulator::draw_condition;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Vector {
    experiment_id: String,
    weights: Vec<f64>,
    codes: Vec<String>,
    user_id: String,
    condition: String,
}

#[test]
fn every_recorded_student_draws_the_recorded_condition() {
    let recorded = include_str!("../fixtures/assignment_vectors.json");
    let vectors: Vec<Vector> = serde_json::from_str(recorded).unwrap();
    assert_eq!(vectors.len(), 400);
    for Vector { experiment_id, weights, codes, user_id, condition } in vectors {
        let drawn = draw_condition(&experiment_id, &user_id, &weights);
        assert_eq!(drawn.map(|at| &codes[at]), Some(&condition), "{experiment_id} {user_id}");
    }
}
