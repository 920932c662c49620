//! A submission is stored before it is sent, and sent again only if the server surely did not get it, or if
//! told to.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use axum::routing::post;
use gaia_agent::evaluation::submission::{StoredSubmission, SubmissionState, SubmitError, read, submit};
use gaia_agent::evaluation::{ApiError, EvaluationClient, Submission, SubmittedAnswer};
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;

use crate::common::Folder;

fn submission() -> Submission {
    let answer = SubmittedAnswer { task_id: "t".into(), submitted_answer: "7".into() };
    Submission { username: "ada".into(), agent_code: "https://code.example".into(), answers: vec![answer] }
}

/// A server that answers with this status, and counts. It looks at the file when a submission arrives.
async fn server(
    status: u16,
    body: &'static str,
    seen: Arc<Mutex<Option<StoredSubmission>>>,
    folder: &Folder,
) -> (EvaluationClient, Arc<AtomicU64>) {
    let received = Arc::new(AtomicU64::new(0));
    let (count, file) = (received.clone(), folder.file("submission"));
    let routes = Router::new().route(
        "/submit",
        post(move || {
            count.fetch_add(1, Ordering::Relaxed);
            *seen.lock().unwrap() = read(&file).unwrap();
            async move { (StatusCode::from_u16(status).unwrap(), body).into_response() }
        }),
    );
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, routes).await });
    (EvaluationClient::new(&url).unwrap(), received)
}

const SCORE: &str = r#"{"score": 95.0, "correct_count": 19, "total_attempted": 20, "message": "good"}"#;

#[tokio::test]
async fn it_is_stored_before_it_is_sent_and_an_accepted_one_is_not_sent_again() {
    let folder = Folder::new();
    let file = folder.file("submission");
    let seen = Arc::default();
    let (client, received) = server(200, SCORE, Arc::clone(&seen), &folder).await;
    let score = submit(&client, submission(), &file, false).await.unwrap();
    assert_eq!((score.score, score.correct_count), (95.0, 19));
    let stored = seen.lock().unwrap().clone().unwrap();
    assert_eq!((stored.state, stored.submission), (SubmissionState::Sending, submission()));
    assert_eq!(read(&file).unwrap().unwrap().state, SubmissionState::Accepted(score));
    let error = submit(&client, submission(), &file, false).await.unwrap_err();
    assert!(matches!(error, SubmitError::Accepted(score) if score == 95.0), "{error}");
    assert_eq!(received.load(Ordering::Relaxed), 1);
    submit(&client, submission(), &file, true).await.unwrap();
    assert_eq!(received.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn what_was_surely_not_received_is_sent_again() {
    let folder = Folder::new();
    let file = folder.file("submission");
    let nowhere = EvaluationClient::new("http://127.0.0.1:1").unwrap();
    for _ in 0..2 {
        let error = submit(&nowhere, submission(), &file, false).await.unwrap_err();
        assert!(matches!(error, SubmitError::Api(ApiError::NotReceived(_))), "{error}");
    }
    let (refusing, received) = server(422, "no agent_code", Arc::default(), &folder).await;
    for _ in 0..2 {
        let error = submit(&refusing, submission(), &file, false).await.unwrap_err();
        assert!(matches!(error, SubmitError::Api(ApiError::Refused { status: 422, .. })), "{error}");
    }
    assert_eq!(received.load(Ordering::Relaxed), 2);
    let (client, _) = server(200, SCORE, Arc::default(), &folder).await;
    assert!(submit(&client, submission(), &file, false).await.is_ok());
}

#[tokio::test]
async fn what_may_have_been_received_is_sent_again_only_if_told_to() {
    for (status, body) in [(500, "oops"), (200, "not json"), (504, "")] {
        let folder = Folder::new();
        let file = folder.file("submission");
        let (unclear, received) = server(status, body, Arc::default(), &folder).await;
        assert!(matches!(
            submit(&unclear, submission(), &file, false).await,
            Err(SubmitError::Api(ApiError::Unclear(_)))
        ));
        let error = submit(&unclear, submission(), &file, false).await.unwrap_err();
        assert!(
            matches!(error, SubmitError::MayBeReceived(_)) && error.to_string().contains("--again"),
            "{error}"
        );
        assert_eq!(received.load(Ordering::Relaxed), 1);
        let (client, _) = server(200, SCORE, Arc::default(), &folder).await;
        assert!(submit(&client, submission(), &file, false).await.is_err());
        assert!(submit(&client, submission(), &file, true).await.is_ok());
    }
}

#[tokio::test]
async fn a_program_that_ended_while_it_was_sent_is_unclear() {
    let folder = Folder::new();
    let file = folder.file("submission");
    // A server that takes the request and never answers.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = EvaluationClient::new(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
    let sending = submit(&client, submission(), &file, false);
    let received = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut bytes = vec![0; 4096];
        assert!(stream.read(&mut bytes).await.unwrap() > 0);
        stream
    };
    // Dropped while it waits, which equals a kill.
    let _stream = tokio::select! {
        _ = sending => panic!("there was no answer"),
        stream = received => stream,
    };
    assert_eq!(read(&file).unwrap().unwrap().state, SubmissionState::Sending);
    let error = submit(&client, submission(), &file, false).await.unwrap_err();
    assert!(matches!(error, SubmitError::MayBeReceived(_)), "{error}");
}

#[tokio::test]
async fn a_broken_file_submits_nothing() {
    let folder = Folder::new();
    let file = folder.write("submission", "{");
    let (client, received) = server(200, SCORE, Arc::default(), &folder).await;
    assert!(matches!(submit(&client, submission(), &file, true).await, Err(SubmitError::File { .. })));
    assert_eq!(received.load(Ordering::Relaxed), 0);
}
