//! The table of sentences, and each production with its example.

mod properties;

use crate::grammar::{FORMS, grammar};
use crate::matcher::Matcher;
use crate::reading::{Reading, read};
use crate::slots::{Known, Scene};
use crate::token::Kind;
use crate::{nearest, speech};

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

#[test]
fn a_sentence_with_two_complete_readings_is_asked_about() {
    let known = Known::new(["Foo".to_owned(), "Foo experiment".to_owned()], Vec::new());
    let reading = read("start Foo experiment", &known, "");
    assert_eq!(reading.others.len(), 1, "{}", reading.shown());
    let words = speech::not_understood(&reading, "start Foo experiment", &[]).unwrap();
    assert!(words.contains("can mean two things"), "{words}");
    // Quotes settle it.
    assert!(read("start \"Foo experiment\"", &known, "").others.is_empty());
}

#[test]
fn the_answer_to_a_part_quotes_it_and_names_the_nearest_forms() {
    let message = "start Foo on 2027-01-01";
    let reading = reading(message);
    let words = speech::not_understood(&reading, message, &nearest::forms(&reading, message)).unwrap();
    for part in ["'on 2027-01-01'", "\"start Foo\" (set status)", "I started nothing", "\"start Hints\""] {
        assert!(words.contains(part), "{words}");
    }
}

#[test]
fn every_form_is_in_the_help_and_in_the_table() {
    let (help, table) = (speech::help(), speech::table());
    for form in FORMS {
        assert!(table.contains(&form.example.replace('|', "\\|")), "{}", form.example);
        assert!(!form.asked.is_empty() || help.contains(form.example), "{}", form.example);
    }
}
