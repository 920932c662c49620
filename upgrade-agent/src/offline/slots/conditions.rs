//! Conditions with their weights: "50/50", "control 30, variant 70", "30% control and the rest variant",
//! "evenly".

use super::super::text::{Text, Word, folded, is_slip_of};

/// The code of a condition and its weight in percent.
pub(in super::super) type Share = (String, f64);

enum Item {
    Number(f64),
    Code(String),
    Rest,
}

/// The conditions of a message, as far as it has them: of the `known` codes, or of the `current` ones of an
/// experiment if only shares are given.
pub(in super::super) fn shares(text: &Text, known: &[String], current: &[String]) -> Option<Vec<Share>> {
    let items = items(text, known);
    let codes: Vec<String> = unique(items.iter().filter_map(|item| match item {
        Item::Code(code) => Some(code.clone()),
        _ => None,
    }));
    let paired = paired(&items);
    if paired.len() >= 2
        || (paired.len() == 1 && codes.len() == 1 && paired.iter().all(|(_, weight)| *weight == 100.0))
    {
        return Some(paired);
    }
    if let (1, [first, second]) = (paired.len(), codes.as_slice()) {
        // "40% control, the rest variant"
        let (given, weight) = &paired[0];
        let rest = 100.0 - weight;
        let other = if given == first { second } else { first };
        return Some(vec![(given.clone(), *weight), (other.clone(), rest)]);
    }
    let ratio = text.words.iter().find_map(|word| ratio(&word.raw)).or_else(|| bare_numbers(&items));
    let of = match (codes.len() >= 2, current.is_empty()) {
        (true, _) => &codes,
        (false, true) => known,
        (false, false) => current,
    };
    if let ([(given, weight)], [first, second], None) = (paired.as_slice(), of, &ratio) {
        // "Two thirds control": of two conditions, the other gets the rest.
        let other = if given == first { second } else { first };
        return Some(vec![(given.clone(), *weight), (other.clone(), to_cents(100.0 - weight))]);
    }
    match ratio {
        Some(ratio) if ratio.len() == of.len() => Some(of.iter().cloned().zip(ratio).collect()),
        Some(_) => None,
        None if is_even(text) && of.len() >= 2 => Some(evenly(of)),
        None if codes.len() >= 2 => Some(evenly(&codes)),
        None => None,
    }
}

/// A name in the position of a condition, next to its weight, that is none of the `known` codes: "red 50,
/// blue 50". The weight does not belong to another condition.
pub(in super::super) fn unknown_condition(text: &Text, known: &[String]) -> Option<String> {
    let weights: Vec<usize> = (0..text.words.len())
        .filter(|at| !text.words[*at].quoted && number(&text.words[*at].raw).is_some())
        .collect();
    let sum: f64 = weights.iter().filter_map(|at| number(&text.words[*at].raw)).sum();
    let is_sign = |at: usize| text.words[at].raw.ends_with('%');
    if weights.len() < 2 || (sum - 100.0).abs() > 0.01 {
        return None;
    }
    let code = |word: &Word| matches!(item(&word.raw, word, known), Some(Item::Code(_) | Item::Rest));
    let beside = |at: usize| {
        let after = at
            + 1
            + text.words[at + 1..].iter().take_while(|word| word.is(&["of", "for", "to", "on"])).count();
        let before = at.checked_sub(1).and_then(|at| text.words.get(at));
        [before, text.words.get(after).filter(|word| !word.new_clause)]
    };
    weights.into_iter().find_map(|at| {
        let near: Vec<&Word> = beside(at).into_iter().flatten().collect();
        if near.iter().any(|word| code(word)) {
            return None;
        }
        let named = |word: &&&Word| {
            let condition = word.is(&["treatment", "variation", "variant", "experimental", "intervention"]);
            let name = condition || super::is_free(word) && (is_sign(at) || !word.is_capital());
            name && !word.quoted && word.raw.chars().any(char::is_alphabetic)
        };
        near.iter().find(named).map(|word| word.raw.clone())
    })
}

