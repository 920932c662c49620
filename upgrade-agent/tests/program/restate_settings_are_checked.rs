//! `--restate`, `worker` and `relay` before anything is sent: with the feature `restate` their settings are
//! checked, and without it they say how to build the program.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::shell;

use shell::{Folder, agent, finish, run};

/// Runs the program, which must refuse its command line. Returns the message.
fn refused(folder: &Folder, args: &[&str]) -> String {
    let ran = run(folder, args, "");
    assert_eq!((ran.code(), ran.out()), (2, String::new()), "{args:?}: {}", ran.err());
    ran.err()
}

#[cfg(not(feature = "restate"))]
#[test]
fn without_the_feature_the_message_says_how_to_build_the_program() {
    const BUILD: &str = "build it with `cargo build -p upgrade-agent --features restate`";
    let manifest = include_str!("../../Cargo.toml");
    assert!(manifest.contains("\nname = \"upgrade-agent\"\n") && manifest.contains("\nrestate = ["));
    let folder = Folder::new();
    let url = "http://127.0.0.1:8080";
    for (args, from) in [
        (&["ask", "hello", "--restate", url][..], "--restate"),
        (&["--restate", url], "--restate"),
        (&["chat", "--json", "--restate", url], "--restate"),
        (&["threads", "--restate", url], "--restate"),
        (&["worker", "--url", url], "worker"),
        (&["relay"], "relay"),
    ] {
        let told = refused(&folder, args);
        assert!(told.starts_with(&format!("E_CONFIG_VALUE: {from}: ")) && told.contains(BUILD), "{told}");
    }
    let mut command = agent(&folder, &["ask", "hello"]);
    command.env("UPGRADE_AGENT_RESTATE", url);
    let told = finish(command, "").err();
    assert!(told.starts_with("E_CONFIG_VALUE: UPGRADE_AGENT_RESTATE: ") && told.contains(BUILD), "{told}");
    assert!(!folder.file("data").join("threads.db").exists(), "the turn did not run here instead");
}

#[cfg(feature = "restate")]
#[test]
fn unusable_addresses_are_refused_with_the_setting_that_they_come_from() {
    let folder = Folder::new();
    let url = "http://127.0.0.1:8080";
    let cases = [
        (&["ask", "hello", "--restate", "localhost:8080"][..], "--restate: it must be a URL"),
        (&["ask", "hello", "--restate", "http://ada:hidden@localhost"], "--restate: the URL must not carry"),
        (&["threads", "--restate", url, "--restate-admin", "ftp://x"], "--restate-admin: it must be a URL"),
        (&["ask", "hello", "--restate", url, "--relay", "http://x/?a=b"], "--relay: the URL must not have"),
        (&["worker"], "worker: a worker needs --url"),
        (&["worker", "--url", url, "--listen", "0.0.0.0:0"], "set --identity-key to"),
        (&["worker", "--url", url, "--identity-key", "no key"], "publickeyv1_"),
        (&["relay", "--listen", "0.0.0.0:0"], "set UPGRADE_AGENT_RELAY_TOKEN"),
    ];
    for (args, part) in cases {
        let told = refused(&folder, args);
        assert!(told.starts_with("E_") && told.contains(part), "{part:?} is not in {told}");
        assert!(!told.contains("hidden"), "{told}");
    }
}

#[cfg(feature = "restate")]
#[test]
fn a_token_goes_to_a_relay_of_another_machine_only_over_https() {
    let folder = Folder::new();
    let with_token = |relay: &str| {
        let mut command = agent(&folder, &["threads", "--restate", "http://127.0.0.1:1", "--relay", relay]);
        command.env("UPGRADE_AGENT_RELAY_TOKEN", "a-secret-word");
        finish(command, "")
    };
    let ran = with_token("http://relay.example.org");
    assert_eq!(ran.code(), 2, "{}", ran.err());
    assert!(
        ran.err().contains("--allow-plain-http") && !ran.err().contains("a-secret-word"),
        "{}",
        ran.err()
    );
    // These are accepted. The server, at a port where nothing listens, is not reached.
    for relay in ["https://relay.example.org", "http://127.0.0.1:9090"] {
        let ran = with_token(relay);
        assert_eq!(ran.code(), 1, "{}", ran.err());
        assert!(ran.err().contains("E_HOST") && ran.err().contains("--restate-admin"), "{}", ran.err());
    }
}
