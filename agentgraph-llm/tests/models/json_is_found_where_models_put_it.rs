//! Finding JSON in the prose of an answer: texts that models write, random values in random prose, random
//! brackets against a slow reference, and hostile texts.
//!
//! Deliberate faults that these tests detect:
//! - in strings and numbers: escapes ignored, raw line feeds accepted, `01` accepted;
//! - in nesting: a depth off by one, a bracket closed by one of the other kind, doubled braces read as JSON;
//! - in prose: read again only after its string, its strings remembered, quotes searched for repeatedly;
//! - in broken JSON: a missing comma or a cut string read as prose, the first value of a cut array kept,
//!   inner values kept (outside and inside of blocks, and after a second break), brackets in strings counted,
//!   the depth forgotten;
//! - in blocks: an empty one counted, a broken one skipped, a long fence closed by a short one.

use agentgraph_llm::json_in_text::{JsonInText, last_json};
use proptest::prelude::*;
use serde_json::{Value, json};

fn all(text: &str) -> Vec<&str> {
    JsonInText::of(text).all().collect()
}

#[test]
fn texts_that_models_write_give_the_json_they_mean() {
    let cases: &[(&str, &[&str])] = &[
        (r#"{"a":"}"}"#, &[r#"{"a":"}"}"#]),
        (r#"{"a":"{"}"#, &[r#"{"a":"{"}"#]),
        (r#"{"a": "x\"}"}"#, &[r#"{"a": "x\"}"}"#]),
        (r#"{"a":[1}"#, &[]),
        (r#"{bad} {"a":1}"#, &[r#"{"a":1}"#]),
        (r#"{"a":1} {bad}"#, &[r#"{"a":1}"#]),
        (r#"[1,2] {"x":[3]}"#, &["[1,2]", r#"{"x":[3]}"#]),
        (r#"{"a": {"b": [{"c": 1}]}}"#, &[r#"{"a": {"b": [{"c": 1}]}}"#]),
        ("{}", &["{}"]),
        ("", &[]),
        ("no JSON here", &[]),
        // Invalid numbers, and words of other languages.
        (r#"{"a": NaN}"#, &[]),
        (r#"{"a": Infinity}"#, &[]),
        (r#"{"a": 01}"#, &[]),
        (r#"{"a": 1.}"#, &[]),
        (r#"{"a": +1}"#, &[]),
        (r#"{"a": -0.5e+3}"#, &[r#"{"a": -0.5e+3}"#]),
        ("{'a': 1}", &[]),
        (r#"{"a": True, "b": {"c": 1}}"#, &[]),
        // Prose with brackets.
        ("See [1], [sic] and {name}.", &["[1]"]),
        (r#"As in f(x) = {x | x > 0} [sic]: {"a": 1} :-}"#, &[r#"{"a": 1}"#]),
        (r#"I thought [of {"a": 1} first]"#, &[r#"{"a": 1}"#]),
        (r#"[{"a": 1} and so on]"#, &[r#"{"a": 1}"#]),
        (r#"[{"a": "{}"} and so on]"#, &[r#"{"a": "{}"}"#]),
        (r#"{{"a": 1}}"#, &[r#"{"a": 1}"#]),
        (r#"{"so to say} {"a": 1}"#, &[r#"{"a": 1}"#]),
        ("an open [ and\n{\"a\": 1}", &[r#"{"a": 1}"#]),
        ("He said \"{\" and \"[\": {\"a\": 1}", &[r#"{"a": 1}"#]),
        // Incomplete or invalid values, whose inner values do not count either.
        (r#"{"a": {"b": 1}, "c": [1, 2]"#, &[]),
        (r#"{"steps": [{"name": "a"}, {"name": "#, &[]),
        (r#"{"a": {"b": 1},}"#, &[]),
        (r#"[{"a": 1}, {"b": 2},]"#, &[]),
        ("{\"a\": {\"b\": 1} // why\n, \"c\": {\"d\": \"}\"}}", &[]),
        (r#"{"a": NaN, "b": "}", "c": {"d": 1}} or [2]"#, &["[2]"]),
        (r#"[{"a": 1}}"#, &[]),
        (r#"{"a": NaN, "b": {"c": 1}, "d": {"e": 2, f}}"#, &[]),
        ("{\"a\": {\"b\": 1}, \"text\": \"two\nlines {\"}", &[]),
        // An unclosed bracket does not hide a value on a later level or line.
        (r#"{"a": [1} {"b": 2}"#, &[r#"{"b": 2}"#]),
        ("{\"a\":\n{\"b\": 2", &[]),
        ("{\"a\": 1\n\n{\"b\": 2}", &[r#"{"b": 2}"#]),
        // Blocks.
        ("```json\n{\"a\": 1}\n```\nas in [2]", &[r#"{"a": 1}"#]),
        ("[2]\n```JSON\n{\"a\": 1}\n```", &[r#"{"a": 1}"#]),
        ("```json\n{\"a\": 1}\n```\n```json\n{\"a\": 2}\n```", &[r#"{"a": 1}"#, r#"{"a": 2}"#]),
        ("```json {\"a\": 1} ``` [3]", &[r#"{"a": 1}"#]),
        ("```json\n{\"a\": 1}", &[r#"{"a": 1}"#]),
        ("```\n{\"a\": 1}\n```", &[r#"{"a": 1}"#]),
        ("```python\nx = [1]\n```\n{\"a\": 1}", &["[1]", r#"{"a": 1}"#]),
        ("````json\n{\"a\": 1}\n```\n[2]\n````\n[3]", &[r#"{"a": 1}"#, "[2]"]),
        (r#"```json{"code": "```rust\nfn a() {}\n```"}``` [3]"#, &[r#"{"code": "```rust\nfn a() {}\n```"}"#]),
        ("[1] in a ```json``` block: {\"a\": 1}", &["[1]", r#"{"a": 1}"#]),
        ("{\"a\": 0}\n```json\n{\"a\": oops}\n```\n[3]", &[]),
        ("```json\n{\"a\": [1}\n```\n```json\n{\"a\": 1}\n```", &[r#"{"a": 1}"#]),
        ("```jsonc\n[1]\n```", &["[1]"]),
        // Scalars that are the whole text or block.
        (" 42\n", &["42"]),
        (r#""yes""#, &[r#""yes""#]),
        ("I have 3 apples", &[]),
        ("NaN", &[]),
        ("```json\ntrue\n```\nas in [1]", &["true"]),
        ("```json\nyes\n```", &[]),
        // Multi-byte characters.
        ("→ {\"é\": \"🦀}\"} ←", &["{\"é\": \"🦀}\"}"]),
        ("{\"\\u00e6\": 1} {\"\\u00g6\": 2}", &["{\"\\u00e6\": 1}"]),
    ];
    for (text, expected) in cases {
        assert_eq!(all(text), *expected, "{text}");
        assert_eq!(last_json(text), expected.last().copied(), "{text}");
    }
}

#[test]
fn broken_json_after_the_last_value_is_reported() {
    let broken = |text: &str| JsonInText::of(text).broken().map(|broken| broken.to_string());
    assert_eq!(broken(r#"{"a": 1,}"#).unwrap(), "trailing comma at line 1 column 9");
    assert_eq!(broken(r#"so: {"a": [1}"#).unwrap(), "expected `,` or `]` at line 1 column 9");
    assert_eq!(broken(r#"{"a": "#).unwrap(), "EOF while parsing a value at line 1 column 6");
    assert_eq!(broken(r#"{"a": 1} {"b": NaN}"#).unwrap(), "expected value at line 1 column 7");
    assert_eq!(broken(r#"{"b": NaN} {"a": 1}"#), None);
    assert_eq!(broken("{bad}"), None);
    assert_eq!(broken(&"[".repeat(200)).unwrap(), "recursion limit exceeded at line 1 column 128");
    let deep = "[".repeat(200) + &"]".repeat(200);
    assert_eq!(broken(&deep).unwrap(), "recursion limit exceeded at line 1 column 128");
}

#[test]
fn nesting_is_limited_as_in_serde_json() {
    for depth in [1, 126, 127, 128, 129, 300] {
        let text = "[".repeat(depth) + &"]".repeat(depth);
        let readable = serde_json::from_str::<Value>(&text).is_ok();
        assert_eq!(last_json(&text) == Some(&text), readable, "{depth}");
        assert_eq!(last_json(&text).is_some(), readable, "no inner value counts: {depth}");
    }
}

/// A reader that starts again at each bracket or quote takes hours for each of these texts.
#[test]
fn hostile_texts_are_read_in_one_pass() {
    let patterns = [
        "[",
        "{",
        "{\"",
        "[\"",
        "\"",
        "[1,",
        "{\"a\":",
        "{\"a\":[",
        "]",
        "}",
        "`",
        "``` ",
        "```json ",
        "[1 x ",
        "[1, x ",
        "{\"[",
        "{\"a\":1 x \"\\\"",
        "\\\"",
        "[\"\\\"",
        "[\"\\\\",
        "{\"a\" \"",
        "{\"{\"a\":",
        "[[1] x",
        "[{\"a\":1},",
        "{\"a\":1}",
        "```json[",
        "\"[\\",
        "{\"a\":\"\n",
        "[\"]\"\n",
        "[[[[x",
        "{\"a\":\"\\u12",
    ];
    for pattern in patterns {
        for prefix in ["", "[1, x \"", "{\"a\": ", "[\"", "```json\n"] {
            let text = prefix.to_owned() + &pattern.repeat(100_000 / pattern.len());
            let found = JsonInText::of(&text);
            assert!(
                found.all().all(|value| serde_json::from_str::<Value>(value).is_ok()),
                "{prefix}{pattern}"
            );
        }
    }
}

/// Generates an array or object, printed compactly or pretty.
fn container() -> impl Strategy<Value = String> {
    let scalar = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        prop::num::f64::NORMAL.prop_map(Value::from),
        prop_oneof![Just(r#"}"]{[\"#), Just("```json"), Just("{\"a\": 1}"), Just("two\nlines"), Just("é🦀")]
            .prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    let value = scalar.prop_recursive(5, 30, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((any::<String>(), inner), 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    });
    (prop::collection::vec(value, 0..4), any::<bool>(), any::<bool>()).prop_map(|(items, object, pretty)| {
        let keyed = || items.iter().enumerate().map(|(n, item)| (format!("k{n}"), item.clone())).collect();
        let value = if object { Value::Object(keyed()) } else { Value::from(items) };
        if pretty { serde_json::to_string_pretty(&value).unwrap() } else { value.to_string() }
    })
}

/// Generates prose that contains no JSON in any context.
fn prose() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[a-zé🦀 .,:!?()0-9'*_-]{0,12}",
        Just("\n".to_owned()),
        Just("[sic]".to_owned()),
        Just("{name}".to_owned()),
        Just("[see below".to_owned()),
        Just("\"quoted\"".to_owned()),
        Just("}".to_owned()),
        Just("]".to_owned()),
        Just("`code`".to_owned()),
        Just("{\"so\" to say".to_owned()),
    ];
    prop::collection::vec(piece, 0..6).prop_map(|pieces| format!("So {} ", pieces.join(" ")))
}

/// Returns the number of cases in the environment, or 400.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(400)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn values_in_prose_are_all_found(parts in prop::collection::vec((prose(), container()), 0..5), end in prose()) {
        let text: String = parts.iter().flat_map(|(prose, json)| [&**prose, &**json]).chain([&*end]).collect();
        let expected: Vec<_> = parts.iter().map(|(_, json)| json.as_str()).collect();
        prop_assert_eq!(all(&text), expected, "{}", text);
    }

    #[test]
    fn values_in_json_blocks_go_before_those_outside(
        before in (prose(), container()), inside in prop::collection::vec(container(), 1..3), after in (prose(), container()),
    ) {
        let body = inside.join("\n");
        let text = format!("{}{}\n```json\n{body}\n```\n{}{}", before.0, before.1, after.0, after.1);
        prop_assert_eq!(all(&text), inside);
    }

    /// A value that is cut anywhere is not found, and neither are its inner values.
    #[test]
    fn a_cut_value_gives_nothing(json in container(), prose in prose(), cut in any::<prop::sample::Index>()) {
        let mut end = cut.index(json.len());
        while !json.is_char_boundary(end) {
            end -= 1;
        }
        let text = prose + &json[..end];
        prop_assert_eq!(all(&text), Vec::<&str>::new(), "{}", text);
    }

    #[test]
    fn any_brackets_give_what_the_reference_gives(text in "[\\[\\]{}\",:1ax \\\\\n`]{0,40}") {
        prop_assert_eq!(all(&text), reference::all(&text), "{}", text);
    }

    #[test]
    fn brackets_that_are_nearly_json_give_what_the_reference_gives(
        pieces in prop::collection::vec(prop::sample::select(vec![
            "{", "}", "[", "]", "\"a\"", ":", ",", "1", " x ", "{\"a\":", "[1,", "{\"a\":1}", "\"", "\\\"", "```", "```json", "\n",
        ]), 0..24)
    ) {
        let text = pieces.concat();
        prop_assert_eq!(all(&text), reference::all(&text), "{}", text);
    }

    #[test]
    fn any_text_is_read_without_panic(text in any::<String>()) {
        for value in all(&text) {
            prop_assert!(serde_json::from_str::<serde::de::IgnoredAny>(value).is_ok());
        }
        let _ = JsonInText::of(&text).broken().map(|broken| broken.to_string());
    }
}

/// A slow second implementation of the rules, which tries all ends and completions with another parser.
mod reference {
    use serde_json::Value;

    fn is_json(text: &str) -> bool {
        serde_json::from_str::<Value>(text).is_ok()
    }

    /// Returns the end of the longest piece from `start` that some text completes to JSON, and its open
    /// parts.
    fn longest_prefix(text: &str, start: usize) -> (usize, Stack) {
        let mut best = (start + 1, Stack::of(&text[start..=start]));
        for end in start + 1..=text.len() {
            match Stack::try_of(&text[start..end]) {
                Some(stack) => best = (end, stack),
                None => break,
            }
        }
        best
    }

    /// The open containers at the end of a piece.
    struct Stack {
        open: Vec<char>,
        /// The start of the last string since a closing bracket.
        string: Option<usize>,
        in_string: bool,
    }

    impl Stack {
        fn of(text: &str) -> Stack {
            let mut open = Vec::new();
            let mut string = None;
            let mut in_string = false;
            let mut escaped = false;
            for (at, c) in text.char_indices() {
                match c {
                    _ if escaped => escaped = false,
                    '\\' if in_string => escaped = true,
                    '"' => {
                        in_string = !in_string;
                        if in_string {
                            string = Some(at);
                        }
                    }
                    _ if in_string => {}
                    '{' => open.push('}'),
                    '[' => open.push(']'),
                    '}' | ']' => {
                        open.pop();
                        string = None;
                    }
                    _ => {}
                }
            }
            Stack { open, string, in_string }
        }

        fn try_of(text: &str) -> Option<Stack> {
            let stack = Stack::of(text);
            let close: String = stack.open.iter().rev().collect();
            let ends =
                ["", "\"", "n\"", "0000\"", "000\"", "00\"", "0\"", "1", "1\"", "\"\"", "ull", "rue", "e"];
            let tails = ["", ":1", "\"a\":1", "1"];
            let fits = |end: &str, tail: &str| is_json(&format!("{text}{end}{tail}{close}"));
            ends.iter().any(|end| tails.iter().any(|tail| fits(end, tail))).then_some(stack)
        }
    }

    pub(super) fn all(text: &str) -> Vec<&str> {
        let mut plain = Vec::new();
        let mut blocks = Vec::new();
        let mut has_block = false;
        let mut at = 0;
        let mut open = 0;
        let mut kept = (0, 0);
        let mut fence: Option<(usize, bool, usize, usize)> = None;
        let end_block =
            |fence: (usize, bool, usize, usize), end: usize, blocks: &mut Vec<_>, has: &mut bool| {
                let body = text[fence.2..end].trim();
                if fence.1 && !body.is_empty() {
                    *has = true;
                    if blocks.len() == fence.3 && !body.starts_with(['{', '[']) && is_json(body) {
                        blocks.push(body);
                    }
                }
            };
        while at < text.len() {
            let c = text[at..].chars().next().unwrap();
            let into_block = fence.is_some_and(|fence| fence.1);
            match c {
                '{' | '[' => {
                    let values = if into_block { &mut blocks } else { &mut plain };
                    if let Some(end) = (at + 1..=text.len()).find(|end| is_json(&text[at..*end])) {
                        values.push(&text[at..end]);
                        at = end;
                        continue;
                    }
                    let (mut end, stack) = longest_prefix(text, at);
                    if !stack.in_string {
                        end +=
                            text[end..].len() - text[end..].trim_start_matches([' ', '\n', '\t', '\r']).len();
                    }
                    let read = text[at..end].trim_end();
                    let next = text[end..].chars().next();
                    let depth = stack.open.len();
                    let inner = read.trim_start_matches(|c: char| c == '[' || c.is_whitespace());
                    let first = stack.string.is_none() && (inner.starts_with('{') || read.ends_with(']'));
                    let structural =
                        matches!(next, Some('{' | '}' | '[' | ']' | ',' | ':' | '"')) && !stack.in_string;
                    let opened_only = read
                        .trim_end_matches('{')
                        .trim_end_matches(|c: char| c == '[' || c.is_whitespace())
                        .is_empty();
                    let began = is_marked(read);
                    let cut = next.is_none() && stack.string.is_some();
                    if began || cut || (structural && !opened_only) {
                        if open == 0 {
                            kept = (plain.len(), blocks.len());
                        }
                        open += depth;
                        at = end;
                        continue;
                    }
                    if first && next.is_some() && (read.ends_with('}') || read.ends_with(']')) {
                        let start = value_that_ends(read);
                        values.push(&text[at + start..at + read.len()]);
                    }
                    if open > 0 {
                        open += depth;
                    }
                    at = stack.string.map_or(end, |string| at + string + 1);
                    continue;
                }
                '}' | ']' => {
                    if open == 1 {
                        plain.truncate(kept.0);
                        blocks.truncate(kept.1);
                    }
                    open = open.max(1) - 1;
                }
                '"' if open > 0 => {
                    let line = text[at + 1..].split('\n').next().unwrap();
                    let mut escaped = false;
                    let close = line.chars().position(|c| {
                        let is_end = c == '"' && !escaped;
                        escaped = c == '\\' && !escaped;
                        is_end
                    });
                    if let Some(length) = close {
                        at += 1 + line.chars().take(length).map(char::len_utf8).sum::<usize>();
                    }
                }
                '`' => {
                    let ticks = text[at..].chars().take_while(|c| *c == '`').count();
                    if ticks >= 3 {
                        match fence {
                            Some(begun) if ticks >= begun.0 => {
                                end_block(begun, at, &mut blocks, &mut has_block);
                                (fence, open) = (None, 0);
                            }
                            Some(_) => {}
                            None => {
                                let label: String = text[at + ticks..]
                                    .chars()
                                    .take_while(char::is_ascii_alphanumeric)
                                    .collect();
                                let body = at + ticks + label.len();
                                fence = Some((ticks, label == "json", body, blocks.len()));
                                open = 0;
                                at = body;
                                continue;
                            }
                        }
                    }
                    at += ticks;
                    continue;
                }
                _ => {}
            }
            at += c.len_utf8();
        }
        if let Some(fence) = fence {
            end_block(fence, text.len(), &mut blocks, &mut has_block);
        }
        if has_block {
            return blocks;
        }
        let whole = text.trim();
        if plain.is_empty() && !whole.starts_with(['{', '[']) && is_json(whole) {
            plain.push(whole);
        }
        plain
    }

    /// Whether a bracket that is still open has a comma or a colon.
    fn is_marked(read: &str) -> bool {
        let mut marks = Vec::new();
        let mut in_string = false;
        let mut escaped = false;
        for c in read.chars() {
            match c {
                _ if escaped => escaped = false,
                '\\' if in_string => escaped = true,
                '"' => in_string = !in_string,
                _ if in_string => {}
                '{' | '[' => marks.push(false),
                '}' | ']' => drop(marks.pop()),
                ',' | ':' => marks.last_mut().into_iter().for_each(|mark| *mark = true),
                _ => {}
            }
        }
        marks.contains(&true)
    }

    /// Returns the start of the value at the end of a piece.
    fn value_that_ends(read: &str) -> usize {
        let is_start = |at: &usize| matches!(read.as_bytes()[*at], b'{' | b'[') && is_json(&read[*at..]);
        (0..read.len()).find(is_start).unwrap()
    }
}