/// `50/50`, `70:30`, `20/30/50`.
pub(in super::super) fn ratio(raw: &str) -> Option<Vec<f64>> {
    let parts: Vec<f64> = raw
        .split(['/', ':', '-'])
        .map(|part| part.trim_end_matches('%').parse().ok())
        .collect::<Option<_>>()?;
    let positive = parts.iter().all(|part: &f64| part.is_finite() && *part >= 0.0 && *part <= 100.0);
    (parts.len() >= 2 && positive && parts.iter().sum::<f64>() > 0.0).then_some(parts)
}

/// Equal weights with two decimals; the first gets the rest.
pub(in super::super) fn evenly(codes: &[String]) -> Vec<Share> {
    let each = (10_000.0 / codes.len() as f64).floor() / 100.0;
    let first = ((100.0 - each * (codes.len() - 1) as f64) * 100.0).round() / 100.0;
    let weight = |at: usize| if at == 0 { first } else { each };
    codes.iter().enumerate().map(|(at, code)| (code.clone(), weight(at))).collect()
}

fn is_even(text: &Text) -> bool {
    text.has(&[
        "even",
        "evenly",
        "equal",
        "equally",
        "half",
        "halves",
        "fifty-fifty",
        "same",
        "uniform",
        "uniformly",
        "balanced",
    ])
}

fn items(text: &Text, known: &[String]) -> Vec<Item> {
    let mut items = Vec::new();
    for (at, word) in text.words.iter().enumerate().filter(|(_, word)| ratio(&word.raw).is_none()) {
        items.extend(fraction(text, at).map(Item::Number));
        let parts: Vec<&str> = word.raw.split(['=', ':']).filter(|part| !part.is_empty()).collect();
        items.extend(parts.into_iter().filter_map(|part| item(part, word, known)));
    }
    items
}

/// "Two thirds", "a quarter", in percent.
fn fraction(text: &Text, at: usize) -> Option<f64> {
    let parts = [("third", 3.0), ("quarter", 4.0), ("fifth", 5.0), ("tenth", 10.0)];
    let word = text.words.get(at)?.low.trim_end_matches('s');
    let (_, whole) = parts.into_iter().find(|(name, _)| *name == word)?;
    let before = text.words.get(at.checked_sub(1)?)?;
    let count = [("a", 1.0), ("one", 1.0), ("two", 2.0), ("three", 3.0), ("four", 4.0)];
    let (_, count) = count.into_iter().find(|(name, _)| before.low == *name)?;
    Some(to_cents(100.0 * count / whole)).filter(|share| *share <= 100.0)
}

fn to_cents(share: f64) -> f64 {
    (share * 100.0).round() / 100.0
}

fn item(part: &str, word: &Word, known: &[String]) -> Option<Item> {
    if let Some(number) = number(part) {
        return Some(Item::Number(number));
    }
    if word.is(&["rest", "remainder", "remaining"]) {
        return Some(Item::Rest);
    }
    let written = folded(part);
    let exact = known.iter().find(|code| folded(code) == written);
    let last_part = || {
        // `question-hint-tutorbot` is often called `tutorbot`.
        let mut ending = known.iter().filter(|code| folded(code).split(' ').any(|piece| piece == written));
        ending.next().filter(|_| ending.next().is_none())
    };
    let near = || known.iter().find(|code| is_slip_of(&written, &folded(code)));
    exact.or_else(last_part).or_else(near).map(|code| Item::Code(code.clone()))
}

fn number(part: &str) -> Option<f64> {
    let number: f64 = part.trim_end_matches('%').parse().ok()?;
    let digits = part.starts_with(|sign: char| sign.is_ascii_digit());
    (digits && (0.0..=100.0).contains(&number)).then_some(number)
}

/// Codes with the adjacent numbers. Numbers come first in the whole message or nowhere.
fn paired(items: &[Item]) -> Vec<Share> {
    let leading = items.iter().find(|item| !matches!(item, Item::Rest));
    let number_first = matches!(leading, Some(Item::Number(_)));
    let mut shares: Vec<Share> = Vec::new();
    for pair in items.windows(2) {
        let share = match pair {
            [Item::Number(number), Item::Code(code)] if number_first => Some((code, *number)),
            [Item::Code(code), Item::Number(number)] if !number_first => Some((code, *number)),
            _ => None,
        };
        if let Some((code, number)) = share.filter(|(code, _)| shares.iter().all(|(known, _)| known != *code))
        {
            shares.push((code.clone(), number));
        }
    }
    shares
}

