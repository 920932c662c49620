//! A question never ends in nothing: at the limit of rounds, after an empty or a cut answer, after tools that
//! fail. The solution says what kind of answer it is.

use agentgraph::MemorySaver;
use agentgraph_llm::{ChatRequest, Reply, Role, ScriptedModel, StopReason, Usage};
use gaia_agent::agent::{AnswerKind, Attachment, Prompt, PromptChoice, SolveOptions, Task};
use gaia_agent::settings::Settings;
use serde_json::json;

use crate::support::{Scene, attach, results};

fn calls(expression: &str) -> Reply {
    Reply::tool_call("calculator", json!({ "expression": expression }))
}

fn limit(rounds: u64) -> Settings {
    let mut settings = Settings::default();
    settings.recursion_limit = rounds;
    settings
}

fn no_reformulation(mut settings: Settings) -> Settings {
    settings.reformulate = false;
    settings
}

#[tokio::test]
async fn a_message_without_the_form_is_no_final_answer() {
    let scene = Scene::new().await;
    let solve = async |replies: Vec<Reply>, settings: Settings| {
        let model = ScriptedModel::new(replies);
        let agent = scene
            .builder(model.clone())
            .settings(&settings)
            .checkpointer(MemorySaver::new())
            .build()
            .unwrap();
        let task = attach(&agent, Task::ask("How many?"), "birds.csv", "owl,3");
        (agent.solve("t", &task).await.unwrap(), model.requests())
    };
    let look = || Reply::text("I will now look at the file.");
    // Asked once more, with the facts of the file, it may go on with tools.
    let read = || Reply::tool_call("read_file", json!({ "path": "birds.csv" }));
    let (solution, requests) =
        solve(vec![look(), read(), Reply::text("FINAL ANSWER: 3")], Settings::default()).await;
    assert_eq!(
        (solution.answer.as_str(), solution.kind, solution.may_be_kept()),
        ("3", AnswerKind::Final, true)
    );
    let asked = requests[1].messages.last().unwrap().text();
    assert!(
        asked.contains("no answer in the form") && asked.contains("`downloads/birds.csv` (5 bytes)"),
        "{asked}"
    );
    // Asked once only: then it is the best so far, in the form that one more call brings it into.
    let forms = || vec![look(), Reply::text("There are three birds."), Reply::text("FINAL ANSWER: 3")];
    let (solution, requests) = solve(forms(), Settings::default()).await;
    assert_eq!(
        (solution.answer.as_str(), solution.kind, solution.may_be_kept()),
        ("3", AnswerKind::BestText, false)
    );
    assert_eq!((requests.len(), requests[2].tools.len()), (3, 0));
    assert!(requests[2].messages[0].text().contains("How many?"));
    let (solution, requests) = solve(forms(), no_reformulation(Settings::default())).await;
    assert_eq!((solution.answer.as_str(), requests.len()), ("There are three birds", 2));
}

#[tokio::test]
async fn the_kind_of_an_answer_says_where_it_is_from() {
    let cut = || Reply::text("It may be 9").with_stop(StopReason::MaxTokens);
    let refusal = || Reply::text("I can't help with that.").with_stop(StopReason::Refusal);
    let guess =
        || Reply::text("Answer: perhaps Oslo").and_tool_call("calculator", json!({ "expression": "1" }));
    let cases: Vec<(Vec<Reply>, &str, AnswerKind)> = vec![
        (vec![Reply::text("FINAL ANSWER: Oslo")], "Oslo", AnswerKind::Final),
        // The limit: the last text, else the last result, else the fixed text.
        (vec![guess(), calls("2 + 3"), calls("1")], "perhaps Oslo", AnswerKind::BestText),
        (vec![calls("2 + 3"), calls("4 * 5"), calls("1")], "20", AnswerKind::BestResult),
        (vec![calls("2 + 3"), calls("1 / 0"), calls("1")], "5", AnswerKind::BestResult),
        (vec![calls("1 / 0"), calls("("), calls("1")], "unknown", AnswerKind::Unknown),
        // An empty answer, twice: an earlier text, else a result.
        (vec![guess(), Reply::text("FINAL ANSWER:"), Reply::text(" ")], "perhaps Oslo", AnswerKind::BestText),
        (vec![calls("6 * 7"), Reply::text("  "), Reply::text(" ")], "42", AnswerKind::BestResult),
        (vec![Reply::text("```\n```"), Reply::text("```\n```")], "unknown", AnswerKind::Unknown),
        // An empty message is tried again.
        (vec![Reply::text(""), Reply::text("FINAL ANSWER: 5")], "5", AnswerKind::Final),
        // A cut answer and a refusal are not final.
        (vec![cut()], "It may be 9", AnswerKind::BestText),
        (vec![refusal()], "I can't help with that", AnswerKind::BestText),
        // The model says itself that it does not know.
        (vec![Reply::text("FINAL ANSWER: Unknown.")], "unknown", AnswerKind::Unknown),
    ];
    for (replies, answer, kind) in cases {
        let shown = format!("{replies:?}");
        let scene = Scene::new().await;
        let agent =
            scene.builder(ScriptedModel::new(replies)).settings(&no_reformulation(limit(3))).build().unwrap();
        let solution = agent.solve("t", &Task::ask("Where?")).await.unwrap();
        assert_eq!((solution.answer.as_str(), solution.kind), (answer, kind), "{shown}");
        assert!(solution.is_done && solution.error.is_none(), "{shown}: {:?}", solution.error);
    }
}

