//! Transcripts: inputs and outcomes in one text.
//!
//! A file in `transcripts/` contains the inputs, and after each message, in lines that start with `|`, its
//! outcome: the node path, the HTTP calls, the reply and the pending question. The check runs the inputs,
//! writes the text again and compares. `UPDATE_TRANSCRIPTS=1` writes the file instead; read it before you
//! commit it.
//!
//! Inputs, a line each:
//! - `given NAME is STATE`: creates an experiment; `{NAME}` is its id everywhere
//! - `status NAME STATE`: another client changes its status
//! - `server STATUS on METHOD PATH`: the next such request fails with this status
//! - `model TOOL {...} & TOOL {...}`: the model calls these tools; `model "text"`: it replies with this text;
//!   `model fails`; `model wants INTENT [CONFIDENCE]` and `model acts ACTION {...}` are short for the usual
//!   calls
//! - `user TEXT`: a message; the model's lines before it are its replies, in order
//! - `user@THREAD TEXT`: the same on another thread

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;

use agentgraph_llm::{Code, Error, Reply};
use serde_json::Value;
use upgrade_agent::agent::{Turn, UpgradeAgent};
use upgrade_agent::client::{Dialect, ExperimentState};

use super::proxy::Fault;
use super::script::{Script, acts, wants};
use super::{World, key};

/// Runs the transcript of that name and compares. With a server of the old dialect the calls may differ,
/// but not the replies and the effects.
pub(crate) async fn check(name: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/common/transcripts/{name}.txt"));
    let expected = std::fs::read_to_string(&path).unwrap();
    let written = Player::new(Dialect::V65).await.play(&expected).await;
    if std::env::var_os("UPDATE_TRANSCRIPTS").is_some() {
        std::fs::write(&path, written).unwrap();
        panic!("{name}: written; read it, and run the test again without UPDATE_TRANSCRIPTS");
    }
    let differs = expected.lines().zip(written.lines()).position(|(one, other)| one != other);
    assert!(expected == written, "{name}: differs at line {}:\n{written}", differs.map_or(0, |at| at + 1));
    let old = Player::new(Dialect::V62).await.play(&expected).await;
    let told = without_calls(&expected);
    let old = without_calls(&old);
    let differs = told.iter().zip(&old).find(|(one, other)| one != other);
    assert!(told == old, "{name}, with a 6.2: {differs:?}");
}

/// Returns the lines that are equal with a 6.2: without calls, and without payloads that updates add
/// from 6.3 on.
fn without_calls(written: &str) -> Vec<&str> {
    let only_newer = |line: &str| line.starts_with("| http: ") || line.contains("without a payload");
    written.lines().filter(|line| !only_newer(line)).collect()
}

struct Player {
    world: World,
    script: Script,
    agent: UpgradeAgent,
    /// Ids by their names in the transcript.
    names: BTreeMap<String, String>,
}

impl Player {
    async fn new(dialect: Dialect) -> Self {
        let world = World::of(dialect).await;
        let script = Script::new();
        let agent = world.agent(&script).await;
        let names = (1..=9).map(|n| (format!("key-{n}"), key(n).to_string())).collect();
        Player { world, script, agent, names }
    }

    async fn play(mut self, text: &str) -> String {
        let mut out = String::new();
        for line in text.lines().filter(|line| !line.starts_with('|')) {
            writeln!(out, "{line}").unwrap();
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            match word {
                "given" => self.given(rest).await,
                "status" => self.change(rest).await,
                "server" => self.fail(rest),
                "model" => self.script.add([self.reply(rest)]),
                "user" => self.say("one", rest, &mut out).await,
                _ if word.starts_with("user@") => self.say(&word["user@".len()..], rest, &mut out).await,
                _ => assert!(line.is_empty() || word == "#", "unknown line {line:?}"),
            }
        }
        let server = self.world.experiments().await;
        writeln!(
            out,
            "| at the end: {}",
            if server.is_empty() { "nothing".into() } else { server.join(", ") }
        )
        .unwrap();
        out
    }

