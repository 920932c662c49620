//! A split of students as a bar chart, with a mark at the expected number of each condition.
//!
//! Where no bars can be drawn (a pipe, a file) the numbers are printed alone, unless the reply contains them.

use unicode_width::UnicodeWidthStr;
use upgrade_agent::agent::Turn;
use upgrade_agent::balance::{BalanceReport, ConditionCount, Verdict};

use super::escape::escape_line;
use super::screen::Screen;
use super::wrap::cut;

/// The maximum and minimum width of a bar; with less room there is none.
const BAR: usize = 40;
const FEWEST: usize = 8;
/// The assumed width of a terminal that does not report one.
const WIDTH: usize = 80;

/// The text below a reply about a split.
pub(super) fn below(turn: &Turn, screen: Screen) -> Option<String> {
    let report = turn.balance.as_deref().filter(|report| report.draws() > 0)?;
    if screen.is_watched() {
        return Some(chart(report, screen.width().unwrap_or(WIDTH), screen.unicode));
    }
    let is_told = turn.reply.contains(&report.in_words());
    (!is_told).then(|| plain(report))
}

fn plain(report: &BalanceReport) -> String {
    let line = |one: &ConditionCount| format!("{}: {}", escape_line(&one.code), figures(one, report));
    report.conditions.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn chart(report: &BalanceReport, width: usize, unicode: bool) -> String {
    let code = |one: &ConditionCount| cut(&escape_line(&one.code), width / 3);
    let rows: Vec<(String, String, &ConditionCount)> =
        report.conditions.iter().map(|one| (code(one), figures(one, report), one)).collect();
    let widest = |part: fn(&(String, String, &ConditionCount)) -> usize| rows.iter().map(part).max();
    let labels = widest(|row| row.0.width()).unwrap_or(0);
    let numbers = widest(|row| row.1.width()).unwrap_or(0);
    // One column stays free, because some terminals would start a new line.
    let room = width.saturating_sub(labels + numbers + 3).min(BAR);
    let most = report.conditions.iter().map(|one| one.expected.max(one.observed as f64)).fold(0.0, f64::max);
    let line = |(code, figures, one): &(String, String, &ConditionCount)| {
        let gap = " ".repeat(labels - code.width());
        match room {
            0..FEWEST => cut(&format!("{code}{gap} {figures}"), width.saturating_sub(1)),
            _ => format!("{code}{gap} {} {figures}", bar(one, most, room, unicode)),
        }
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// An adaptive experiment has no expected numbers.
fn figures(one: &ConditionCount, report: &BalanceReport) -> String {
    match report.verdict {
        Verdict::Adaptive => one.observed.to_string(),
        _ => format!("{} (expected {:.1})", one.observed, one.expected),
    }
}

/// Filled up to the observed number, with a mark in the column of the expected one.
fn bar(one: &ConditionCount, most: f64, room: usize, unicode: bool) -> String {
    // A share of a few columns, so the conversion loses nothing visible.
    let columns = |count: f64| if most > 0.0 { (count / most * room as f64).round() as usize } else { 0 };
    let full = columns(one.observed as f64);
    let mark = columns(one.expected).checked_sub(1);
    let (on, off, line) = if unicode { ('█', '░', '│') } else { ('#', '.', '|') };
    let cell = |column| match column {
        _ if Some(column) == mark => line,
        _ if column < full => on,
        _ => off,
    };
    (0..room).map(cell).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> BalanceReport {
        BalanceReport::of([("control", 50.0, 40), ("new hint", 50.0, 60)])
    }

    #[test]
    fn bars_show_the_counts_and_mark_the_expected_numbers() {
        let drawn = chart(&report(), 48, false);
        assert_eq!(
            drawn,
            "control  #############..|... 40 (expected 50.0)\nnew hint ###############|### 60 (expected 50.0)"
        );
        assert!(chart(&report(), 80, true).lines().all(|line| line.width() < 80 && line.contains('█')));
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        for width in 1..60 {
            let drawn = chart(&report(), width, true);
            assert!(drawn.lines().all(|line| line.width() <= width), "{width}: {drawn}");
        }
        assert_eq!(chart(&report(), 32, false), "control  40 (expected 50.0)\nnew hint 60 (expected 50.0)");
    }

    #[test]
    fn bars_without_an_expected_number_have_no_mark() {
        let odd = BalanceReport::of([("a", 100.0, 10), ("b\u{1b}", 0.0, 0)]);
        assert!(chart(&odd, 60, false).contains("b␛ ......"), "{}", chart(&odd, 60, false));
        let adaptive = report().adaptive();
        assert!(!chart(&adaptive, 60, false).contains(['|', '(']), "{}", chart(&adaptive, 60, false));
        assert_eq!(plain(&adaptive), "control: 40\nnew hint: 60");
        assert_eq!(plain(&report()), "control: 40 (expected 50.0)\nnew hint: 60 (expected 50.0)");
    }
}
