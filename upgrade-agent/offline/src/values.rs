//! The values of slots: numbers, weights, statuses and dates as people write them.

use crate::token::{Kind, Token};

/// A share of a condition.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Share {
    /// `None` for the conditions in their order: "70/30".
    pub(crate) code: Option<String>,
    /// `None` for the rest.
    pub(crate) share: Option<f64>,
}

/// Weights as they are said.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Weights {
    /// The same weight for all conditions, or for these.
    Equal(Vec<String>),
    /// Percents.
    Shares(Vec<Share>),
    /// Parts of a whole: "1:2", "twice as much variant as control".
    Ratio(Vec<Share>),
}

/// The most conditions of one list of weights.
const MOST: usize = 30;

const NUMBERS: &str = "one=1 two=2 three=3 four=4 five=5 six=6 seven=7 eight=8 nine=9 ten=10 twelve=12 \
    fifteen=15 twenty=20 thirty=30 forty=40 fifty=50 sixty=60 seventy=70 eighty=80 ninety=90";

/// The value of a word in a list of pairs, "word=value".
pub(crate) fn lookup(pairs: &'static str, word: &str) -> Option<&'static str> {
    pairs
        .split_whitespace()
        .filter_map(|pair| pair.split_once('='))
        .find(|(known, _)| *known == word)
        .map(|(_, value)| value)
}

/// A whole number, in digits or words, and the number of its tokens.
pub(crate) fn number(tokens: &[Token<'_>]) -> Option<(i64, usize)> {
    let low = |at: usize| tokens.get(at).filter(|token| token.is_word()).map(|token| token.low.as_str());
    let first = low(0)?;
    if let Ok(number) = first.parse() {
        return Some((number, 1));
    }
    let scale = |at: usize| match low(at) {
        Some("hundred") => Some(100),
        Some("thousand") => Some(1_000),
        Some("million") => Some(1_000_000),
        _ => None,
    };
    let unit = lookup(NUMBERS, first).and_then(|number| number.parse().ok());
    match (unit.or_else(|| (first == "a").then_some(1)), scale(1)) {
        (Some(unit), Some(scale)) => Some((unit * scale, 2)),
        _ => unit.map(|unit| (unit, 1)),
    }
}

/// A share in percent: "70", "70%", "70 %".
fn percent(tokens: &[Token<'_>]) -> Option<(f64, usize)> {
    let token = tokens.first().filter(|token| token.is_word())?;
    let value = parse(token.low.strip_suffix('%').unwrap_or(&token.low))?;
    let sign = tokens.get(1).is_some_and(|token| matches!(token.low.as_str(), "%" | "percent"));
    Some((value, 1 + usize::from(sign)))
}

fn parse(text: &str) -> Option<f64> {
    let digits = text.chars().all(|c| c.is_ascii_digit() || c == '.')
        && text.starts_with(|c: char| c.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}

fn fraction(tokens: &[Token<'_>]) -> Option<(f64, usize)> {
    let low = |at: usize| tokens.get(at).map(|token| token.low.as_str()).unwrap_or_default();
    match (low(0), low(1)) {
        ("half", _) => Some((50.0, 1)),
        ("two", "thirds") => Some((200.0 / 3.0, 2)),
        ("a" | "one", "third") => Some((100.0 / 3.0, 2)),
        ("a" | "one", "quarter") => Some((25.0, 2)),
        ("three", "quarters") => Some((75.0, 2)),
        _ => None,
    }
}

fn code<'t>(token: Option<&'t Token<'_>>) -> Option<&'t str> {
    const NO_CODES: &str = "the rest of and for with at in to is a an users students half instead please on per user \
        student learners pupils now then evenly equally set make give start but or by as class it \
        target site tags tag description";
    let token = token?;
    let is_code = token.is_word()
        && token.low.starts_with(|c: char| c.is_alphabetic())
        && !token.low.contains('/')
        && NO_CODES.split_whitespace().all(|word| word != token.low);
    (is_code || token.kind == Kind::Quoted).then_some(token.text)
}

/// Weights and the number of their tokens.
pub(crate) fn weights(tokens: &[Token<'_>]) -> Option<(Weights, usize)> {
    ratio(tokens).or_else(|| multiple(tokens)).or_else(|| equal(tokens)).or_else(|| shares(tokens))
}

/// "70/30", "70% / 30%", "1:2", "2 to 1".
fn ratio(tokens: &[Token<'_>]) -> Option<(Weights, usize)> {
    let unnamed =
        |shares: Vec<f64>| shares.into_iter().map(|share| Share { code: None, share: Some(share) }).collect();
    let first = tokens.first().filter(|token| token.is_word())?;
    for (mark, relative) in [('/', false), (':', true)] {
        let parts: Option<Vec<f64>> =
            first.low.split(mark).map(|part| parse(part.strip_suffix('%').unwrap_or(part))).collect();
        if let Some(parts) = parts.filter(|parts| parts.len() > 1) {
            let sum: f64 = parts.iter().sum();
            let relative = relative && (sum - 100.0).abs() > 0.01;
            return Some((
                if relative { Weights::Ratio(unnamed(parts)) } else { Weights::Shares(unnamed(parts)) },
                1,
            ));
        }
    }
    let (mut all, mut at) = (Vec::new(), 0);
    let mut relative = false;
    while let Some((share, used)) = percent(&tokens[at..]).filter(|_| all.len() < MOST) {
        all.push(share);
        at += used;
        match tokens.get(at).map(|token| token.low.as_str()) {
            Some("/") => at += 1,
            Some("to") => (relative, at) = (true, at + 1),
            _ => break,
        }
    }
    let ended = at > 0 && tokens.get(at - 1).is_some_and(|token| token.low != "/" && token.low != "to");
    let sum: f64 = all.iter().sum();
    let shares = unnamed(all);
    let several = shares.len() > 1 && ended;
    several.then_some((
        if relative && (sum - 100.0).abs() > 0.01 { Weights::Ratio(shares) } else { Weights::Shares(shares) },
        at,
    ))
}

/// "twice as much variant as control".
fn multiple(tokens: &[Token<'_>]) -> Option<(Weights, usize)> {
    let low = |at: usize| tokens.get(at).map(|token| token.low.as_str()).unwrap_or_default();
    let (times, at) = match (low(0), low(1)) {
        ("twice", _) => (2.0, 1),
        (_, "times") => (number(tokens)?.0 as f64, 2),
        _ => return None,
    };
    let shape = low(at) == "as" && ["much", "many", "often"].contains(&low(at + 1)) && low(at + 3) == "as";
    let named =
        |at: usize, share| Some(Share { code: Some(code(tokens.get(at))?.to_owned()), share: Some(share) });
    if !shape {
        return None;
    }
    Some((Weights::Ratio(vec![named(at + 2, times)?, named(at + 4, 1.0)?]), at + 5))
}

/// "evenly", "control and variant equally", "control, variant, equally".
fn equal(tokens: &[Token<'_>]) -> Option<(Weights, usize)> {
    let low = |at: usize| tokens.get(at).map(|token| token.low.as_str()).unwrap_or_default();
    let says = |at: usize| match (low(at), low(at + 1), low(at + 2)) {
        ("evenly" | "equally" | "equal", "split" | "weights", _) => Some(2),
        ("evenly" | "equally" | "equal", ..) => Some(1),
        ("the", "same", "weight") => Some(3),
        ("same", "weight", _) => Some(2),
        _ => None,
    };
    if let Some(used) = says(0) {
        return Some((Weights::Equal(Vec::new()), used));
    }
    if low(0) == "both" {
        let at = 1 + usize::from(low(1) == ",");
        return says(at).map(|used| (Weights::Equal(Vec::new()), at + used));
    }
    let (mut codes, mut at) = (Vec::new(), 0);
    while let Some(code) = code(tokens.get(at)).filter(|_| codes.len() < MOST) {
        codes.push(code.to_owned());
        at += 1;
        at += usize::from(low(at) == ",");
        at += usize::from(low(at) == "and");
        if let Some(used) = says(at).filter(|_| codes.len() > 1) {
            return Some((Weights::Equal(codes), at + used));
        }
        if low(at - 1) != "," && low(at - 1) != "and" {
            break;
        }
    }
    None
}

/// "control 70, variant 30", "70% control and the rest variant", "half control, half variant".
fn shares(tokens: &[Token<'_>]) -> Option<(Weights, usize)> {
    let (mut all, mut at, mut end) = (Vec::new(), 0, 0);
    while let Some((share, used)) = share(&tokens[at..]).filter(|_| all.len() < MOST) {
        all.push(share);
        at += used;
        end = at;
        let low = |at: usize| tokens.get(at).map(|token| token.low.as_str()).unwrap_or_default();
        let comma = usize::from(matches!(low(at), "," | "/" | ";"));
        let and = usize::from(low(at + comma) == "and");
        if comma + and == 0 {
            break;
        }
        at += comma + and;
    }
    // One name with a number is no weight unless it says so: "seed 7".
    let is_weight = |text: &str| {
        text.ends_with('%') || ["percent", "half", "third", "thirds", "quarter", "quarters"].contains(&text)
    };
    let plain = all.len() == 1 && !tokens[..end].iter().any(|token| is_weight(&token.low));
    let any = all.iter().any(|share: &Share| share.share.is_some());
    (any && !plain).then_some((Weights::Shares(all), end))
}

fn share(tokens: &[Token<'_>]) -> Option<(Share, usize)> {
    let low = |at: usize| tokens.get(at).map(|token| token.low.as_str()).unwrap_or_default();
    let named = |code: &str, share: Option<f64>| Share { code: Some(code.to_owned()), share };
    if let Some((share, used)) = fraction(tokens).or_else(|| percent(tokens)) {
        let of = usize::from(matches!(low(used), "of" | "for" | "to" | "on"));
        let code = code(tokens.get(used + of))?;
        return Some((named(code, Some(share)), used + of + 1));
    }
    let the = usize::from(low(0) == "the");
    if low(the) == "rest" {
        let of = usize::from(matches!(low(the + 1), "of" | "for" | "to"));
        return Some((named(code(tokens.get(the + 1 + of))?, None), the + 2 + of));
    }
    let code = code(tokens.first())?;
    let link = usize::from(matches!(low(1), ":" | "=" | "is" | "to" | "at" | "gets"));
    if low(1 + link) == "the" && low(2 + link) == "rest" {
        return Some((named(code, None), 3 + link));
    }
    let (share, used) = percent(&tokens[1 + link..]).or_else(|| fraction(&tokens[1 + link..]))?;
    Some((named(code, Some(share)), 1 + link + used))
}

const STATUSES: &str = "enrolling=enrolling running=enrolling active=enrolling live=enrolling started=enrolling \
    enrollmentcomplete=enrollmentComplete paused=enrollmentComplete stopped=enrollmentComplete \
    cancelled=cancelled canceled=cancelled ended=cancelled completed=cancelled finished=cancelled \
    archived=archived inactive=inactive preview=preview scheduled=scheduled draft=draft";

/// The status that a word means, in the server's spelling.
pub(crate) fn status_at(tokens: &[Token<'_>]) -> Option<(&'static str, usize)> {
    let low = tokens.first().filter(|token| token.is_word())?.low.as_str();
    let next = tokens.get(1).map(|token| token.low.as_str()).unwrap_or_default();
    match (low, next) {
        ("on", "hold") => Some(("enrollmentComplete", 2)),
        ("enrollment", "complete") => Some(("enrollmentComplete", 2)),
        _ => lookup(STATUSES, low).map(|status| (status, 1)),
    }
}

pub(crate) fn statuses() -> impl Iterator<Item = &'static str> {
    STATUSES.split_whitespace().filter_map(|pair| Some(pair.split_once('=')?.0))
}

/// A date as `2026-01-31`.
pub(crate) fn date(tokens: &[Token<'_>]) -> Option<usize> {
    let token = tokens.first().filter(|token| token.is_word())?;
    let parts: Vec<&str> = token.low.split('-').collect();
    let digits =
        |part: &&str, length: usize| part.len() == length && part.bytes().all(|b| b.is_ascii_digit());
    match parts.as_slice() {
        [year, month, day] if digits(year, 4) && digits(month, 2) && digits(day, 2) => Some(1),
        _ => None,
    }
}

const GROUP_TYPES: &str = "class classid classes school schoolid schools teacher teacherid instructor instructorid \
    district districtid";

pub(crate) fn is_group_type(low: &str) -> bool {
    GROUP_TYPES.split_whitespace().any(|word| word == low)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::token::tokens;

    fn told(text: &str) -> String {
        let share = |share: &Share| {
            format!(
                "{}={}",
                share.code.as_deref().unwrap_or("_"),
                share.share.map_or("rest".to_owned(), |share| format!("{share:.0}"))
            )
        };
        let all = |shares: &[Share]| shares.iter().map(share).collect::<Vec<_>>().join(" ");
        match weights(&tokens(text)) {
            Some((Weights::Equal(codes), used)) => format!("equal {} ({used})", codes.join(" ")),
            Some((Weights::Shares(shares), used)) => format!("{} ({used})", all(&shares)),
            Some((Weights::Ratio(shares), used)) => format!("ratio {} ({used})", all(&shares)),
            None => "none".to_owned(),
        }
    }

    #[test]
    fn weights_are_read_in_all_their_forms() {
        for (text, wanted) in [
            ("70/30 now", "_=70 _=30 (1)"),
            ("70% / 30%", "_=70 _=30 (3)"),
            ("1:2", "ratio _=1 _=2 (1)"),
            ("2 to 1", "ratio _=2 _=1 (3)"),
            ("control 70, variant 30", "control=70 variant=30 (5)"),
            ("control=60, variant=40", "control=60 variant=40 (7)"),
            ("70% control and 30% variant", "control=70 variant=30 (5)"),
            ("40% control, the rest variant", "control=40 variant=rest (6)"),
            ("half control, half variant", "control=50 variant=50 (5)"),
            ("two thirds control", "control=67 (3)"),
            ("evenly", "equal  (1)"),
            ("control, variant, equally", "equal control variant (5)"),
            ("twice as much variant as control", "ratio variant=2 control=1 (6)"),
            ("both, same weight", "equal  (4)"),
            ("blorp", "none"),
            ("50", "none"),
        ] {
            assert_eq!(told(text), wanted, "{text}");
        }
    }

    #[test]
    fn numbers_are_read_in_digits_and_words() {
        for (text, wanted) in [
            ("200 users", Some((200, 1))),
            ("-5", Some((-5, 1))),
            ("a hundred", Some((100, 2))),
            ("two hundred", Some((200, 2))),
            ("one million", Some((1_000_000, 2))),
            ("twenty", Some((20, 1))),
            ("1e3", None),
            ("a user", None),
        ] {
            assert_eq!(number(&tokens(text)), wanted, "{text}");
        }
    }
}
