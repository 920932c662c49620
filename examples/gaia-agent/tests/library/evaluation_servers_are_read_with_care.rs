//! Answers of an evaluation server are checked. A question whose file cannot be downloaded is answered
//! without it.

use std::sync::Arc;

use agentgraph_llm::{Reply, ScriptedModel};
use axum::Router;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use gaia_agent::agent::{AnswerKind, Attachment};
use gaia_agent::evaluation::{ApiError, EvaluationClient};
use gaia_agent::offline::OfflineModel;
use gaia_agent::question::Question;
use gaia_agent::run::{FileSource, fetch};
use gaia_agent::world::World;
use tokio::net::TcpListener;

use crate::common::Folder;
use crate::support::Scene;

async fn saying(status: u16, body: &'static str) -> EvaluationClient {
    let answer =
        Arc::new(move || -> Response { (StatusCode::from_u16(status).unwrap(), body).into_response() });
    let routes = Router::new().fallback(get(move || {
        let answer = Arc::clone(&answer);
        async move { answer() }
    }));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, routes).await });
    EvaluationClient::new(&url).unwrap()
}

#[tokio::test]
async fn lists_that_cannot_be_right_are_refused() {
    for body in [
        "",
        "null",
        "{}",
        "[1]",
        "[{\"task_id\": \"a\"}]",
        "[{\"task_id\": \"\", \"question\": \"q\"}]",
        "[{\"task_id\": \"a\", \"question\": \" \"}]",
        "[{\"task_id\": \"a\", \"question\": \"q\"}, {\"task_id\": \"a\", \"question\": \"r\"}]",
        "<html>",
    ] {
        let error = saying(200, body).await.questions().await.unwrap_err();
        assert!(matches!(error, ApiError::Unclear(_)), "{body}: {error}");
        assert!(error.to_string().starts_with("E_GAIA_API: "));
    }
    let good =
        saying(200, "[{\"task_id\": \"a\", \"question\": \"q\", \"Level\": \"1\", \"file_name\": \"\"}]")
            .await;
    assert_eq!(good.questions().await.unwrap().len(), 1);
    assert!(matches!(
        saying(404, "no").await.questions().await.unwrap_err(),
        ApiError::Refused { status: 404, .. }
    ));
    assert!(matches!(saying(503, "no").await.questions().await.unwrap_err(), ApiError::Unclear(_)));
    let nowhere = EvaluationClient::new("http://127.0.0.1:1").unwrap();
    assert!(matches!(nowhere.questions().await.unwrap_err(), ApiError::NotReceived(_)));
    for address in ["", "not an address", "ftp://x", "file:///etc"] {
        assert!(matches!(EvaluationClient::new(address).unwrap_err(), ApiError::Address(_)), "{address}");
    }
}

#[tokio::test]
async fn the_id_of_a_task_stays_one_part_of_the_path() {
    let scene = Scene::new().await;
    for id in ["../questions", "..%2fquestions", "a/b", "?x=1", "#x", "a b", ""] {
        assert!(scene.client().file(id).await.is_err(), "{id}");
    }
}

#[tokio::test]
async fn a_question_whose_file_is_missing_is_answered_without_it() {
    let mut world = World::new();
    world.files.remove("sign");
    let scene = Scene::of(world).await;
    let log =
        gaia_agent::log::Log::create(scene.folder.path(), std::time::UNIX_EPOCH, Default::default()).unwrap();
    let model = ScriptedModel::from_fn(|_| Reply::text("FINAL ANSWER: 47"));
    let agent = scene.builder(model.clone()).log(log.clone()).build().unwrap();
    let mut runner = scene.runner(&agent);
    runner.log = log;
    let mut run = scene.begin().await;
    run.questions.retain(|question| question.task_id == "sign");
    let end = runner.run(&run, |_| {}).await;
    let [solution] = &end.solutions[..] else { panic!("{end:?}") };
    assert_eq!(
        (solution.answer.as_str(), solution.kind, solution.lacks_file),
        ("47", AnswerKind::Final, true)
    );
    let instructions = model.requests()[0].messages[0].text();
    assert!(
        instructions.contains("`sign.png`, but it could not be downloaded") && instructions.contains("404"),
        "{instructions}"
    );
    assert!(scene.folder.logs().contains("file missing: sign.png"));
    // The offline model does not make it up.
    let agent = scene.builder(OfflineModel::new()).build().unwrap();
    assert_eq!(scene.solve(&agent, "sign").await.kind, AnswerKind::Unknown);
}

#[tokio::test]
async fn the_name_of_a_file_leads_nowhere_and_the_id_of_a_task_neither() {
    let folder = Folder::new();
    folder.write("source/data.txt", "data");
    folder.write("secret.txt", "secret");
    let files = FileSource::Folder(folder.file("source"));
    let question = |name: &str| Question {
        task_id: "t".into(),
        question: "q".into(),
        file_name: name.into(),
        ..Question::default()
    };
    let downloads = folder.file("downloads");
    let fetched = fetch(&files, &question("data.txt"), &downloads).await.unwrap();
    assert!(matches!(fetched, Attachment::File { size: 4, .. }), "{fetched:?}");
    assert!(fetched.is_in(&downloads));
    for name in ["../secret.txt", "/etc/passwd", "none.txt", "..", "."] {
        let fetched = fetch(&files, &question(name), &downloads).await.unwrap();
        assert!(matches!(fetched, Attachment::Missing { .. }), "{name}: {fetched:?}");
    }
    // A server may name a file as it likes: it is stored under a plain name.
    let stored = Attachment::store(&downloads, "../../../../tmp/.evil\n.sh", b"x").unwrap();
    let Attachment::File { name, .. } = stored else { panic!() };
    assert_eq!((name.as_str(), std::fs::read_dir(&downloads).unwrap().count()), ("evil.sh", 2));
}
