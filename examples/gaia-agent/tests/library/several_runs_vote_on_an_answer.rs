//! Several runs of a question, each with its own model script, and the vote over their answers.

use agentgraph::MemorySaver;
use agentgraph_llm::{Code, Error, Reply, ScriptedModel};
use gaia_agent::GaiaAgent;
use gaia_agent::agent::{AnswerKind, Solution, SolveOptions, Task};
use gaia_agent::cache::AnswerCache;
use gaia_agent::run::RunBook;
use gaia_agent::settings::Settings;
use gaia_agent::trace::{reasoning, steps_of};
use serde_json::json;

use crate::support::{Scene, plan};

const QUESTION: &str = "How many?";

async fn ask(agent: &GaiaAgent, thread: &str, runs: u8) -> Solution {
    let options = SolveOptions { runs, ..SolveOptions::default() };
    agent.solve_with(thread, &Task::ask(QUESTION), options).await.unwrap()
}

fn votes(solution: &Solution) -> Option<(u8, u8)> {
    solution.votes.map(|votes| (votes.agree, votes.runs))
}

/// An agent whose runs get these replies, in the order in which they begin. It neither retries nor asks for a
/// form by another model.
fn agent_of(scene: &Scene, model: &ScriptedModel) -> GaiaAgent {
    let mut settings = Settings::default();
    (settings.max_retries, settings.reformulate) = (0, false);
    let builder = scene.builder(model.clone()).settings(&settings).checkpointer(MemorySaver::new());
    builder.cache(AnswerCache::new(scene.folder.file("agent_cache.json"))).build().unwrap()
}

fn finals(answers: &[&str]) -> ScriptedModel {
    ScriptedModel::new(answers.iter().map(|answer| Reply::text(format!("FINAL ANSWER: {answer}"))))
}

#[tokio::test]
async fn the_first_of_the_largest_group_of_answers_wins() {
    // Alike are answers of which one is right if the other is the truth: numbers, lists and texts.
    for (answers, largest, agree) in [
        (&["16", "$17,000", "17000"][..], &["$17,000", "17000"][..], 2),
        (&["b; c", "c, b", "b,c"], &["b; c", "b,c"], 2),
        (&["Saint Petersburg", "saint-petersburg", "Moscow"], &["Saint Petersburg", "saint-petersburg"], 2),
        (&["a", "b"], &["a", "b"], 1),
        (&["c", "a", "b", "b", "a"], &["a", "b"], 2),
        (&["infinity", "a", "b"], &["infinity", "a", "b"], 1),
        (&["1", "2", "3", "4", "5", "6", "7", "8", "8"], &["8"], 2),
    ] {
        let scene = Scene::new().await;
        let model = finals(answers);
        let agent = agent_of(&scene, &model);
        let runs = u8::try_from(answers.len()).unwrap();
        let solution = ask(&agent, "t", runs).await;
        // The runs are side by side, so which of them got which reply is only known now.
        let mut first = None;
        for run in agent.runs_of("t").await.unwrap() {
            let answer = agent.finished(&run).await.unwrap().unwrap().answer;
            first = first.or(Some(answer).filter(|answer| largest.contains(&answer.as_str())));
        }
        assert_eq!(
            (Some(&solution.answer), votes(&solution)),
            (first.as_ref(), Some((agree, runs))),
            "{answers:?}"
        );
        assert_eq!((model.requests().len(), solution.figures.rounds), (answers.len(), u64::from(runs)));
        assert!(solution.is_done && solution.in_words().ends_with(&format!(", {agree} of {runs} runs")));
        assert_eq!(agent.finished("t").await.unwrap(), Some(solution.clone()));
        assert_eq!(ask(&agent, "t", runs).await, solution, "it is done");
        assert_eq!(model.requests().len(), answers.len(), "nothing is asked again");
    }
}

