//! Pages: the order of names, the rows of a page, and the parameters of the request, which the response
//! repeats.

use std::cmp::Ordering;

use serde_json::{Value, json};

use super::dialect::Dialect;
use super::fault::Fault;

/// The rows of a page. As in the original, a page size of 0 means no limit, and invalid numbers are left to
/// the database to reject.
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
        return Err(Fault::unguarded_query(format!("{word} must not be negative")));
    }
    if number >= i64::MAX as f64 {
        return Err(Fault::unguarded_query("bigint out of range"));
    }
    Ok(number as usize)
}

/// As above, where the original from 6.3 on takes a page size of 0 literally.
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

/// A page and the total, with the parameters of the request.
pub(crate) fn page(total: usize, nodes: Value, asked: &Value) -> Value {
    let mut answer = json!({ "total": total, "nodes": nodes });
    if let (Some(answer), Some(asked)) = (answer.as_object_mut(), asked.as_object()) {
        answer.extend(asked.clone());
    }
    answer
}

/// Names are sorted by letter first and by case second.
pub(crate) fn by_name(a: &str, b: &str) -> Ordering {
    a.to_lowercase().cmp(&b.to_lowercase()).then_with(|| b.cmp(a))
}
