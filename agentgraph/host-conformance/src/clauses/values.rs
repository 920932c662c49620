//! Values: every kind of them arrives as it was, also large ones.

use agentgraph::prelude::*;
use futures_util::FutureExt;
use sha2::{Digest, Sha256};

use crate::case::{Case, Found, invoke, same};
use crate::clause::Clause;
use crate::graph::KitGraph;
use crate::notes::Notes;
use crate::sheet::{Sheet, SheetUpdate, Values};

pub(super) const CLAUSES: &[Clause] = &[
    Clause::new(
        "values of every kind arrive as they are",
        "States, inputs and updates are bytes to a host. Maps without an order, texts beyond ASCII, large numbers, bytes, empty lists and `None` come back unchanged.",
        |case| every_kind(case).boxed(),
    ),
    Clause::new(
        "a state of two megabytes arrives whole, and so does an update of that size",
        "A host with a limit for messages sends a state once for all tasks of a superstep, or in parts.",
        |case| large(case).boxed(),
    ),
];

pub(super) fn graphs(_: &Notes) -> Vec<KitGraph> {
    vec![KitGraph::of("kit_values", echo()), KitGraph::of("kit_large", large_graph())]
}

/// Looks at the values in the state and in a dispatch, and writes them back.
fn echo() -> StateGraph<Sheet> {
    async fn echo(sheet: Snapshot<Sheet>) -> Command<Sheet> {
        let update = Sheet::update().lines([sheet.values.shown("the state")]).values(sheet.values.clone());
        Command::update(update).also_goto(Dispatch::new("look", Values::awkward()))
    }
    async fn look(Input(values): Input<Values>, sheet: Snapshot<Sheet>) -> SheetUpdate {
        Sheet::update().lines([values.shown("the input"), sheet.values.shown("the later state")])
    }
    StateGraph::new().node("echo", echo.targets(["look"])).node("look", look).edge(START, "echo")
}

/// Eight tasks look at the word and say its length and its hash; another one changes it.
fn large_graph() -> StateGraph<Sheet> {
    async fn split() -> Command<Sheet> {
        Command::to((0..8_u64).map(|n| Dispatch::new("look", n)).collect::<Vec<_>>())
    }
    async fn look(Input(n): Input<u64>, sheet: Snapshot<Sheet>) -> SheetUpdate {
        Sheet::update().lines([format!("{n}: {}", shown(&sheet.word))])
    }
    async fn change(sheet: Snapshot<Sheet>) -> SheetUpdate {
        Sheet::update().word(sheet.word.chars().rev().collect::<String>())
    }
    StateGraph::new()
        .node("split", split.targets(["look"]))
        .node("look", look)
        .node("change", change)
        .edge(START, "split")
        .edge(["look"], "change")
}

fn shown(word: &str) -> String {
    let hash = Sha256::digest(word.as_bytes());
    format!("{} bytes {:02x}{:02x}{:02x}{:02x}", word.len(), hash[0], hash[1], hash[2], hash[3])
}

/// A text that does not become shorter when it is compressed, much.
fn large_word() -> String {
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut word = String::new();
    while word.len() < 2 << 20 {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        word += &format!("{random:016x}");
    }
    word
}

async fn every_kind(case: &Case<'_>) -> Found {
    let call = invoke(Sheet::update().values(Values::awkward()))?;
    let sheet = case.finished("kit_values", call).await?;
    let expected = ["the state as sent", "the input as sent", "the later state as sent"];
    same("lines of the nodes", &sheet.lines[..], expected)?;
    same("the state at the end", sheet.values.shown("it is"), "it is as sent")?;
    let state = case.state("kit_values").await?;
    same("the state as it is looked at", state.values.values.shown("it is"), "it is as sent")
}

async fn large(case: &Case<'_>) -> Found {
    let word = large_word();
    let sheet = case.finished("kit_large", invoke(Sheet::update().word(word.clone()))?).await?;
    let expected: Vec<String> = (0..8).map(|n| format!("{n}: {}", shown(&word))).collect();
    same("the words that the tasks have read", sheet.lines, expected)?;
    let reversed: String = word.chars().rev().collect();
    same("the word at the end", shown(&sheet.word), shown(&reversed))
}
