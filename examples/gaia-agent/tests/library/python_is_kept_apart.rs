//! Python: off unless it is allowed, in a process of its own with limits, one session for each question.

use std::time::Duration;

use agentgraph::MemorySaver;
use agentgraph_llm::{Reply, ScriptedModel};
use gaia_agent::agent::Task;
use gaia_agent::python::{Python, PythonError, PythonSettings, Ran, Sandbox};
use serde_json::json;

use crate::common::Folder;
use crate::support::{NAMES, Scene, call_with, python_in, results, sandboxes};

fn python(folder: &Folder) -> PythonSettings {
    python_in(folder)
}

const LIMITS_ONLY: Sandbox = Sandbox { is_confined: false, has_namespaces: false };

async fn run(python: &Python, code: &str) -> Ran {
    python.run(code).await.unwrap()
}

/// The output of the code.
async fn printed(code: &str) -> String {
    let folder = Folder::new();
    let ran = run(&Python::new(python(&folder)), code).await;
    assert_eq!(ran.error, None, "{code}");
    ran.output.trim().to_owned()
}

#[tokio::test]
async fn it_is_not_offered_unless_it_is_allowed() {
    let scene = Scene::new().await;
    let model = ScriptedModel::from_fn(|_| Reply::text("FINAL ANSWER: 1"));
    let plain = scene.builder(model.clone()).build().unwrap();
    let allowed = scene.builder(model).python(scene.python()).build().unwrap();
    let added: Vec<_> = allowed.tools().into_iter().filter(|tool| !plain.tools().contains(tool)).collect();
    assert_eq!(added, ["execute_python_file", "python_repl"]);
    assert_eq!(allowed.tools(), NAMES);
    for (tool, input) in
        [("python_repl", json!({ "code": "print(1)" })), ("execute_python_file", json!({ "path": "a.py" }))]
    {
        let error = call_with(&scene, |builder| builder, tool, input).await.unwrap_err();
        assert!(error.contains(tool), "{error}");
    }
    assert!(!scene.folder.file("python").exists(), "nothing was started");
}

#[tokio::test]
async fn a_session_keeps_names_and_shows_the_last_value() {
    let folder = Folder::new();
    let session = Python::new(python(&folder));
    let first = run(&session, "import math\nx = 6\ndef f(y):\n    return x * y").await;
    assert_eq!((first.is_new_session, first.value), (true, None));
    let second = run(&session, "print('so')\nf(7)").await;
    assert_eq!(
        (second.output.as_str(), second.value.as_deref(), second.is_new_session),
        ("so\n", Some("42"), false)
    );
    let third = run(&session, "1 / 0").await;
    assert!(third.error.unwrap().contains("ZeroDivisionError"));
    let fourth = run(&session, "def broken(:").await;
    assert!(fourth.error.unwrap().contains("SyntaxError"));
    assert_eq!(run(&session, "x").await.value.as_deref(), Some("6"), "an error ends no session");
    assert_eq!(
        run(&session, "import sys; sys.exit(3)").await.error.as_deref(),
        Some("the code ended with exit code 3")
    );
    assert_eq!(run(&session, "x").await.value.as_deref(), Some("6"));
    // Two questions have two sessions.
    assert!(run(&Python::new(python(&folder)), "x").await.error.unwrap().contains("NameError"));
}

#[tokio::test]
async fn code_sees_no_variable_and_a_folder_of_its_own() {
    let environment = printed("import os\nprint(sorted(k for k in os.environ if k != 'LC_CTYPE'))").await;
    assert_eq!(environment, "[]");
    let folder = Folder::new();
    let session = Python::new(python(&folder));
    let ran =
        run(&session, "import os\nopen('mine.txt', 'w').write('x')\nprint(os.getcwd(), os.listdir('.'))")
            .await;
    assert!(ran.output.contains("/python/python-") && ran.output.contains("['mine.txt']"), "{ran:?}");
    assert_eq!(std::fs::read_dir(folder.file("python")).unwrap().count(), 1);
    drop(session);
    assert_eq!(
        std::fs::read_dir(folder.file("python")).unwrap().count(),
        0,
        "the folder goes with the session"
    );
}

#[tokio::test]
async fn without_a_confinement_namespaces_alone_leave_no_network_and_no_hold_on_processes() {
    let folder = Folder::new();
    let mut settings = python(&folder);
    let sandbox = settings.sandbox().await.unwrap();
    settings.unconfined = true;
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let code = format!(
        "import socket, os\ntry:\n    socket.create_connection(('127.0.0.1', {}), timeout=5)\n    print('connected')\nexcept OSError as error:\n    \
         print('refused')\nprint(os.getpid() < 5)",
        listener.local_addr().unwrap().port()
    );
    let sandbox = Sandbox { is_confined: false, ..sandbox };
    let kept_apart = run(&Python::new(settings.clone().with_sandbox(sandbox)), &code).await.output;
    let limits_only = run(&Python::new(settings.with_sandbox(LIMITS_ONLY)), &code).await.output;
    assert_eq!(limits_only, "connected\nFalse\n");
    match sandbox.has_namespaces {
        true => assert_eq!(kept_apart, "refused\nTrue\n"),
        false => assert_eq!(kept_apart, limits_only),
    }
}

#[tokio::test]
async fn a_result_says_if_the_code_is_not_confined() {
    let scene = Scene::new().await;
    let best = scene.python().sandbox().await.unwrap();
    for (sandbox, says) in [(LIMITS_ONLY, true), (best, false)] {
        let mut python = scene.python().with_sandbox(sandbox);
        python.unconfined = true;
        let said = call_with(
            &scene,
            move |builder| builder.python(python),
            "python_repl",
            json!({ "code": "1 + 1" }),
        )
        .await
        .unwrap();
        assert!(said.starts_with('2') && said.contains("the network is open to it") == says, "{said}");
    }
}