#[tokio::test]
async fn what_is_no_final_answer_counts_only_where_there_is_none() {
    for (replies, expected) in [
        // Each run is asked once more for the form.
        (vec!["it is 5", "it is 5", "FINAL ANSWER: 7"], ("7", AnswerKind::Final, 1)),
        (vec!["it is 5", "it is 6", "it is 5"], ("it is 5", AnswerKind::BestText, 2)),
        (
            vec!["FINAL ANSWER: unknown", "FINAL ANSWER: unknown", "it is 5"],
            ("it is 5", AnswerKind::BestText, 1),
        ),
        (vec!["FINAL ANSWER: unknown"; 3], ("unknown", AnswerKind::Unknown, 3)),
    ] {
        let scene = Scene::new().await;
        // A run is known by its first text, which is its last.
        let first = std::sync::Mutex::new(replies.clone().into_iter());
        let model = ScriptedModel::from_fn(move |request| match request.messages.len() {
            2 => Reply::text(first.lock().unwrap().next().unwrap()),
            _ => Reply::text(request.messages[2].text()),
        });
        let solution = ask(&agent_of(&scene, &model), "t", 3).await;
        let found = (solution.answer.as_str(), solution.kind, solution.votes.unwrap().agree);
        assert_eq!(found, expected, "{replies:?}");
    }
}

#[tokio::test]
async fn a_run_whose_models_failed_costs_its_vote_alone() {
    let scene = Scene::new().await;
    let down = || Reply::error(Error::new(Code::BadRequest, "down"));
    let model = ScriptedModel::new([down(), Reply::text("FINAL ANSWER: 7"), Reply::text("FINAL ANSWER: 7")]);
    let agent = agent_of(&scene, &model);
    let solution = ask(&agent, "t", 3).await;
    assert_eq!((solution.answer.as_str(), votes(&solution), solution.is_done), ("7", Some((2, 3)), true));
    assert!(solution.error.as_ref().is_some_and(|error| error.contains("down")), "{solution:?}");
    assert!(!scene.folder.file("agent_cache.json").exists(), "fewer have voted than were asked for");
}

#[tokio::test]
async fn if_no_run_has_a_final_answer_the_failed_ones_go_on_with_the_next_call() {
    let scene = Scene::new().await;
    let down = || Reply::error(Error::new(Code::BadRequest, "down"));
    let model = ScriptedModel::new([
        down(),
        Reply::text("FINAL ANSWER: unknown"),
        down(),
        Reply::text("FINAL ANSWER: 8"),
        Reply::text("FINAL ANSWER: 9"),
    ]);
    let agent = agent_of(&scene, &model);
    let solution = ask(&agent, "t", 3).await;
    assert_eq!((solution.answer.as_str(), solution.is_done), ("unknown", false));
    assert_eq!((agent.finished("t").await.unwrap(), model.requests().len()), (None, 3));
    let solution = ask(&agent, "t", 3).await;
    assert_eq!((solution.answer.as_str(), votes(&solution), solution.is_done), ("8", Some((1, 3)), true));
    assert_eq!(model.requests().len(), 5, "the run that had ended is not asked again");
}

#[tokio::test]
async fn a_vote_serves_the_cache_for_as_many_runs_or_fewer() {
    let scene = Scene::new().await;
    let model = finals(&["6", "7", "7", "7", "8", "8", "8", "8"]);
    let agent = agent_of(&scene, &model);
    assert_eq!(ask(&agent, "a", 1).await.answer, "6");
    let stored = std::fs::read_to_string(scene.folder.file("agent_cache.json")).unwrap();
    assert!(!stored.contains("runs"), "one run is stored as ever: {stored}");
    assert_eq!(ask(&agent, "b", 3).await.answer, "7");
    for (thread, runs) in [("c", 3), ("d", 2), ("e", 1)] {
        let solution = ask(&agent, thread, runs).await;
        assert_eq!((solution.answer.as_str(), solution.kind), ("7", AnswerKind::Cached));
        assert_eq!((solution.figures.rounds, model.requests().len()), (0, 4));
    }
    assert_eq!(ask(&agent, "f", 4).await.answer, "8");
    assert_eq!(model.requests().len(), 8);
}

