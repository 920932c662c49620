//! [`Values`]: a field of every kind.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Values of many kinds. Some get lost when bytes are taken for text or for JSON.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
pub struct Values {
    maps: Maps,
    text: String,
    letter: char,
    bytes: Vec<u8>,
    numbers: Numbers,
    options: Options,
    empty: (Vec<String>, HashMap<String, String>, String),
    unit: (),
    kinds: Vec<Kind>,
    json: Value,
}

#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
struct Maps {
    by_name: HashMap<String, u64>,
    by_number: HashMap<i64, String>,
    nested: HashMap<String, HashMap<u64, Vec<Option<bool>>>>,
}

#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
struct Numbers {
    integers: (u64, i64, u8, i8),
    floats: Vec<f64>,
    single: f32,
}

#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
struct Options {
    nothing: Option<String>,
    something: Option<String>,
    some_of_many: Vec<Option<u32>>,
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
            maps: Maps {
                by_name: words.collect(),
                by_number: (-20..20_i64).map(|n| (n * 1_000_000_007, format!("{n}"))).collect(),
                nested: (0..9)
                    .map(|n| (format!("n{n}"), (0..9).map(|m| (m, vec![None, Some(m > n)])).collect()))
                    .collect(),
            },
            text: "naïve 日本語 👩‍👩‍👧 \u{202e}עברית\u{feff} a\0b \"quoted\" \\ \r\n\t".to_owned(),
            letter: '\u{10ffff}',
            bytes: (0..=255).collect(),
            numbers: Numbers {
                integers: (u64::MAX, i64::MIN, u8::MAX, i8::MIN),
                floats: vec![f64::MAX, f64::MIN_POSITIVE, 5e-324, -0.0, 0.1 + 0.2, f64::NEG_INFINITY],
                single: 16_777_217.0_f32 / 3.0,
            },
            options: Options {
                nothing: None,
                something: Some(String::new()),
                some_of_many: vec![None, Some(0), None],
            },
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
        let bits = |values: &Values| -> Vec<u64> {
            values.numbers.floats.iter().map(|float| float.to_bits()).collect()
        };
        let parts = [
            ("the map by names", self.maps.by_name == sent.maps.by_name),
            ("the map by numbers", self.maps.by_number == sent.maps.by_number),
            ("the nested maps", self.maps.nested == sent.maps.nested),
            ("the text", self.text == sent.text),
            ("the letter", self.letter == sent.letter),
            ("the bytes", self.bytes == sent.bytes),
            ("the integers", self.numbers.integers == sent.numbers.integers),
            ("the floats", bits(self) == bits(&sent)),
            ("the single float", self.numbers.single.to_bits() == sent.numbers.single.to_bits()),
            ("the text that is none", self.options.nothing == sent.options.nothing),
            ("the empty text", self.options.something == sent.options.something),
            ("the list with gaps", self.options.some_of_many == sent.options.some_of_many),
            ("the empty parts", self.empty == sent.empty),
            ("the variants", self.kinds == sent.kinds),
            ("the JSON", self.json == sent.json),
        ];
        parts.into_iter().find(|(_, is_same)| !is_same).map(|(part, _)| part)
    }

    /// Whether they are as they were sent, in words.
    pub(crate) fn shown(&self, what: &str) -> String {
        match self.changed() {
            None => format!("{what} as sent"),
            Some(part) => format!("{what} with another value of {part}"),
        }
    }
}
