//! The cache: a hit costs no call of a model, and is for the same question, files, model and prompt alone.
//! Only finished answers are kept, and nothing that happens to the file loses a run.

use std::fs;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use agentgraph::MemorySaver;
use agentgraph_llm::{Reply, ScriptedModel, StopReason};
use gaia_agent::agent::{AnswerKind, Attachment, PromptChoice, Task};
use gaia_agent::cache::{AnswerCache, CacheKey, are_alike, likeness};
use gaia_agent::settings::Settings;
use serde_json::json;

use crate::common::Folder;
use crate::support::{Scene, attach};

fn key(question: &str) -> CacheKey {
    CacheKey { question: question.into(), files: vec![], model: "m".into(), prompt: "a-1".into(), runs: None }
}

fn endless(name: &'static str) -> ScriptedModel {
    ScriptedModel::from_fn(|_| Reply::text("FINAL ANSWER: 7")).named(name)
}

#[tokio::test]
async fn a_hit_costs_no_call_of_a_model() {
    let scene = Scene::new().await;
    let cache = AnswerCache::new(scene.folder.file("agent_cache.json"));
    let first = endless("m");
    let agent = scene.builder(first.clone()).cache(cache.clone()).build().unwrap();
    assert_eq!(agent.solve("t", &Task::ask("How  many?")).await.unwrap().kind, AnswerKind::Final);
    assert_eq!(first.requests().len(), 1);

    let second = ScriptedModel::new(Vec::<Reply>::new()).named("m");
    let agent = scene.builder(second.clone()).cache(cache).checkpointer(MemorySaver::new()).build().unwrap();
    let solution = agent.solve("t", &Task::ask("How many?")).await.unwrap();
    assert_eq!((solution.answer.as_str(), solution.kind), ("7", AnswerKind::Cached));
    assert_eq!((second.requests().len(), solution.figures.rounds), (0, 0));
    assert!(solution.figures.bill.is_empty());
}

#[tokio::test]
async fn another_question_file_model_or_prompt_is_asked_anew() {
    let scene = Scene::new().await;
    let cache = AnswerCache::new(scene.folder.file("agent_cache.json"));
    let kind = async |model: &'static str, prompt, task: &Task| {
        let builder = scene.builder(endless(model)).cache(cache.clone()).prompts(prompt);
        builder.build().unwrap().solve("t", task).await.unwrap().kind
    };
    let agent = scene.builder(endless("m")).build().unwrap();
    let plain = Task::ask("How many?");
    let (one, other) =
        (attach(&agent, plain.clone(), "a.txt", "1"), attach(&agent, plain.clone(), "b.txt", "2"));
    let cases = [
        ("m", PromptChoice::A, &plain),
        ("m", PromptChoice::B, &plain),
        ("n", PromptChoice::A, &plain),
        ("m", PromptChoice::A, &one),
        ("m", PromptChoice::A, &other),
        ("m", PromptChoice::A, &Task::ask("How many are there?")),
    ];
    for expected in [AnswerKind::Final, AnswerKind::Cached] {
        for (model, prompt, task) in cases {
            assert_eq!(kind(model, prompt, task).await, expected, "{model} {prompt:?} {task:?}");
        }
    }
    // The name of a file does not count, its content does.
    let renamed = attach(&agent, plain.clone(), "c.txt", "1");
    assert_eq!(kind("m", PromptChoice::A, &renamed).await, AnswerKind::Cached);
    assert_eq!(cache.entries().unwrap().len(), 6);
}

#[tokio::test]
async fn only_finished_answers_with_their_files_are_kept() {
    let scene = Scene::new().await;
    let cache = AnswerCache::new(scene.folder.file("agent_cache.json"));
    let missing = Attachment::Missing { name: "a.png".into(), why: "404".into() };
    let call = || Reply::text("perhaps 7").and_tool_call("calculator", json!({ "expression": "1" }));
    let cases = [
        ("at the limit", vec![call(), call()], Task::ask("1?")),
        ("empty", vec![Reply::text(" ")], Task::ask("2?")),
        ("the fixed text", vec![Reply::text("FINAL ANSWER: unknown")], Task::ask("3?")),
        ("cut", vec![Reply::text("FINAL ANSWER: 7").with_stop(StopReason::MaxTokens)], Task::ask("4?")),
        ("without its file", vec![Reply::text("FINAL ANSWER: 7")], Task::ask("5?").with(missing)),
    ];
    let mut settings = Settings::default();
    settings.recursion_limit = 2;
    for (name, replies, task) in cases {
        let builder = scene.builder(ScriptedModel::new(replies)).cache(cache.clone()).settings(&settings);
        let solution = builder.build().unwrap().solve("t", &task).await.unwrap();
        assert!(!solution.answer.is_empty(), "{name}");
        assert_eq!(cache.entries().unwrap(), [], "{name}");
    }
    cache.put(&key("empty?"), "  ").unwrap();
    assert_eq!(cache.entries().unwrap(), []);
}

#[test]
fn a_corrupted_file_is_set_aside_and_the_cache_begins_empty() {
    for content in ["", "{", "[]", "null", "{\"version\": 99, \"entries\": {}}", "\u{0}\u{0}"] {
        let folder = Folder::new();
        let path = folder.write("agent_cache.json", content);
        let cache = AnswerCache::new(&path);
        assert_eq!(cache.get(&key("q")).unwrap(), None, "{content:?}");
        let [aside] = &cache.set_aside()[..] else { panic!("{content:?}") };
        assert_eq!(fs::read_to_string(aside).unwrap(), content, "nothing is lost");
        cache.put(&key("q"), "7").unwrap();
        assert_eq!(AnswerCache::new(&path).get(&key("q")).unwrap().unwrap().answer, "7");
    }
}