#[tokio::test]
async fn the_trace_has_each_run_and_the_vote_and_the_figures_are_sums() {
    let scene = Scene::new().await;
    let model = ScriptedModel::from_fn(|request| match request.messages.len() {
        2 => Reply::tool_call("calculator", json!({ "expression": "6 * 7" })),
        _ => Reply::text("FINAL ANSWER: 42"),
    });
    let agent = agent_of(&scene, &model);
    let single = ask(&agent, "one", 1).await;
    std::fs::remove_file(scene.folder.file("agent_cache.json")).unwrap();
    let solution = ask(&agent, "t", 3).await;
    assert_eq!((solution.figures.rounds, solution.figures.tools["calculator"]), (6, 3));
    let (three, one) = (solution.figures.bill.total(), single.figures.bill.total());
    assert_eq!((three.input_total, three.output_total), (3 * one.input_total, 3 * one.output_total));
    assert_eq!(agent.runs_of("t").await.unwrap(), ["vote-1/t", "vote-2/t", "vote-3/t"]);
    let mut time = std::time::Duration::ZERO;
    for run in agent.runs_of("t").await.unwrap() {
        time += agent.finished(&run).await.unwrap().unwrap().figures.time;
    }
    assert_eq!(solution.figures.time, time);
    let text = reasoning(&steps_of(&agent, "t").await.unwrap());
    assert_eq!(text.matches("calculator {").count(), 3, "{text}");
    assert!(text.contains("run 2 of 3") && text.ends_with("42 (final answer, 3 of 3 runs)"), "{text}");
}

#[tokio::test]
async fn a_drained_vote_goes_on_without_repeating_a_run() {
    let scene = Scene::new().await;
    let drain = agentgraph::CancellationToken::new();
    let told = drain.clone();
    let model = ScriptedModel::from_fn(move |request| match request.messages.len() {
        2 => {
            told.cancel();
            Reply::tool_call("calculator", json!({ "expression": "6 * 7" }))
        }
        _ => Reply::text("FINAL ANSWER: 42"),
    });
    let agent = agent_of(&scene, &model);
    let options = SolveOptions { runs: 3, drain: Some(drain), ..SolveOptions::default() };
    let stopped = agent.solve_with("t", &Task::ask(QUESTION), options).await;
    assert!(matches!(stopped, Err(gaia_agent::agent::SolveError::Stopped)), "{stopped:?}");
    let before = model.requests().len();
    assert!(before <= 3);
    assert_eq!(ask(&agent, "t", 3).await.answer, "42");
    assert_eq!(
        model.requests().len(),
        6,
        "two answers a run, though the first came before the stop: {before}"
    );
}

#[tokio::test]
async fn votes_need_no_store() {
    let scene = Scene::new().await;
    let agent = scene.builder(finals(&["1", "2", "2"])).build().unwrap();
    assert_eq!(ask(&agent, "t", 3).await.answer, "2");
}

#[test]
fn the_file_of_a_run_has_the_number_of_runs_only_if_there_are_several() {
    let folder = crate::common::Folder::new();
    let book = RunBook::new(folder.path());
    let now = std::time::SystemTime::UNIX_EPOCH;
    let one = book.begin(plan(), vec![], now).unwrap();
    let mut three = plan();
    three.runs = Some(3);
    let three = book.begin(three, vec![], now).unwrap();
    let text = |id: &str| std::fs::read_to_string(folder.file(&format!("{id}.json"))).unwrap();
    assert!(!text(&one.id).contains("runs") && text(&three.id).contains("\"runs\": 3"));
    assert_eq!((book.open(&one.id).unwrap(), book.open(&three.id).unwrap()), (Some(one), Some(three)));
}
