//! The twenty questions, end to end: questions and files come over HTTP, tools search over HTTP, media go to
//! a model over HTTP, and the answers are submitted over HTTP.

use std::collections::BTreeSet;

use agentgraph::MemorySaver;
use agentgraph_llm::{ChatModel, ChatRequest, ChatStream, Message, ModelInfo};
use gaia_agent::agent::{AnswerKind, Solution};
use gaia_agent::evaluation::{Score, Submission, SubmittedAnswer};
use gaia_agent::offline::OfflineModel;
use gaia_agent::score::is_right;
use gaia_agent::world::World;

use crate::support::{NAMES, Scene};

async fn submit(scene: &Scene, solutions: &[Solution]) -> Score {
    let answer = |solution: &Solution| SubmittedAnswer {
        task_id: solution.task_id.clone(),
        submitted_answer: solution.answer.clone(),
    };
    let answers = solutions.iter().map(answer).collect();
    let submission =
        Submission { username: "ada".into(), agent_code: "https://code.example/agent".into(), answers };
    scene.client().submit(&submission).await.unwrap()
}

fn right(solutions: &[Solution]) -> BTreeSet<String> {
    let truths = World::new().truths;
    let is_right = |solution: &&Solution| is_right(&solution.answer, &truths[&solution.task_id]);
    solutions.iter().filter(is_right).map(|solution| solution.task_id.clone()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn nineteen_are_right_without_python_and_twenty_with_it() {
    let scene = Scene::new().await;
    let agent = scene.builder(OfflineModel::new()).checkpointer(MemorySaver::new()).build().unwrap();
    let end = scene.run(&agent).await;
    assert!(end.errors.is_empty() && end.stopped == 0 && end.solutions.len() == 20, "{end:?}");
    let score = submit(&scene, &end.solutions).await;
    assert_eq!((score.correct_count, score.score, score.total_attempted), (19, 95.0, 20));
    let missed: Vec<_> =
        end.solutions.iter().filter(|one| !right(&end.solutions).contains(&one.task_id)).collect();
    assert_eq!(
        (missed.len(), missed[0].task_id.as_str(), missed[0].kind),
        (1, "program", AnswerKind::Unknown)
    );
    let order: Vec<_> = end.solutions.iter().map(|solution| solution.task_id.as_str()).collect();
    let asked: Vec<_> = World::new().questions.into_iter().map(|question| question.task_id).collect();
    assert_eq!(order, asked, "solutions have the order of the questions");

    let agent = scene.builder(OfflineModel::new()).python(scene.python()).build().unwrap();
    let end = scene.run(&agent).await;
    assert_eq!(submit(&scene, &end.solutions).await.score, 100.0);
    let used: BTreeSet<_> =
        end.solutions.iter().flat_map(|solution| solution.figures.tools.keys().cloned()).collect();
    let unused: Vec<_> = NAMES.iter().filter(|name| !used.contains(**name)).collect();
    let expected = [&"visit_page", &"archive_page", &"python_repl"];
    assert_eq!(unused, expected, "every other tool is needed for some question");
    assert!(end.solutions.iter().all(|solution| solution.kind == AnswerKind::Final && solution.is_done));
}

/// Asks the offline model, and looks at each request before.
struct Watched(fn(&ChatRequest));

#[async_trait::async_trait]
impl ChatModel for Watched {
    fn info(&self) -> ModelInfo {
        OfflineModel::new().info()
    }

    async fn stream(&self, request: ChatRequest) -> agentgraph_llm::Result<ChatStream> {
        (self.0)(&request);
        OfflineModel::new().stream(request).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_model_gets_no_answer_before_a_tool_has_found_it() {
    let scene = Scene::new().await;
    let watch = |request: &ChatRequest| {
        let world = World::new();
        let question =
            request.messages.iter().rev().find(|message| message.results().next().is_none()).unwrap();
        let found = world.questions.iter().find(|one| one.question == question.text());
        let Some(asked) = found else { return };
        // The answers of these follow from the question alone.
        if ["backwards", "operation", "harbours"].contains(&asked.task_id.as_str()) {
            return;
        }
        let truth = &world.truths[&asked.task_id];
        let has_results = request.messages.iter().any(|message| message.results().next().is_some());
        let seen: String = request.messages.iter().map(Message::text).collect();
        let is_long = truth.len() > 2;
        assert!(has_results || !is_long || !seen.contains(truth.as_str()), "{}: {seen}", asked.task_id);
        assert!(request.system.is_none(), "{:?}", request.system);
    };
    let agent = scene.builder(Watched(watch)).python(scene.python()).build().unwrap();
    let end = scene.run(&agent).await;
    assert_eq!(right(&end.solutions).len(), 20, "{end:?}");
}

#[tokio::test]
async fn a_question_by_chance_is_one_of_them() {
    let scene = Scene::new().await;
    let all: BTreeSet<_> = World::new().questions.into_iter().map(|question| question.task_id).collect();
    for _ in 0..8 {
        assert!(all.contains(&scene.client().random_question().await.unwrap().task_id));
    }
}

#[tokio::test]
async fn the_server_gives_no_answer_away_and_judges_with_care() {
    let scene = Scene::new().await;
    let text = reqwest::get(format!("{}/questions", scene.server.url())).await.unwrap().text().await.unwrap();
    assert!(!text.contains("8190.50") && !text.contains("Brandvik") && !text.contains("answer\":"), "{text}");
    for task in ["pencils", "nothing", "..%2F..%2Fetc%2Fpasswd"] {
        assert!(scene.client().file(task).await.is_err(), "{task}");
    }
    let send = |username: &str, code: &str, answers: Vec<SubmittedAnswer>| {
        let submission = Submission { username: username.into(), agent_code: code.into(), answers };
        let client = scene.client();
        async move { client.submit(&submission).await }
    };
    let answer =
        |task: &str, answer: &str| SubmittedAnswer { task_id: task.into(), submitted_answer: answer.into() };
    let code = "https://code.example/agent";
    assert!(send("", code, vec![answer("sign", "47")]).await.is_err());
    assert!(send("ada", "", vec![answer("sign", "47")]).await.is_err());
    assert!(send("ada", code, vec![answer("other", "47")]).await.is_err());
    let score =
        send("ada", code, vec![answer("sign", "$47"), answer("keeper", "brandvik."), answer("tea", "no")])
            .await
            .unwrap();
    assert_eq!((score.correct_count, score.total_attempted, score.score), (2, 3, 10.0));
}
