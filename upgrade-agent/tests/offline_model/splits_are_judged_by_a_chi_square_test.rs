//! Splits: the statistic, its p-value, the verdict, and the words of the report.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use proptest::prelude::*;
use upgrade_agent::balance::{BalanceReport, Verdict};

fn report(given: &[(f64, u64)]) -> BalanceReport {
    let codes = ["a", "b", "c", "d", "e", "f"];
    BalanceReport::of(given.iter().zip(codes).map(|((weight, count), code)| (code, *weight, *count)))
}

/// Statistics and p-values from tables of the chi-square distribution.
#[test]
fn the_statistic_and_the_p_value_equal_those_of_the_tables() {
    for (given, statistic, p) in [
        (&[(50.0, 50), (50.0, 50)][..], 0.0, 1.0),
        (&[(50.0, 60), (50.0, 40)], 4.0, 0.045_500),
        (&[(25.0, 10), (75.0, 90)], 12.0, 0.000_532),
        (&[(20.0, 25), (30.0, 30), (50.0, 45)], 1.75, 0.416_862),
        (&[(25.0, 30), (25.0, 20), (25.0, 24), (25.0, 26)], 2.08, 0.555_969),
    ] {
        let report = report(given);
        assert!((report.chi_square.unwrap() - statistic).abs() < 1e-9, "{report:?}");
        assert!((report.p_value.unwrap() - p).abs() < 1e-5, "{report:?}");
    }
}

#[test]
fn a_verdict_needs_two_conditions_and_enough_students() {
    assert_eq!(report(&[(50.0, 48), (50.0, 52)]).verdict, Verdict::Balanced);
    assert_eq!(report(&[(50.0, 80), (50.0, 20)]).verdict, Verdict::Unbalanced);
    assert_eq!(report(&[(50.0, 4), (50.0, 5)]).verdict, Verdict::TooFew);
    assert_eq!(report(&[(100.0, 50)]).verdict, Verdict::NothingToCompare);
    assert_eq!(report(&[(50.0, 0), (50.0, 0)]).verdict, Verdict::NothingToCompare);
    assert_eq!(report(&[]).verdict, Verdict::NothingToCompare);
    assert_eq!(report(&[(100.0, 50), (0.0, 0)]).verdict, Verdict::NothingToCompare);
    assert_eq!(
        report(&[(100.0, 50), (0.0, 1)]).verdict,
        Verdict::Unbalanced,
        "a condition with the weight 0 is never drawn"
    );
}

#[test]
fn a_report_has_counts_shares_and_expected_numbers() {
    let told = report(&[(60.0, 55), (40.0, 45)]).leaving_out(7).in_words();
    assert_eq!(
        told,
        "- a: 55 (55.0%), expected 60.0 (60.0%)\n- b: 45 (45.0%), expected 40.0 (40.0%)\n- no condition: 7\n\
         The split is as the weights say (chi-square 1.04, 1 degree of freedom, p = 0.307)."
    );
}

proptest! {
    #[test]
    fn counts_add_up_and_the_chance_is_one(given in prop::collection::vec((0.0..100.0_f64, 0_u64..1000), 0..6)) {
        let report = report(&given);
        prop_assert_eq!(report.users, given.iter().map(|(_, count)| count).sum::<u64>());
        if given.iter().any(|(weight, _)| *weight > 0.0) {
            let expected: f64 = report.conditions.iter().map(|one| one.expected).sum();
            prop_assert!((expected - report.users as f64).abs() < 1e-6);
        }
        if let Some(p) = report.p_value {
            prop_assert!((0.0..=1.0).contains(&p), "{}", p);
            prop_assert!(report.chi_square.unwrap() >= 0.0);
        }
        let told: BalanceReport = serde_json::from_str(&serde_json::to_string(&report).unwrap()).unwrap();
        prop_assert_eq!(told, report);
    }
}

#[test]
fn groups_are_counted_if_groups_draw() {
    let few = report(&[(50.0, 1), (50.0, 0)]).of_groups(30);
    assert_eq!((few.users, few.groups, few.draws(), few.verdict), (30, Some(1), 1, Verdict::TooFew));
    assert!(few.in_words().starts_with("- a: 1 (100.0%), expected 0.5 (50.0%)\n"), "{}", few.in_words());
}

#[test]
fn an_adaptive_draw_is_counted_and_not_judged() {
    let report = report(&[(50.0, 90), (50.0, 10)]).adaptive();
    assert_eq!((report.verdict, report.p_value), (Verdict::Adaptive, None));
    let told = report.in_words();
    assert!(told.starts_with("- a: 90 (90.0%)\n- b: 10 (10.0%)\nThe draw adapts"), "{told}");
    assert_eq!(self::report(&[(50.0, 0), (50.0, 0)]).adaptive().verdict, Verdict::NothingToCompare);
}
