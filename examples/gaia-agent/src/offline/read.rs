//! Readers of texts and tables.

/// The text between two others.
pub(super) fn between<'t>(text: &'t str, before: &str, after: &str) -> Option<&'t str> {
    let (_, rest) = text.split_once(before)?;
    let (found, _) = rest.split_once(after)?;
    Some(found.trim()).filter(|found| !found.is_empty())
}

/// The first word after a text.
pub(super) fn word_after<'t>(text: &'t str, before: &str) -> Option<&'t str> {
    let (_, rest) = text.split_once(before)?;
    let word = rest.split_whitespace().next()?;
    Some(word.trim_matches(|letter: char| matches!(letter, '.' | ',' | ';' | ':' | '"')))
        .filter(|word| !word.is_empty())
}

/// The numbers of a text, in order.
pub(super) fn numbers(text: &str) -> Vec<f64> {
    let words = text.split(|letter: char| !(letter.is_ascii_digit() || letter == '.' || letter == '-'));
    words.filter_map(|word| word.trim_matches('.').parse().ok()).collect()
}

/// The rows of a sheet as `read_excel` shows it: the first has the names of the columns, and no row its
/// number.
pub(super) fn sheet(text: &str) -> Vec<Vec<&str>> {
    let rows = text.lines().filter(|line| line.starts_with(|first: char| first.is_ascii_digit()));
    rows.map(|line| line.split('\t').skip(1).collect()).collect()
}

/// The rows of a text with commas.
pub(super) fn commas(text: &str) -> Vec<Vec<&str>> {
    text.lines()
        .filter(|line| line.contains(','))
        .map(|line| line.split(',').map(str::trim).collect())
        .collect()
}

/// The row in which a column has its least number.
pub(super) fn least<'r, 't>(rows: &'r [Vec<&'t str>], column: &str) -> Option<&'r Vec<&'t str>> {
    let (head, rows) = rows.split_first()?;
    let at = head.iter().position(|name| name.eq_ignore_ascii_case(column))?;
    let number = |row: &&Vec<&str>| row.get(at).and_then(|cell| cell.parse::<f64>().ok());
    rows.iter()
        .filter(|row| number(row).is_some())
        .min_by(|one, other| number(one).unwrap_or_default().total_cmp(&number(other).unwrap_or_default()))
}
