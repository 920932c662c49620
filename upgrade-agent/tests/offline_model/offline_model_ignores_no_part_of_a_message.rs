//! No part of an order is ignored: the reply names words that were not understood, and nothing is
//! proposed or done without them. `fixtures/sentences.txt` has sentences with their expected results.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::LazyLock;

use proptest::prelude::*;
use tokio::runtime::Runtime;
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

    /// Plays a conversation on its own thread, and returns its last turn.
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
        kind => panic!("unknown kind of row: {kind}"),
    };
    asks && row.texts.iter().all(says)
}

#[tokio::test]
async fn every_sentence_of_the_table_has_the_expected_result() {
    let rows = rows(include_str!("../fixtures/sentences.txt"));
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

#[tokio::test]
async fn experiments_of_one_name_are_distinguished_and_chosen() {
    let desk = Desk::new().await;
    let client = UpgradeClient::builder(desk.server.url()).build().unwrap();
    let mut ids = Vec::new();
    for _ in 0..2 {
        let new = NewExperiment::new("Twin", "assign-prog")
            .point("SelectSection", "absolute_value_plot_equality")
            .condition("control", 50.0)
            .condition("variant", 50.0)
            .include_all();
        ids.push(client.create(&new).await.unwrap().id);
    }
    let listed = desk.last("list", "list the experiments").await.reply;
    for (at, id) in ids.iter().enumerate() {
        let short = &id[..8];
        assert!(listed.contains(&format!("- Twin (id {short}, created 20")), "{listed}");
        let thread = format!("twin {at}");
        let asked = desk.last(&thread, "delete Twin").await;
        let option = asked.suggested.iter().find(|option| option.contains(short)).unwrap().clone();
        assert!(option.starts_with("Twin (id ") && option.contains("assign-prog, created 20"), "{option}");
        let chosen = desk.last(&thread, &option).await;
        assert!(chosen.asks_for_a_yes() && chosen.reply.contains(id.as_str()), "{}", chosen.reply);
        let by_id = desk.last(&format!("id {at}"), &format!("start {short}")).await;
        assert!(by_id.asks_for_a_yes(), "{}", by_id.reply);
        let line = listed
            .lines()
            .filter(|line| line.starts_with("- "))
            .position(|line| line.contains(short))
            .unwrap();
        let place = ["first", "second", "third", "fourth", "fifth", "sixth", "seventh"][line];
        let by_place =
            desk.last(&thread, &format!("cancel;;list the experiments;;delete the {place} one")).await;
        assert!(by_place.asks_for_a_yes() && by_place.reply.contains(id.as_str()), "{}", by_place.reply);
    }
    desk.server.shutdown().await;
}

const ORDERS: &[&str] = &[
    "start Foo",
    "please stop Running Test",
    "archive Old Study",
    "delete Foo",
    "rename Foo to \"Bar\"",
    "set the weights of Foo to 70/30",
    "tag Foo with algebra",
    "exclude user bob from Foo",
    "include class c1 in Foo",
    "initialize user ada",
    "mark SelectSection / absolute_value_plot_equality for user ada",
    "let student ada visit SelectSection / absolute_value_plot_equality in assign-prog",
    "test the balance of Foo with 50 users",
    "simulate a journey of 20 users through Foo",
    "create experiment Bar in assign-prog at SelectSection / absolute_value_plot_equality, 50/50, for everybody",
];

/// Words that have no use in any order, as a name, a value or a filler, and that are no keyword with a typing
/// error.
const STRANGE: &[&str] = &[
    "bananas",
    "winter",
    "quickfix",
    "ohio",
    "mallory",
    "turbo",
    "silently",
    "carefully",
    "backwards",
    "zebra",
    "budget",
    "colour",
    "velvet",
    "2031-05-09",
    "17:45",
    "99",
    "1e3",
    "seventeenth",
    "christmas",
    "not",
    "never",
    "except",
    "unless",
    "until",
    "tomorrow",
    "minutes",
    "hours",
    "payload",
    "segment",
    "globally",
    "flag",
    "metric",
    "export",
    "dry-ish",
    "principal",
    "twice",
    "quarterly",
    "pineapple",
    "mittens",
    "http://example.org",
    "#77",
    "wednesday",
    "grandmother",
    "halfway",
    "encrypted",
];

const JOINTS: &[&str] =
    &["", "on", "for", "with", "and", "but", "in", "by", "from", "to the", "at the", "because of no"];

fn strange_phrase() -> impl Strategy<Value = (String, Vec<String>)> {
    let coined = "zq[a-z]{3,7}x".prop_map(String::from);
    let word = prop_oneof![4 => prop::sample::select(STRANGE).prop_map(str::to_owned), 1 => coined];
    (prop::sample::select(JOINTS), prop::collection::vec(word, 1..3))
        .prop_map(|(joint, words)| (format!("{joint} {}", words.join(" ")).trim().to_owned(), words))
}

/// Returns a word as a reply names it, without punctuation around it.
fn named(word: &str) -> String {
    word.trim_matches(|sign: char| !sign.is_alphanumeric()).to_owned()
}

/// Returns a configuration with few cases, unless the environment sets a number.
fn config() -> ProptestConfig {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(60);
    ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(cases) }
}

/// One server for all cases, since no case changes it.
static DESK: LazyLock<(Runtime, Desk)> = LazyLock::new(|| {
    let runtime = Runtime::new().unwrap();
    let desk = runtime.block_on(Desk::new());
    (runtime, desk)
});

/// Replies to orders of which nothing was understood, or which were understood and refused.
const REFUSALS: &[&str] = &[
    "one experiment at a time",
    "I change a status at once",
    "no experiment called",
    "I left it alone",
    "nothing is done",
    "I did not understand that",
];

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_phrase_that_no_order_has_is_named_and_nothing_is_asked_for_without_it(
        order in prop::sample::select(ORDERS),
        (phrase, words) in strange_phrase(),
        before in any::<bool>(),
        thread in any::<u128>(),
    ) {
        let (runtime, desk) = &*DESK;
        let text = if before { format!("{phrase}, {order}") } else { format!("{order} {phrase}") };
        let thread = thread.to_string();
        let turn = runtime.block_on(desk.last(&thread, &text));
        let state = runtime.block_on(desk.agent.conversation(&thread)).unwrap().unwrap();
        prop_assert!(state.execution_log.is_empty(), "{:?} was done: {}", text, turn.reply);
        // Heard as one more tag, which is any word, or as an order of its own ("and export bananas"), which
        // is named and waits. The reply shows all of it.
        let may_be_heard = order.starts_with("tag ") || turn.reply.contains("After this you asked for:");
        let is_heard = may_be_heard && words.iter().all(|word| turn.reply.contains(&named(word)));
        prop_assert!(is_heard || !turn.asks_for_a_yes(), "{:?} brought {}", text, turn.reply);
        let is_told = words.iter().any(|word| turn.reply.contains(&named(word)))
            || REFUSALS.iter().any(|known| turn.reply.contains(known));
        prop_assert!(is_told, "{:?} brought {}", text, turn.reply);
    }
}