#[tokio::test]
async fn one_round_is_one_answer_of_the_model() {
    let scene = Scene::new().await;
    let model = ScriptedModel::from_fn(|_| calls("1"));
    let agent = scene.builder(model.clone()).build().unwrap();
    let solution = agent.solve("t", &Task::ask("What is one?")).await.unwrap();
    assert_eq!((model.requests().len(), solution.figures.rounds), (50, 50));
    assert_eq!((solution.answer.as_str(), solution.figures.tools["calculator"]), ("1", 50));
}

#[tokio::test]
async fn a_tool_that_fails_is_an_error_that_the_model_reads() {
    let scene = Scene::new().await;
    let model = ScriptedModel::new([
        calls("1 / 0")
            .and_tool_call("no_such_tool", json!({}))
            .and_tool_call("calculator", json!({ "sum": "1" })),
        Reply::raw_tool_call("calculator", "{\"expression\": \"1 +"),
        Reply::tool_call("read_file", json!({ "path": "missing.txt" })),
        Reply::text("FINAL ANSWER: none of them works"),
    ]);
    let agent = scene.builder(model).checkpointer(MemorySaver::new()).build().unwrap();
    let solution = agent.solve("t", &Task::ask("What works?")).await.unwrap();
    assert_eq!((solution.kind, solution.figures.failed_calls), (AnswerKind::Final, 5));
    let results = results(&agent, "t").await;
    for (part, (text, failed)) in
        ["division by zero", "no_such_tool", "sum", "not JSON", "there is no file"].iter().zip(results)
    {
        assert!(failed && text.contains(part), "{part}: {text}");
    }
}

#[tokio::test]
async fn the_instructions_have_the_facts_of_the_file() {
    let scene = Scene::new().await;
    let model = ScriptedModel::from_fn(|_| Reply::text("FINAL ANSWER: 1"));
    let agent = scene.builder(model.clone()).build().unwrap();
    let missing = Attachment::Missing { name: "lost.png".into(), why: "404".into() };
    let tasks = [
        (Task::ask("1?"), "The question has no file."),
        (
            attach(&agent, Task::ask("2?"), "data.xlsx", "x"),
            "`downloads/data.xlsx` (1 bytes). It is a spreadsheet: `read_excel` shows its cells.",
        ),
        (attach(&agent, Task::ask("3?"), "a.WAV", "x"), "`understand_audio` listens to it"),
        (Task::ask("4?").with(missing), "`lost.png`, but it could not be downloaded: 404"),
    ];
    for (at, (task, part)) in tasks.into_iter().enumerate() {
        agent.solve(&format!("t-{at}"), &task).await.unwrap();
        let request = model.requests().pop().unwrap();
        let text = request.messages[0].text();
        assert_eq!((request.messages[0].role, request.messages.len()), (Role::System, 2));
        assert!(text.contains(part), "{part}: {text}");
        assert_eq!(request.temperature, Some(0.0));
    }
}

