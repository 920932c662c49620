//! `show`, `score`, `report`, `cache` and the log.

use serde_json::Value;

use crate::common::Folder;
use crate::shell::{program, run};

#[test]
fn show_has_every_step_with_arguments_results_errors_and_tokens() {
    let folder = Folder::new();
    run(&folder, &["run"]).good();
    let shown = run(&folder, &["show", "birthplace"]).good().out();
    let mut rest = shown.as_str();
    for part in [
        "INSTRUCTIONS",
        "The question has no file.",
        "QUESTION",
        "birthplace of the composer Edda Lindqvist",
        "CALL call-1 wikipedia\n    {\"query\":\"Edda Lindqvist\"}",
        "ROUND 1\n",
        " tokens",
        "RESULT call-1\n    # Edda Lindqvist",
        "CALL call-2 wikipedia\n    {\"query\":\"Varnhavn\"}",
        "RESULT call-2\n    # Varnhavn",
        "TEXT of offline",
        "FINAL ANSWER: 1652",
        "ROUND 3\n",
        "ANSWER (final answer): 1652",
    ] {
        let at = rest.find(part).unwrap_or_else(|| panic!("{part:?} is not in the rest of\n{shown}"));
        rest = &rest[at + part.len()..];
    }
    let json = run(&folder, &["show", "birthplace", "--json"]).good().out();
    let steps: Vec<Value> = json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(
        steps.len() > 4
            && steps.iter().all(|step| step["events"].as_array().is_some_and(|events| !events.is_empty()))
    );
    for task in ["nothing", "ask/nothing"] {
        let none = run(&folder, &["show", task]);
        assert!(none.code() == Some(1) && none.err().starts_with("E_GAIA_UNKNOWN: "), "{}", none.err());
    }
}

#[test]
fn score_and_report_have_the_figures_of_the_run() {
    let folder = Folder::new();
    let none = run(&folder, &["score"]);
    assert!(none.code() == Some(1) && none.err().contains("there is no run yet"), "{}", none.err());
    run(&folder, &["run"]).good();
    let score = run(&folder, &["score"]).good().out();
    assert_eq!((score.matches("right  ").count(), score.matches("wrong  ").count()), (19, 1), "{score}");
    assert!(score.contains("19 of 20 answers are right (95.0 %)."));
    let page = folder.file("report.html");
    let report = run(&folder, &["report", "--html", page.to_str().unwrap()]).good().out();
    for part in [
        "right answers    19 of 20 (95 %)",
        "questions        20",
        "answered         19",
        "error rate       5 %",
        "cache hits       0 %",
        "model calls      ",
        "tokens           ",
        "cost             $0.0000, without embedded, for which no price is known",
        "time a question  ",
        "     5 wikipedia",
    ] {
        assert!(report.contains(part), "{part:?} is not in\n{report}");
    }
    let html = std::fs::read_to_string(page).unwrap();
    assert!(html.contains("<svg") && html.contains("19 of 20") && !html.contains("<script"), "{html}");
    assert_eq!(html.matches("<rect").count(), 20 + 13, "a bar for each question and each tool");
    let wrong = run(&folder, &["report", "--run", "../../etc/passwd"]);
    assert!(wrong.code() == Some(1) && wrong.err().contains("there is no run"), "{}", wrong.err());
}

#[test]
fn an_ab_test_of_prompts_is_reported_by_prompt() {
    let folder = Folder::new();
    run(&folder, &["run", "--prompt", "ab"]).good();
    let report = run(&folder, &["report"]).good().out();
    let prompts: Vec<&str> = report.lines().filter_map(|line| line.strip_prefix("prompt ")).collect();
    let of = |prompt: &str| {
        prompts.iter().find(|line| line.trim().starts_with(prompt)).copied().unwrap_or_default()
    };
    let figures = |line: &str| -> Vec<u32> {
        line.split(": ").nth(1).unwrap_or_default().split(' ').filter_map(|word| word.parse().ok()).collect()
    };
    let (a, b) = (figures(of("a-")), figures(of("b-")));
    assert!(a.len() == 2 && b.len() == 2 && a[1] > 3 && b[1] > 3, "{report}");
    assert_eq!((a[0] + b[0], a[1] + b[1]), (19, 20), "{report}");
}

