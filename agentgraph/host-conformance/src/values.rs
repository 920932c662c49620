//! Values: every kind of them arrives as it was, also large ones.

use std::collections::HashMap;

use agentgraph::prelude::*;
use futures_util::FutureExt;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::case::{Found, invoke, same};
use super::sheet::SheetUpdate;
use super::{Case, Clause, KitGraph, Notes, Sheet};

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

/// Values of many kinds. Some get lost when bytes are taken for text or for JSON.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
pub struct Values {
    by_name: HashMap<String, u64>,
    by_number: HashMap<i64, String>,
    nested: HashMap<String, HashMap<u64, Vec<Option<bool>>>>,
    text: String,
    letter: char,
    bytes: Vec<u8>,
    integers: (u64, i64, u8, i8),
    floats: Vec<f64>,
    single: f32,
    nothing: Option<String>,
    something: Option<String>,
    some_of_many: Vec<Option<u32>>,
    empty: (Vec<String>, HashMap<String, String>, String),
    unit: (),
    kinds: Vec<Kind>,
    json: Value,
}

#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
enum Kind {
    Plain,
    One(String),
    Pair(u8, Option<i64>),
    Named { name: String, rest: Vec<Kind> },
}

impl Values {
    /// Values that are hard to carry.
    pub fn awkward() -> Self {
        let words = (0..40_u64).map(|n| (format!("name {n}"), u64::MAX - n));
        Values {
            by_name: words.collect(),
            by_number: (-20..20_i64).map(|n| (n * 1_000_000_007, format!("{n}"))).collect(),
            nested: (0..9)
                .map(|n| (format!("n{n}"), (0..9).map(|m| (m, vec![None, Some(m > n)])).collect()))
                .collect(),
            text: "naïve 日本語 👩‍👩‍👧 \u{202e}עברית\u{feff} a\0b \"quoted\" \\ \r\n\t".to_owned(),
            letter: '\u{10ffff}',
            bytes: (0..=255).collect(),
            integers: (u64::MAX, i64::MIN, u8::MAX, i8::MIN),
            floats: vec![f64::MAX, f64::MIN_POSITIVE, 5e-324, -0.0, 0.1 + 0.2, f64::NEG_INFINITY],
            single: 16_777_217.0_f32 / 3.0,
            nothing: None,
            something: Some(String::new()),
            some_of_many: vec![None, Some(0), None],
            empty: (Vec::new(), HashMap::new(), String::new()),
            unit: (),
            kinds: vec![
                Kind::Plain,
                Kind::One("null".to_owned()),
                Kind::Pair(7, None),
                Kind::Named { name: "é".to_owned(), rest: vec![Kind::Plain] },
            ],
            json: json!({"a": [null, true, -1, u64::MAX, 1e300, ""], "": {}, "b": {"c": null}}),
        }
    }

    /// The first part that differs from [`awkward`](Self::awkward).
    fn changed(&self) -> Option<&'static str> {
        let sent = Values::awkward();
        let bits =
            |values: &Values| -> Vec<u64> { values.floats.iter().map(|float| float.to_bits()).collect() };
        let parts = [
            ("the map by names", self.by_name == sent.by_name),
            ("the map by numbers", self.by_number == sent.by_number),
            ("the nested maps", self.nested == sent.nested),
            ("the text", self.text == sent.text),
            ("the letter", self.letter == sent.letter),
            ("the bytes", self.bytes == sent.bytes),
            ("the integers", self.integers == sent.integers),
            ("the floats", bits(self) == bits(&sent)),
            ("the single float", self.single.to_bits() == sent.single.to_bits()),
            ("the text that is none", self.nothing == sent.nothing),
            ("the empty text", self.something == sent.something),
            ("the list with gaps", self.some_of_many == sent.some_of_many),
            ("the empty parts", self.empty == sent.empty),
            ("the variants", self.kinds == sent.kinds),
            ("the JSON", self.json == sent.json),
        ];
        parts.into_iter().find(|(_, is_same)| !is_same).map(|(part, _)| part)
    }

    fn shown(&self, what: &str) -> String {
        match self.changed() {
            None => format!("{what} as sent"),
            Some(part) => format!("{what} with another value of {part}"),
        }
    }
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