/// "70 and 30", if the numbers can be weights together.
fn bare_numbers(items: &[Item]) -> Option<Vec<f64>> {
    let numbers: Vec<f64> = items
        .iter()
        .filter_map(|item| match item {
            Item::Number(number) => Some(*number),
            _ => None,
        })
        .collect();
    (numbers.len() >= 2 && (numbers.iter().sum::<f64>() - 100.0).abs() < 0.01).then_some(numbers)
}

fn unique(codes: impl Iterator<Item = String>) -> Vec<String> {
    let mut all = Vec::new();
    for code in codes {
        if !all.contains(&code) {
            all.push(code);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_weighted_name_that_is_no_known_condition_is_found() {
        let known = ["control".to_owned(), "variant".to_owned()];
        let of = |message| unknown_condition(&Text::read(message), &known);
        for (message, wanted) in [
            ("with red 50 and blue 50", "red"),
            ("control (30%) and treatment (70%)", "treatment"),
            ("30% control and 70% treatment", "treatment"),
            ("Red 50%, Blue 50%", "Red"),
        ] {
            assert_eq!(of(message).as_deref(), Some(wanted), "{message}");
        }
        for message in [
            "control 30 and variant 70",
            "30% control and the rest variant",
            "create Unit 2 with control 50 and variant 50",
            "50/50",
            "70 and 30",
            "40% of control, 60% of variant",
            "set the weights of Hints to 70 and 30",
            "give contrl 40% and variant 60%",
        ] {
            assert_eq!(of(message), None, "{message}");
        }
    }

    fn of(message: &str) -> Option<Vec<(String, f64)>> {
        let known = ["control".to_owned(), "variant".to_owned()];
        shares(&Text::read(message), &known, &known)
    }

    fn assert_shares(message: &str, control: f64, variant: f64) {
        let mut found = of(message).unwrap_or_else(|| panic!("{message}: nothing found"));
        found.sort_by(|one, other| one.0.cmp(&other.0));
        assert_eq!(found, [("control".to_owned(), control), ("variant".to_owned(), variant)], "{message}");
    }

    #[test]
    fn shares_are_read_in_many_notations() {
        assert_shares("50/50", 50.0, 50.0);
        assert_shares("make it 70:30", 70.0, 30.0);
        assert_shares("control 30 variant 70", 30.0, 70.0);
        assert_shares("control: 30%, variant: 70%", 30.0, 70.0);
        assert_shares("control=25 variant=75", 25.0, 75.0);
        assert_shares("30% control and 70% variant", 30.0, 70.0);
        assert_shares("variant gets 80 and control 20", 20.0, 80.0);
        assert_shares("80 percent for variant, 20 percent for control", 20.0, 80.0);
        assert_shares("40% control, the rest variant", 40.0, 60.0);
        assert_shares("split control and variant evenly", 50.0, 50.0);
        assert_shares("contrl and varient, half each", 50.0, 50.0);
        assert_shares("70 and 30 please", 70.0, 30.0);
        assert_shares("two thirds control", 66.67, 33.33);
        assert_shares("a quarter for variant", 75.0, 25.0);
        assert_shares("40% variant", 60.0, 40.0);
    }

    #[test]
    fn messages_without_shares_give_none() {
        for message in ["", "grade 7", "the third condition", "what is control", "10/20/70", "yes", "1e400/1"]
        {
            assert_eq!(of(message), None, "{message}");
        }
    }

    #[test]
    fn three_equal_shares_sum_to_100() {
        let codes = ["a".to_owned(), "b".to_owned(), "c".to_owned()];
        let sum: f64 = evenly(&codes).iter().map(|(_, weight)| weight).sum();
        assert!((sum - 100.0).abs() < 1e-9);
    }
}