#[test]
fn foreign_text_is_escaped_in_the_page_and_on_the_screen() {
    let folder = Folder::new();
    let question = r#"[{"task_id": "<script>alert(1)</script>\u001b[2J", "question": "<img src=x onerror=alert(1)>", "Level": 1, "Final answer": "x"}]"#;
    let file = folder.write("questions.json", question);
    let ran = run(&folder, &["run", "--questions", file.to_str().unwrap()]);
    assert!(!ran.out().contains('\u{1b}'), "{}", ran.out());
    let page = folder.file("report.html");
    run(&folder, &["report", "--html", page.to_str().unwrap()]).good();
    let html = std::fs::read_to_string(page).unwrap();
    assert!(
        html.contains("&lt;img src=x")
            && !html.contains("<img")
            && !html.contains("<script")
            && !html.contains('\u{1b}')
    );
    // An id leads nowhere.
    let downloads: Vec<_> = std::fs::read_dir(folder.file("data/downloads"))
        .unwrap()
        .map(|one| one.unwrap().file_name())
        .collect();
    assert!(downloads.iter().all(|name| !name.to_string_lossy().contains(['<', '/', '.'])), "{downloads:?}");
}

#[test]
fn the_cache_is_shown_and_cleared() {
    let folder = Folder::new();
    run(&folder, &["run", "--limit", "2"]).good();
    let shown = run(&folder, &["cache", "show"]).good().out();
    assert!(shown.contains("-> 310.8") && shown.contains("2 answers in "), "{shown}");
    assert!(run(&folder, &["cache", "clear"]).good().out().contains("2 answers were removed"));
    assert!(run(&folder, &["cache", "show"]).good().out().starts_with("0 answers in "));
    folder.write("data/agent_cache.json", "broken");
    let broken = run(&folder, &["cache", "show"]);
    assert!(broken.code() == Some(1) && broken.err().contains("set aside"), "{}", broken.err());
    run(&folder, &["run", "--limit", "2", "--new"]).good();
    assert!(run(&folder, &["cache", "show"]).good().out().contains("2 answers in "));
}

#[test]
fn each_run_has_a_log_with_its_time_unless_it_is_off() {
    let folder = Folder::new();
    let logs = || {
        let names = std::fs::read_dir(folder.file("data"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.starts_with("agent_run_20") && name.ends_with(".log")).collect::<Vec<_>>()
    };
    run(&folder, &["run", "--limit", "5"]).good();
    let [log] = &logs()[..] else { panic!("{:?}", logs()) };
    let text = std::fs::read_to_string(folder.file("data").join(log)).unwrap();
    for part in [
        "[kiosks] tool: read_excel",
        "[kiosks] result: read_excel: Sheets: Sales",
        "cache miss",
        "[] report: Run ",
    ] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    run(&folder, &["run", "--limit", "5", "--new"]).good();
    assert_eq!(logs().len(), 2);
    run(&folder, &["run", "--limit", "5", "--new", "--no-log"]).good();
    assert_eq!(logs().len(), 2);
}

#[test]
fn keys_of_the_environment_and_of_dot_env_are_in_no_file_and_no_output() {
    let folder = Folder::new();
    folder.write("work/.env", "GEMINI_API_KEY=gemini-secret-key\nHF_TOKEN='hf-secret-token'\n");
    let mut command = program(&folder, &["run", "--limit", "6"]);
    command
        .env("OPENAI_API_KEY", "sk-secret-key")
        .env("GAIA_AGENT_MODEL", "offline")
        .env("TAVILY_API_KEY", "tvly-secret-key");
    let ran = crate::shell::finish(command).good();
    let mut texts = vec![ran.out().into_bytes(), ran.err().into_bytes()];
    for entry in std::fs::read_dir(folder.file("data")).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            texts.push(std::fs::read(path).unwrap());
        }
    }
    assert!(texts.len() > 5);
    for key in ["sk-secret-key", "tvly-secret-key", "gemini-secret-key", "hf-secret-token"] {
        let is_in = |text: &Vec<u8>| text.windows(key.len()).any(|part| part == key.as_bytes());
        assert!(!texts.iter().any(is_in), "{key}");
    }
}
