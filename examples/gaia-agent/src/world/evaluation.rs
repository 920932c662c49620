//! The evaluation server: questions, files, and the score of a submission.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};

use super::World;
use crate::question::Question;
use crate::score::is_right;

fn error(status: StatusCode, why: &str) -> Response {
    (status, Json(json!({ "detail": why }))).into_response()
}

/// Questions leave the server without their answers, and with their level as a text, as there.
fn shown(question: &Question) -> Value {
    json!({
        "task_id": question.task_id,
        "question": question.question,
        "Level": question.level.to_string(),
        "file_name": question.file_name,
    })
}

/// `GET /questions`
pub(super) async fn questions(State(world): State<Arc<World>>) -> Json<Vec<Value>> {
    Json(world.questions.iter().map(shown).collect())
}

/// `GET /random-question`
pub(super) async fn random_question(State(world): State<Arc<World>>) -> Response {
    let bytes = uuid::Uuid::new_v4().as_u128();
    let count = world.questions.len().max(1) as u128;
    match world.questions.get((bytes % count) as usize) {
        Some(question) => Json(shown(question)).into_response(),
        None => error(StatusCode::NOT_FOUND, "there are no questions"),
    }
}

/// `GET /files/{task_id}`
pub(super) async fn file(State(world): State<Arc<World>>, Path(task): Path<String>) -> Response {
    let question = world.questions.iter().find(|question| question.task_id == task);
    let Some((question, content)) = question.zip(world.files.get(&task)) else {
        return error(StatusCode::NOT_FOUND, "there is no file for this task");
    };
    let name = format!("attachment; filename=\"{}\"", question.file_name);
    ([(header::CONTENT_DISPOSITION, name)], content.clone()).into_response()
}

/// `GET /library/{name}`: a file that a question says to download.
pub(super) async fn library(State(world): State<Arc<World>>, Path(name): Path<String>) -> Response {
    match world.library.get(&name) {
        Some(content) => ([(header::CONTENT_TYPE, "text/csv")], content.clone()).into_response(),
        None => error(StatusCode::NOT_FOUND, "there is no such file"),
    }
}

#[derive(Deserialize)]
pub(super) struct Submission {
    username: String,
    #[serde(default)]
    agent_code: String,
    answers: Vec<Submitted>,
}

#[derive(Deserialize)]
struct Submitted {
    task_id: String,
    submitted_answer: Value,
}

/// `POST /submit`
pub(super) async fn submit(State(world): State<Arc<World>>, Json(submission): Json<Submission>) -> Response {
    let Submission { username, agent_code, answers } = submission;
    if username.trim().is_empty() || agent_code.trim().len() < 10 {
        return error(
            StatusCode::UNPROCESSABLE_ENTITY,
            "`username` and `agent_code`, the address of the code, are required",
        );
    }
    let is_known = |answer: &&Submitted| world.truths.contains_key(&answer.task_id);
    let known: Vec<_> = answers.iter().filter(is_known).collect();
    if known.is_empty() {
        return error(StatusCode::BAD_REQUEST, "none of the answers is to a question of this server");
    }
    let text = |answer: &Value| answer.as_str().map_or_else(|| answer.to_string(), str::to_owned);
    let right = known
        .iter()
        .filter(|answer| is_right(&text(&answer.submitted_answer), &world.truths[&answer.task_id]))
        .count();
    let total = world.questions.len().max(1);
    let score = 100.0 * right as f64 / total as f64;
    Json(json!({
        "username": username,
        "score": score,
        "correct_count": right,
        "total_attempted": known.len(),
        "message": format!("{right} of {total} answers are right."),
        "timestamp": jiff::Timestamp::now().to_string(),
    }))
    .into_response()
}