#[tokio::test]
async fn a_run_with_a_corrupted_cache_answers_and_says_so_in_the_log() {
    let scene = Scene::new().await;
    let path = scene.folder.write("agent_cache.json", "{broken");
    let log = gaia_agent::log::Log::create(scene.folder.path(), UNIX_EPOCH, Default::default()).unwrap();
    let agent = scene.builder(endless("m")).cache(AnswerCache::new(path)).log(log).build().unwrap();
    assert_eq!(agent.solve("t", &Task::ask("How many?")).await.unwrap().answer, "7");
    let log = scene.folder.logs();
    assert!(
        log.contains("set aside") && log.contains("cache miss") && log.contains("the answer is kept"),
        "{log}"
    );
    assert_eq!(agent.solve("u", &Task::ask("How many?")).await.unwrap().kind, AnswerKind::Cached);
    assert!(scene.folder.logs().contains("cache hit: 7"));
}

#[test]
fn writers_side_by_side_lose_nothing() {
    let folder = Folder::new();
    let path = folder.file("agent_cache.json");
    std::thread::scope(|scope| {
        for writer in 0..6 {
            // Each has its own view of the file, as a process has.
            let cache = AnswerCache::new(&path);
            scope.spawn(move || {
                for at in 0..15 {
                    cache.put(&key(&format!("{writer}/{at}")), "7").unwrap();
                }
            });
        }
    });
    assert_eq!(AnswerCache::new(&path).entries().unwrap().len(), 90);
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "the file and its lock: {left:?}");
}

#[test]
fn answers_end_with_their_lifetime_and_the_oldest_make_room() {
    fn on_day_0() -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(1_000_000)
    }
    fn on_day_2() -> SystemTime {
        on_day_0() + Duration::from_secs(2 * 86_400)
    }
    let folder = Folder::new();
    let cache = AnswerCache::new(folder.file("agent_cache.json")).lifetime(Duration::from_secs(86_400));
    cache.clone().clock(on_day_0).put(&key("old"), "1").unwrap();
    assert!(cache.clone().clock(on_day_0).get(&key("old")).unwrap().is_some());
    let later = cache.clock(on_day_2);
    assert_eq!(later.get(&key("old")).unwrap(), None);
    later.put(&key("new"), "2").unwrap();
    assert_eq!(later.entries().unwrap().len(), 1);

    let small = AnswerCache::new(folder.file("small.json")).max_entries(2);
    small.clone().clock(on_day_0).put(&key("a"), "1").unwrap();
    for question in ["b", "c"] {
        small.clone().clock(on_day_2).put(&key(question), "1").unwrap();
    }
    assert_eq!(small.get(&key("a")).unwrap(), None);
    assert!(small.get(&key("b")).unwrap().is_some() && small.get(&key("c")).unwrap().is_some());
    assert_eq!((small.clear().unwrap(), small.entries().unwrap().len()), (2, 0));
}

#[test]
fn a_question_that_is_alike_has_a_hit_only_if_asked_for_and_never_with_another_number() {
    let folder = Folder::new();
    let cache = AnswerCache::new(folder.file("agent_cache.json"));
    cache.put(&key("How many albums did Mira Solheim publish before 2005?"), "2").unwrap();
    let alike = key("How many albums has Mira Solheim published before 2005?");
    assert_eq!(cache.get(&alike).unwrap(), None);
    let fuzzy = cache.fuzzy(0.8);
    let hit = fuzzy.get(&alike).unwrap().unwrap();
    assert_eq!(hit.other_question.as_deref(), Some("How many albums did Mira Solheim publish before 2005?"));
    for other in [
        "How many albums did Mira Solheim publish before 2006?",
        "How many albums did Mira Solberg publish before 2005?",
        "How many albums did Mira Solheim publish after 2005?",
    ] {
        assert_eq!(fuzzy.get(&key(other)).unwrap(), None, "{other}");
    }
    let mut other_file = alike.clone();
    other_file.files.push("hash".into());
    assert_eq!(fuzzy.get(&other_file).unwrap(), None);
}

#[tokio::test]
async fn without_a_cache_every_question_is_asked() {
    let scene = Scene::new().await;
    let model = endless("m");
    let agent = scene.builder(model.clone()).build().unwrap();
    for thread in ["t", "u"] {
        agent.solve(thread, &Task::ask("How many?")).await.unwrap();
    }
    assert_eq!(model.requests().len(), 2);
    assert!(!scene.folder.file("agent_cache.json").exists());
}

#[test]
fn questions_that_differ_in_what_matters_are_not_alike() {
    let base = "How many studio albums did Mira Solheim publish between 2000 and 2009?";
    assert!(are_alike(base, "How many studio albums did Mira Solheim publish between 2000 and 2009 ?", 0.9));
    assert!(are_alike(
        base,
        "how many studio albums has Mira Solheim published between 2000 and 2009?",
        0.85
    ));
    for other in [
        "How many studio albums did Mira Solheim publish between 2000 and 2008?",
        "How many studio albums did Mira Solberg publish between 2000 and 2009?",
        "How many studio albums did Mira Solheim not publish between 2000 and 2009?",
        "How many albums did the author of the book publish in the year of the war?",
    ] {
        assert!(!are_alike(base, other, 0.8), "{other}");
    }
    for (one, other) in [
        ("What is 2+2?", "What is 2-2?"),
        ("Which has the most cells?", "Which has the least cells?"),
        ("Name two rivers.", "Name ten rivers."),
        ("Is it true?", "Isn't it true?"),
        ("What is 3.5 times 2?", "What is 35 times 2?"),
    ] {
        assert!(likeness(one, other) > 0.7 && !are_alike(one, other, 0.7), "{one} {other}");
    }
}