#[tokio::test]
async fn a_solution_counts_what_the_question_took() {
    let scene = Scene::new().await;
    let model = ScriptedModel::new([
        Reply::tool_call("analyze_image", json!({ "path": "sign.png", "question": "what?" }))
            .with_usage(Usage::new(100, 10)),
        Reply::text("FINAL ANSWER: 7").with_usage(Usage::new(200, 20)),
    ]);
    let agent = scene.builder(model).checkpointer(MemorySaver::new()).build().unwrap();
    let task = attach(&agent, Task::ask("What?"), "sign.png", gaia_agent::world::picture("A 7").unwrap());
    let solution = agent.solve("t", &task).await.unwrap();
    let figures = solution.figures;
    assert_eq!((figures.rounds, figures.failed_calls, figures.tools.len()), (2, 0, 1));
    assert_eq!(figures.bill.of("scripted"), Usage::new(300, 30));
    assert_eq!(figures.bill.of("eyes").input_total, 260, "the model that sees is paid, too");
}

#[test]
fn half_of_the_questions_get_each_prompt_and_always_the_same() {
    let ids: Vec<String> = (0..400).map(|at| format!("task-{at}")).collect();
    let first: Vec<_> = ids.iter().filter(|id| PromptChoice::AB.of(id) == Prompt::A).collect();
    assert!((150..250).contains(&first.len()), "{}", first.len());
    assert!(first.iter().all(|id| PromptChoice::AB.of(id) == Prompt::A));
    assert_eq!((PromptChoice::A.of("x"), PromptChoice::B.of("x")), (Prompt::A, Prompt::B));
    assert_ne!(Prompt::A.version(), Prompt::B.version());
}

#[tokio::test]
async fn the_pieces_of_an_answer_are_heard_as_they_come() {
    let scene = Scene::new().await;
    let agent = scene.builder(ScriptedModel::new(["Let me think. FINAL ANSWER: 7"])).build().unwrap();
    let heard = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let ear = heard.clone();
    let hear = move |piece: Option<&str>| ear.lock().unwrap().push(piece.map(str::to_owned));
    let options = SolveOptions { pieces: Some(Box::new(hear)), ..SolveOptions::default() };
    let solution = agent.solve_with("t", &Task::ask("What?"), options).await.unwrap();
    let pieces: Vec<_> = heard.lock().unwrap().iter().flatten().cloned().collect();
    assert!(pieces.len() > 3 && pieces.concat() == "Let me think. FINAL ANSWER: 7", "{pieces:?}");
    assert_eq!(solution.answer, "7");
}

#[tokio::test]
async fn pattern_answers_are_off_unless_asked_for() {
    let scene = Scene::new().await;
    let model = ScriptedModel::from_fn(|_: &ChatRequest| Reply::text("FINAL ANSWER: of the model"));
    let task = Task::ask("What is 17 * 3?");
    let plain = scene.builder(model.clone()).build().unwrap();
    assert_eq!(plain.solve("t", &task).await.unwrap().answer, "of the model");
    let quick = scene.builder(model.clone()).patterns(true).build().unwrap();
    let solution = quick.solve("t", &task).await.unwrap();
    assert_eq!((solution.answer.as_str(), solution.kind), ("51", AnswerKind::Pattern));
    assert!(!solution.may_be_kept());
    assert_eq!(quick.solve("u", &Task::ask("Who?")).await.unwrap().answer, "of the model");
    assert_eq!(model.requests().len(), 2);
    assert!(
        model.requests().iter().all(|request| request.messages.iter().all(|one| one.role != Role::Assistant))
    );
}

#[tokio::test]
async fn only_plain_questions_have_an_answer_by_pattern() {
    let scene = Scene::new().await;
    let model = ScriptedModel::from_fn(|_: &ChatRequest| Reply::text("FINAL ANSWER: of the model"));
    let agent = scene.builder(model).patterns(true).build().unwrap();
    let cases = [
        ("What is 17 * 3?", Some("51")),
        ("Calculate (2 + 3) ^ 2.", Some("25")),
        (".tfel drow eht fo etisoppo eht etirw ,ecnetnes siht dnatsrednu uoy fI", Some("right")),
        ("What is 1,000 + 1?", None),
        ("What is 7?", None),
        ("What is 1 / 0?", None),
        ("What is the capital of Norway?", None),
        ("How much is 2 + 2 in the story?", None),
    ];
    for (question, expected) in cases {
        let answer = agent.solve(question, &Task::ask(question)).await.unwrap().answer;
        assert_eq!(answer, expected.unwrap_or("of the model"), "{question}");
    }
}
