//! The scrubber against a reference: another engine, tried at each position of the whole text.

use proptest::prelude::*;
use regex_automata::nfa::thompson::pikevm::PikeVM;
use regex_automata::{Anchored, Input};

use super::*;

fn rule(kind: PiiKind) -> Rule {
    Rule { kind, strategy: PiiStrategy::Redact }
}

/// Leftmost, first alternative first, without overlaps.
fn redacted(expression: &str, text: &str) -> String {
    let engine = PikeVM::new(expression).unwrap();
    let mut cache = engine.create_cache();
    let mut clean = String::new();
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        let input = Input::new(text).span(at..text.len()).anchored(Anchored::Yes);
        match engine.find(&mut cache, input) {
            Some(found) => {
                clean += "[REDACTED_X]";
                at = found.end();
            }
            None => {
                clean.push(first);
                at += first.len_utf8();
            }
        }
    }
    clean
}

/// What is let through for each piece, and the rest at the end.
fn in_pieces(rule: &Rule, text: &str, cuts: &[usize]) -> Vec<String> {
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (text.len() + 1)).collect();
    cuts.retain(|cut| text.is_char_boundary(*cut));
    cuts.extend([0, text.len()]);
    cuts.sort_unstable();
    let mut scrubber = Scrubber::new();
    let mut out: Vec<_> =
        cuts.windows(2).map(|cut| scrubber.push(rule, &text[cut[0]..cut[1]]).unwrap()).collect();
    out.push(scrubber.finish(rule).unwrap());
    out
}

const EXPRESSIONS: &[&str] = &[
    r"ab+c",
    r"a|ab|abc",
    r"abc|ab|a",
    r"(?-u:\b)a[ab]*c?(?-u:\b)",
    r"aa@?b{2,3}$",
    r"^a|c",
    r"(?:a@)+b|@é",
    r"[ab]{3}@[^ ]",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_cut_gives_the_redaction_of_the_whole_text(
        expression in 0..EXPRESSIONS.len(),
        text in "[abc@ é]{0,24}",
        cuts in prop::collection::vec(0_usize..64, 0..12),
    ) {
        let expression = EXPRESSIONS[expression];
        let rule = rule(PiiKind::pattern("x", expression).unwrap());
        prop_assert_eq!(in_pieces(&rule, &text, &cuts).concat(), redacted(expression, &text));
    }
}

proptest! {
    // Each case looks at 341 continuations.
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Text is held only if two continuations differ in what is let through for it.
    #[test]
    fn nothing_is_held_back_longer_than_needed(expression in 0..4_usize, text in "[abc]{0,8}") {
        let expression = EXPRESSIONS[expression];
        let rule = rule(PiiKind::pattern("x", expression).unwrap());
        let sure = Scrubber::new().push(&rule, &text).unwrap();
        let ends = continuations("abc ", 4);
        let outcomes: Vec<_> = ends.map(|end| redacted(expression, &format!("{text}{end}"))).collect();
        let common = outcomes.iter().skip(1).fold(outcomes[0].clone(), |common, outcome| {
            let same = common.chars().zip(outcome.chars()).take_while(|(a, b)| a == b);
            same.map(|(char, _)| char).collect()
        });
        prop_assert!(outcomes.iter().all(|outcome| outcome.starts_with(&sure)));
        // If only the length of a match is open, its replacement is known but not its end.
        let is_open = outcomes[0] == format!("{sure}[REDACTED_X]");
        prop_assert!(common == sure || (is_open && common == outcomes[0]), "{sure:?} {common:?}");
    }
}

proptest! {
    #[test]
    fn built_in_kinds_are_found_in_any_cut(
        words in prop::collection::vec(word(), 0..8),
        cuts in prop::collection::vec(0_usize..400, 0..24),
    ) {
        for kind in [PiiKind::email(), PiiKind::credit_card(), PiiKind::ip(), PiiKind::mac(), PiiKind::url()] {
            let join = |word: fn(&(String, &str), &str) -> String| {
                words.iter().map(|it| word(it, kind.name())).collect::<Vec<_>>().join("\n")
            };
            let text = join(|(text, _), _| text.clone());
            let clean = join(|(text, kind), wanted| match *kind == wanted {
                true => format!("[REDACTED_{}]", wanted.to_uppercase()),
                false => text.clone(),
            });
            prop_assert_eq!(in_pieces(&rule(kind.clone()), &text, &cuts).concat(), clean);
        }
    }
}

fn continuations(alphabet: &'static str, longest: usize) -> impl Iterator<Item = String> {
    let mut all = vec![String::new()];
    let mut last = all.clone();
    for _ in 0..longest {
        last =
            last.iter().flat_map(|text| alphabet.chars().map(move |char| format!("{text}{char}"))).collect();
        all.extend(last.iter().cloned());
    }
    all.into_iter()
}

