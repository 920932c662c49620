//! The table of sentences, and each production with its example.

mod properties;

use crate::grammar::{FORMS, grammar};
use crate::matcher::Matcher;
use crate::reading::{Reading, read};
use crate::slots::{Known, Scene};
use crate::token::Kind;

const EXPERIMENTS: &[&str] = &[
    "Foo",
    "Hints",
    "Math Hints",
    "Running Test",
    "Old Study",
    "C++ vs C#",
    "delete",
    "yes",
    "Tom and Jerry",
    "🚀 Launch",
    "Boost",
];

fn known() -> Known {
    Known::new(
        EXPERIMENTS.iter().map(|name| (*name).to_owned()),
        vec!["assign-prog".to_owned(), "mathstream".to_owned()],
    )
}

fn reading(message: &str) -> Reading {
    read(message, &known(), "")
}

#[test]
fn every_sentence_of_the_table_is_read_as_written() {
    let table = include_str!("../tests/fixtures/sentences.txt");
    let rows: Vec<(&str, &str)> = table
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_once(" -> "))
        .collect();
    assert!(rows.len() > 300, "{} sentences", rows.len());
    let wrong: Vec<String> = rows
        .iter()
        .filter_map(|(said, wanted)| {
            let shown = reading(said).shown();
            (shown != *wanted).then(|| format!("{said}\n  wanted {wanted}\n  read   {shown}"))
        })
        .collect();
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), rows.len(), wrong.join("\n"));
}

#[test]
fn every_production_is_well_formed_and_reads_its_example() {
    assert_eq!(grammar().forms.len(), FORMS.len(), "a pattern is malformed");
    for (index, form) in FORMS.iter().enumerate() {
        let reading = read(form.example, &known(), form.asked);
        assert!(reading.is_whole() && reading.others.is_empty(), "{}: {}", form.example, reading.shown());
        assert!(
            reading.clauses.iter().any(|clause| clause.act() == form.act),
            "{}: {}",
            form.example,
            reading.shown()
        );
        let tokens = crate::token::tokens(form.example);
        let known = known();
        let matcher = Matcher::new(Scene::new(form.example, &tokens, &known), &grammar().lexicon);
        let whole = |at: usize| {
            let ends = matcher.ways(&grammar().forms[index].1, at).into_iter();
            ends.map(|(end, _)| end).any(|end| {
                tokens[end..].iter().all(|token| token.kind == Kind::Sign || token.low == "instead")
            })
        };
        assert!(
            (0..tokens.len()).any(whole),
            "the production {index} does not read its example: {}",
            form.example
        );
    }
}