    async fn change(&self, rest: &str) {
        let (name, state) = rest.rsplit_once(' ').unwrap();
        let state = ExperimentState::from(state);
        self.world.behind().set_state(&self.names[name], &state).await.unwrap();
    }

    async fn given(&mut self, line: &str) {
        let (name, state) = line.split_once(" is ").unwrap();
        let id = self.world.experiment(name, ExperimentState::from(state)).await;
        self.names.insert(name.to_owned(), id);
    }

    fn fail(&self, line: &str) {
        let (what, begins) = line.split_once(" on ").unwrap();
        let fault = match what {
            "hangs up" => Fault::HangUp,
            "acts and hangs up" => Fault::HangUpAfter,
            status => Fault::Status(status.parse().unwrap()),
        };
        self.world.proxy.fail(&self.with_ids(begins), fault, 1);
    }

    fn reply(&self, line: &str) -> Reply {
        let line = self.with_ids(line);
        if line == "fails" {
            return Reply::error(Error::new(Code::Overloaded, "the provider is overloaded, try again later"));
        }
        if let Some(rest) = line.strip_prefix("wants ") {
            let (intent, confidence) = rest.split_once(' ').unwrap_or((rest, "0.95"));
            return wants(intent, confidence.parse().unwrap());
        }
        if let Some(rest) = line.strip_prefix("acts ") {
            let (action, params) = rest.split_once(' ').unwrap();
            return acts(action, serde_json::from_str(params).unwrap());
        }
        if line.starts_with('"') {
            return Reply::text(serde_json::from_str::<String>(&line).unwrap());
        }
        line.split(" & ").fold(Reply::empty(), |reply, call| {
            let (tool, input) = call.split_once(' ').unwrap_or((call, "{}"));
            let input: Value = serde_json::from_str(input).unwrap_or_else(|why| panic!("{input}: {why}"));
            reply.and_tool_call(tool, input)
        })
    }

    async fn say(&self, thread: &str, text: &str, out: &mut String) {
        let turn = self.agent.turn(thread, &self.with_ids(text)).await.unwrap();
        assert_eq!(self.script.left(), 0, "the model was not asked for all its replies to {text:?}");
        let http = self.world.proxy.heard();
        let shown = describe(&turn, &http);
        for line in self.without_ids(&shown).lines() {
            writeln!(out, "| {line}").unwrap();
        }
    }

    fn with_ids(&self, text: &str) -> String {
        self.names.iter().fold(text.to_owned(), |text, (name, id)| text.replace(&format!("{{{name}}}"), id))
    }

    fn without_ids(&self, text: &str) -> String {
        self.names.iter().fold(text.to_owned(), |text, (name, id)| text.replace(id, &format!("{{{name}}}")))
    }
}

fn describe(turn: &Turn, http: &[String]) -> String {
    let mut out = String::new();
    writeln!(out, "path: {}", turn.path.join(" > ")).unwrap();
    for line in http {
        writeln!(out, "http: {line}").unwrap();
    }
    for error in &turn.errors {
        writeln!(out, "error: {}", serde_json::to_value(error.class).unwrap().as_str().unwrap()).unwrap();
    }
    let kind = serde_json::to_value(turn.kind).unwrap();
    writeln!(out, "{}:", kind.as_str().unwrap()).unwrap();
    for line in turn.reply.lines() {
        writeln!(out, "  {line}").unwrap();
    }
    if !turn.suggested.is_empty() {
        writeln!(out, "suggested: {}", turn.suggested.join(" / ")).unwrap();
    }
    if let Some(pending) = &turn.pending {
        let pending = serde_json::to_value(pending).unwrap();
        writeln!(out, "waits for: {}", pending["waits_for"].as_str().unwrap()).unwrap();
    }
    out
}