/// A word, and the kind that it belongs to.
fn word() -> impl Strategy<Value = (String, &'static str)> {
    prop_oneof![
        "[a-zé]{1,8}[,.]?".prop_map(|text| (text, "")),
        "[0-9]{1,5}[a-z]".prop_map(|text| (text, "")),
        "[a-z]{1,6}[.+]?[a-z0-9]{1,6}@[a-v]{1,8}\\.(org|co\\.uk)".prop_map(|text| (text, "email")),
        "[3-6][0-9]{11,17}".prop_map(|digits| (with_luhn_digit(&digits), "credit_card")),
        any::<std::net::Ipv4Addr>().prop_map(|ip| (ip.to_string(), "ip")),
        any::<std::net::Ipv6Addr>().prop_map(|ip| (ip.to_string(), "ip")),
        any::<[u8; 6]>().prop_map(|mac| (mac.map(|byte| format!("{byte:02x}")).join("-"), "mac")),
        "https?://[a-z]{1,8}\\.org/[a-z0-9/?=&]{0,12}[a-z]".prop_map(|text| (text, "url")),
    ]
}

/// By the definition: doubling every second digit from the right, the sum of all digits is a multiple of 10.
fn with_luhn_digit(digits: &str) -> String {
    (0..10).map(|last| format!("{digits}{last}")).find(|number| luhn_sum(number).is_multiple_of(10)).unwrap()
}

fn luhn_sum(number: &str) -> u32 {
    let value = |(place, char): (usize, char)| {
        let digit = char.to_digit(10).unwrap();
        if place % 2 == 0 { digit } else { digit * 2 / 10 + digit * 2 % 10 }
    };
    number.chars().rev().enumerate().map(value).sum()
}

#[test]
fn well_known_examples() {
    let cases = [
        (PiiKind::credit_card(), "4111 1111 1111 1111.", "[REDACTED_CREDIT_CARD]."),
        (PiiKind::credit_card(), "4111 1111 1111 1112", "4111 1111 1111 1112"),
        (PiiKind::credit_card(), "no 12 4111-1111-1111-1111 7", "no 12 [REDACTED_CREDIT_CARD] 7"),
        (
            PiiKind::ip(),
            "at 10.0.0.1, ::1 and fe80::1.",
            "at [REDACTED_IP], [REDACTED_IP] and [REDACTED_IP].",
        ),
        (PiiKind::ip(), "at 12:30:45 in std::fmt, 300.1.1.1", "at 12:30:45 in std::fmt, 300.1.1.1"),
        (PiiKind::email(), "<ada@b.org>, x@y", "<[REDACTED_EMAIL]>, x@y"),
        (PiiKind::url(), "see www.b.org/a.", "see [REDACTED_URL]."),
        (PiiKind::mac(), "00:1A:2b:3c:4d:5e 001a.2b3c.4d5e", "[REDACTED_MAC] [REDACTED_MAC]"),
    ];
    for (kind, text, clean) in cases {
        assert_eq!(rule(kind).clean_text(text).unwrap(), clean);
    }
}

#[test]
fn prose_is_let_through_word_by_word() {
    let rule = rule(PiiKind::email());
    let mut scrubber = Scrubber::new();
    let seen: Vec<_> =
        ["Hel", "lo ", "ada", "@b.o", "rg x", " "].map(|piece| scrubber.push(&rule, piece).unwrap()).into();
    assert_eq!(seen, ["", "Hello ", "", "", "[REDACTED_EMAIL] ", "x "]);
}

#[test]
fn strategies_replace_or_refuse() {
    let with = |kind: PiiKind, strategy, text: &str| Rule { kind, strategy }.clean_text(text);
    let mask = |kind, text: &str| with(kind, PiiStrategy::Mask, text).unwrap();
    assert_eq!(mask(PiiKind::credit_card(), "4111 1111 1111 1111"), "**** **** **** 1111");
    assert_eq!(mask(PiiKind::email(), "ada@love.org"), "ada@****.org");
    assert_eq!(mask(PiiKind::ip(), "10.0.0.1"), "********");

    let hash =
        |salt: &str| with(PiiKind::email(), PiiStrategy::Hash { salt: salt.into() }, "a@b.org").unwrap();
    assert_eq!(hash("x"), hash("x"));
    assert_ne!(hash("x"), hash("y"));

    let error = with(PiiKind::email(), PiiStrategy::Block, "mail a@b.org").unwrap_err();
    assert_eq!(error.code().as_str(), "E_LLM_PII");
    assert!(!error.to_string().contains("a@b.org"));
}

#[test]
fn expressions_that_cannot_be_used_say_why() {
    for expression in ["a(", "a*", r"\bword"] {
        assert_eq!(PiiKind::pattern("x", expression).unwrap_err().code().as_str(), "E_LLM_CONFIG");
    }
}

#[test]
fn a_function_sees_each_text_whole() {
    let find = |text: &str| text.match_indices("secret").map(|(at, found)| at..at + found.len()).collect();
    let rule = rule(PiiKind::function("word", find));
    assert_eq!(
        in_pieces(&rule, "a secret, secret", &[4, 12]),
        ["", "", "", "a [REDACTED_WORD], [REDACTED_WORD]"]
    );
}
