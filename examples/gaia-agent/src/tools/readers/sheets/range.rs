//! [`Range`]: cells by the names that sheets give them.

use std::collections::BTreeSet;

use super::Wanted;

/// Rows and columns, counted from 0, the last ones included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) first: (u32, u32),
    pub(super) last: (u32, u32),
}

impl Range {
    pub(super) fn of(wanted: &Wanted) -> Result<Self, String> {
        let mut range = match wanted.range.as_deref().map(str::trim).filter(|range| !range.is_empty()) {
            Some(text) => Range::parse(text).ok_or_else(|| {
                format!("`{text}` is no range: it has a form such as `B2:D40`, `B:D` or `C7`")
            })?,
            None => Range { first: (0, 0), last: (u32::MAX, u32::MAX) },
        };
        range.first.0 = range.first.0.max(wanted.start.saturating_sub(1));
        Ok(range)
    }

    /// `None` for a text of another form.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let text = text.replace('$', "");
        let (first, last) = text.split_once(':').unwrap_or((&text, &text));
        let ((row, column), (last_row, last_column)) = (corner(first)?, corner(last)?);
        let (row, column) = (row.unwrap_or(0), column.unwrap_or(0));
        let last = (last_row.unwrap_or(u32::MAX), last_column.unwrap_or(u32::MAX));
        Some(Range {
            first: (row.min(last.0), column.min(last.1)),
            last: (row.max(last.0), column.max(last.1)),
        })
    }

    pub(super) fn has(&self, (row, column): (u32, u32)) -> bool {
        (self.first.0..=self.last.0).contains(&row) && (self.first.1..=self.last.1).contains(&column)
    }
}

/// The row and the column of `C7`, `C` or `7`.
fn corner(text: &str) -> Option<(Option<u32>, Option<u32>)> {
    let text = text.trim();
    let digits = text.find(|letter: char| letter.is_ascii_digit()).unwrap_or(text.len());
    let (letters, digits) = text.split_at(digits);
    let row = match digits {
        "" => None,
        digits => Some(digits.parse::<u32>().ok()?.checked_sub(1)?),
    };
    let column = letters.to_uppercase().bytes().try_fold(0_u32, |column, letter| {
        let value = letter.checked_sub(b'A').filter(|value| *value < 26)?;
        column.checked_mul(26)?.checked_add(u32::from(value) + 1)
    })?;
    (!text.is_empty()).then_some((row, column.checked_sub(1)))
}

/// `A`, `B`, .. `Z`, `AA`.
pub(super) fn column_name(mut column: u32) -> String {
    let mut letters = Vec::new();
    loop {
        letters.push(char::from(b'A' + (column % 26) as u8));
        match (column / 26).checked_sub(1) {
            Some(rest) => column = rest,
            None => return letters.iter().rev().collect(),
        }
    }
}

pub(super) fn cell_name((row, column): (u32, u32)) -> String {
    format!("{}{}", column_name(column), u64::from(row) + 1)
}

/// Cells as ranges, so that a painted area is one: runs of a row, joined with the same run of the next row.
pub(super) fn ranges(cells: &BTreeSet<(u32, u32)>) -> Vec<String> {
    let mut found: Vec<Range> = Vec::new();
    for &(row, column) in cells {
        match found.last_mut() {
            Some(last) if (last.first.0, last.last) == (row, (row, column.wrapping_sub(1))) => {
                last.last.1 = column
            }
            _ => found.push(Range { first: (row, column), last: (row, column) }),
        }
    }
    let mut joined: Vec<Range> = Vec::new();
    for run in found {
        let is_below = |above: &&mut Range| {
            above.last.0.checked_add(1) == Some(run.first.0)
                && (above.first.1, above.last.1) == (run.first.1, run.last.1)
        };
        match joined.iter_mut().rev().take(200).find(is_below) {
            Some(above) => above.last.0 = run.last.0,
            None => joined.push(run),
        }
    }
    let name = |range: Range| match range.first == range.last {
        true => cell_name(range.first),
        false => format!("{}:{}", cell_name(range.first), cell_name(range.last)),
    };
    joined.into_iter().map(name).collect()
}
