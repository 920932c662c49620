//! Nothing of an order is dropped in silence: what was not understood is named, and nothing is asked for or done without it.
//! Sentences with what is wanted are in `fixtures/sentences.txt`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use upgrade_agent::agent::{Turn, UpgradeAgent};
use upgrade_agent::client::{ExperimentState, NewExperiment, UpgradeClient};
use upgrade_agent::offline::OfflineModel;
use upgrade_agent::server::{EmbeddedServer, ServerHandle};

/// An agent over a server with experiments in several states.
struct Desk {
    server: ServerHandle,
    agent: UpgradeAgent,
}

impl Desk {
    async fn new() -> Self {
        let server = EmbeddedServer::builder().in_memory().seed(11).start().await.unwrap();
        let client = UpgradeClient::builder(server.url()).build().unwrap();
        let states = [
            ("Foo", ExperimentState::Inactive),
            ("Hints", ExperimentState::Inactive),
            ("Math Hints", ExperimentState::Inactive),
            ("Running Test", ExperimentState::Enrolling),
            ("Old Study", ExperimentState::Cancelled),
        ];
        for (name, state) in states {
            let new = NewExperiment::new(name, "assign-prog")
                .point("SelectSection", "absolute_value_plot_equality")
                .condition("control", 50.0)
                .condition("variant", 50.0)
                .include_all();
            let made = client.create(&new).await.unwrap();
            if state != ExperimentState::Inactive {
                client.set_state(&made.id, &state).await.unwrap();
            }
        }
        let agent = UpgradeAgent::builder().model(OfflineModel::new()).client(client).build().unwrap();
        Desk { server, agent }
    }

    /// The last turn of a conversation of its own.
    async fn last(&self, thread: &str, turns: &str) -> Turn {
        let mut last = None;
        for said in turns.split(";;") {
            last = Some(self.agent.turn(thread, said.trim()).await.unwrap());
        }
        last.unwrap()
    }
}

/// A line of the table.
struct Row<'a> {
    kind: &'a str,
    texts: Vec<&'a str>,
    turns: &'a str,
}

fn rows(table: &str) -> Vec<Row<'_>> {
    let lines = table.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            let (wanted, turns) = line.split_once(" | ").unwrap_or_else(|| panic!("{line}"));
            let (kind, texts) = wanted.split_once(' ').unwrap();
            let texts = texts.split('&').map(str::trim).filter(|text| !text.is_empty() && *text != "!");
            Row { kind, texts: texts.collect(), turns }
        })
        .collect()
}

fn is_wanted(row: &Row<'_>, turn: &Turn) -> bool {
    let says = |text: &&str| match text.strip_prefix('!') {
        Some(forbidden) => !turn.reply.contains(forbidden),
        None => turn.reply.contains(*text),
    };
    let asks = match row.kind {
        "ask" => turn.asks_for_a_yes(),
        "left" | "tell" => !turn.asks_for_a_yes(),
        kind => panic!("{kind} is no kind of row"),
    };
    asks && row.texts.iter().all(says)
}

#[tokio::test]
async fn every_sentence_of_the_table_is_heard_as_it_is_meant() {
    let rows = rows(include_str!("fixtures/sentences.txt"));
    assert!(rows.len() > 200, "{} sentences", rows.len());
    let mut desk = Desk::new().await;
    let mut wrong = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        let turn = desk.last(&at.to_string(), row.turns).await;
        if !is_wanted(row, &turn) {
            wrong
                .push(format!("{} {:?}: {:?}\n    brought {:?}", row.kind, row.texts, row.turns, turn.reply));
        }
        if row.turns.contains(";;") {
            desk.server.shutdown().await;
            desk = Desk::new().await;
        }
    }
    desk.server.shutdown().await;
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), rows.len(), wrong.join("\n"));
}