#[tokio::test]
async fn time_memory_and_output_are_limited() {
    let folder = Folder::new();
    let mut settings = python(&folder);
    settings.memory = 300 << 20;
    settings.output = 1_000;
    let mut hasty = settings.clone();
    hasty.timeout = Duration::from_secs(2);
    for sandbox in [sandboxes().await, vec![LIMITS_ONLY]].concat() {
        hasty.unconfined = true;
        settings.unconfined = true;
        let session = Python::new(hasty.clone().with_sandbox(sandbox));
        run(&session, "x = 1").await;
        let slow = session.run("import time\ntime.sleep(60)").await.unwrap_err();
        assert_eq!(slow, PythonError::TooSlow(Duration::from_secs(2)));
        let next = run(&session, "x").await;
        assert!(
            next.is_new_session && next.error.unwrap().contains("NameError"),
            "the session ended, and the next one says so"
        );
        let busy = session.run("while True: pass").await.unwrap_err();
        assert_eq!(busy, PythonError::TooSlow(Duration::from_secs(2)));

        let session = Python::new(settings.clone().with_sandbox(sandbox));
        let large = run(&session, "x = bytearray(2_000_000_000)").await;
        assert!(large.error.unwrap().contains("MemoryError"));
        let loud = run(&session, "for _ in range(10_000): print('y' * 1000)").await;
        assert_eq!((loud.output.chars().count(), loud.lost), (1_000, 10_009_000), "{}", loud.output.len());
        let value = run(&session, "'z' * 10_000_000").await;
        assert_eq!(value.value.unwrap().chars().count(), 1_000);
        let file = run(&session, "open('large', 'w').write('x' * 50_000_000)").await;
        assert!(file.error.unwrap().contains("File too large"));
    }
}

#[tokio::test]
async fn code_that_attacks_its_own_process_ends_its_session_alone() {
    let folder = Folder::new();
    let mut settings = python(&folder);
    // Soon full for code that calls itself without end.
    settings.memory = 200 << 20;
    let session = Python::new(settings);
    for code in [
        "import os\nos._exit(0)",
        "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\nos.kill(0, signal.SIGKILL)\nos._exit(1)",
        "import sys\nsys.setrecursionlimit(10**9)\ndef f(): f()\nf()",
        "import ctypes\nctypes.string_at(0)",
        "import os\n[os.close(fd) for fd in range(3, 30)]",
    ] {
        let ran = session.run(code).await;
        assert!(ran.is_err() || ran.as_ref().is_ok_and(|ran| ran.error.is_some()), "{code}: {ran:?}");
        let next = run(&session, "1 + 1").await;
        assert_eq!(next.value.as_deref(), Some("2"), "{code}");
    }
    let quiet =
        printed("import sys, os\nprint(repr(sys.stdin.read()))\nos.system('echo loud')\nprint('end')").await;
    assert_eq!(quiet, "''\nend", "the code has no input, and no other way out than its output");
}

#[tokio::test]
async fn without_an_interpreter_the_error_says_so() {
    let folder = Folder::new();
    let mut settings = python(&folder);
    settings.program = "no-such-python".into();
    let error = Python::new(settings).run("1").await.unwrap_err();
    assert!(error.to_string().contains("`no-such-python` is not installed"), "{error}");
}

#[tokio::test]
async fn a_file_runs_once_in_a_process_of_its_own() {
    let scene = Scene::new().await;
    scene.folder.write(
        "here/main.py",
        "import os\nprint(__name__, sorted(os.listdir('.')))\nif __name__ == '__main__':\n    print(6 * 7)\n",
    );
    scene.folder.write("here/bad.py", "print('before')\nraise ValueError('broken')\n");
    let run = async |path: &str| {
        let python = scene.python();
        call_with(
            &scene,
            move |builder| builder.python(python),
            "execute_python_file",
            json!({ "path": path }),
        )
        .await
    };
    assert_eq!(run("main.py").await.unwrap(), "__main__ ['bad.py', 'main.py']\n42\n");
    let error = run("bad.py").await.unwrap_err();
    assert!(error.contains("before") && error.contains("ValueError: broken"), "{error}");
    for path in ["../main.py", "missing.py", "/etc/passwd"] {
        assert!(run(path).await.is_err(), "{path}");
    }
}

#[tokio::test]
async fn after_a_resume_the_session_is_empty_and_says_so() {
    let scene = Scene::new().await;
    let code = |code: &str| Reply::tool_call("python_repl", json!({ "code": code }));
    let down = || agentgraph_llm::Error::new(agentgraph_llm::Code::Auth, "down").into();
    let model = ScriptedModel::new([
        code("x = 5"),
        code("x"),
        down(),
        code("x"),
        code("1"),
        Reply::text("FINAL ANSWER: 5"),
    ]);
    let agent = scene.builder(model).python(scene.python()).checkpointer(MemorySaver::new()).build().unwrap();
    let task = Task::ask("What is x?");
    assert!(!agent.solve("t", &task).await.unwrap().is_done);
    assert!(agent.solve("t", &task).await.unwrap().is_done);
    let results = results(&agent, "t").await;
    let texts: Vec<_> = results.iter().map(|(text, _)| text.lines().next().unwrap()).collect();
    assert_eq!((texts[0], texts[1]), ("[no output]", "5"));
    assert!(results[2].1 && results[2].0.contains("NameError"), "{results:?}");
    assert_eq!(texts[3], "1");
}
