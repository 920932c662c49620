//! The rule of the benchmark, beside its original.

use gaia_agent::score::is_right;

/// Pairs whose verdict comes from the rule in Python: `tests/fixtures/score_pairs.py` prints this table.
const PAIRS: &str = include_str!("../fixtures/score_pairs.tsv");

#[test]
fn verdicts_are_those_of_the_rule_in_python() {
    let mut seen = (0, 0);
    for line in PAIRS.lines() {
        let [verdict, answer, truth] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let read = |json: &str| serde_json::from_str::<String>(json).unwrap();
        let (answer, truth) = (read(answer), read(truth));
        assert_eq!(is_right(&answer, &truth), verdict == "right", "{answer:?} for {truth:?}");
        match verdict {
            "right" => seen.0 += 1,
            _ => seen.1 += 1,
        }
    }
    assert!(seen.0 > 60 && seen.1 > 30, "{seen:?}");
}
