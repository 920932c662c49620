//! What all pages have in common: how names are sorted, which part of the rows is on one, and that the
//! question is repeated in the answer.

use std::cmp::Ordering;

use serde_json::{Value, json};

use super::dialect::Dialect;
use super::fault::Fault;

/// The rows that a page holds. As in the original, no row is no limit, and what makes no sense is left
/// to the database to refuse.
pub(crate) fn cut<T>(rows: impl IntoIterator<Item = T>, asked: &Value) -> Result<Vec<T>, Fault> {
    let skipped = count(asked, "skip", "OFFSET")?;
    let taken = match count(asked, "take", "LIMIT")? {
        0 => usize::MAX,
        taken => taken,
    };
    Ok(rows.into_iter().skip(skipped).take(taken).collect())
}

fn count(asked: &Value, field: &str, word: &str) -> Result<usize, Fault> {
    let number = asked[field].as_f64().unwrap_or(0.0).round();
    if number < 0.0 {
        return Err(Fault::unwatched(format!("{word} must not be negative")));
    }
    if number >= i64::MAX as f64 {
        return Err(Fault::unwatched("bigint out of range"));
    }
    Ok(number as usize)
}

/// The same where the original, from 6.3 on, takes no row for none.
pub(crate) fn cut_to<T>(
    dialect: Dialect,
    rows: impl IntoIterator<Item = T>,
    asked: &Value,
) -> Result<Vec<T>, Fault> {
    let mut page = cut(rows, asked)?;
    if dialect != Dialect::V62 && asked["take"].as_f64().is_some_and(|taken| taken.round() == 0.0) {
        page.clear();
    }
    Ok(page)
}

/// A page of so many in all, with what was asked.
pub(crate) fn page(total: usize, nodes: Value, asked: &Value) -> Value {
    let mut answer = json!({ "total": total, "nodes": nodes });
    if let (Some(answer), Some(asked)) = (answer.as_object_mut(), asked.as_object()) {
        answer.extend(asked.clone());
    }
    answer
}

/// Names sort as people expect them: letters before their case.
pub(crate) fn by_name(a: &str, b: &str) -> Ordering {
    a.to_lowercase().cmp(&b.to_lowercase()).then_with(|| b.cmp(a))
}
