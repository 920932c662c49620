//! [`Cells`]: the values of a sheet that one call shows.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use calamine::{Data, DataRef, DataType, ExcelDateTime, Reader as _, Sheets};

use super::Book;
use super::range::{Range, cell_name, column_name};
use crate::tools::work::Work;

const MOST_COLUMNS: u32 = 200;
/// The most cells that are looked at.
const MOST_READ: usize = 4_000_000;
/// The most characters of a cell among others; a cell that is asked for alone has more.
const CELL: usize = 2_000;

pub(super) struct Cells {
    range: Range,
    find: Option<String>,
    cells: BTreeMap<(u32, u32), String>,
    /// The row that is being read, and whether it has the text that is looked for.
    row: (u32, BTreeMap<u32, String>),
    has_text: bool,
    /// Formulas whose result the file does not have.
    without_value: BTreeMap<(u32, u32), String>,
    /// The last row and column, shown or not.
    end: (u32, u32),
    /// The first row that there is no room for.
    next: Option<u32>,
    has_more_columns: bool,
    /// The characters that there is room for.
    room: usize,
}

impl Cells {
    /// Reads the cells of a range, up to so many characters of text.
    pub(super) fn read(
        book: &mut Book<'_>,
        name: &str,
        range: Range,
        find: Option<&str>,
        room: usize,
        work: &Work,
    ) -> Result<Self, String> {
        let mut cells = Cells {
            range,
            find: find.map(|text| text.trim().to_lowercase()).filter(|text| !text.is_empty()),
            cells: BTreeMap::new(),
            row: (0, BTreeMap::new()),
            has_text: false,
            without_value: BTreeMap::new(),
            end: (0, 0),
            next: None,
            has_more_columns: false,
            room,
        };
        match book {
            Sheets::Xlsx(book) => {
                let mut read = book.worksheet_cells_reader(name).map_err(|error| error.to_string())?;
                for count in 0..MOST_READ {
                    check(count, work)?;
                    let Some(cell) = read.next_cell_with_formula().map_err(|error| error.to_string())? else {
                        break;
                    };
                    cells.add(cell.pos, &cell.value, cell.formula);
                }
            }
            Sheets::Xlsb(book) => {
                let mut read = book.worksheet_cells_reader(name).map_err(|error| error.to_string())?;
                for count in 0..MOST_READ {
                    check(count, work)?;
                    let Some(cell) = read.next_cell().map_err(|error| error.to_string())? else { break };
                    cells.add(cell.get_position(), cell.get_value(), None);
                }
            }
            book => cells.read_old(book, name)?,
        }
        cells.end_row();
        let shown = &cells.cells;
        cells.without_value.retain(|at, _| shown.contains_key(at));
        Ok(cells)
    }

    /// The older format has at most 65,536 rows of 256 columns.
    fn read_old(&mut self, book: &mut Book<'_>, name: &str) -> Result<(), String> {
        let values = book.worksheet_range(name).map_err(|error| error.to_string())?;
        let formulas = book.worksheet_formula(name).map_err(|error| error.to_string())?;
        let start = values.start().unwrap_or_default();
        for (row, column, value) in values.used_cells() {
            self.add((start.0 + row as u32, start.1 + column as u32), &borrowed(value), None);
        }
        let start = formulas.start().unwrap_or_default();
        for (row, column, formula) in formulas.used_cells() {
            let at = (start.0 + row as u32, start.1 + column as u32);
            if values.get_value(at).is_none_or(DataType::is_empty) {
                self.add(at, &DataRef::Empty, Some(formula.clone()));
            }
        }
        Ok(())
    }

    fn add(&mut self, at: (u32, u32), value: &DataRef<'_>, formula: Option<String>) {
        if matches!(value, DataRef::Empty) && formula.is_none() {
            return;
        }
        self.end = (self.end.0.max(at.0), self.end.1.max(at.1));
        if !self.range.has(at) || self.next.is_some_and(|next| at.0 >= next) {
            return;
        }
        // Without a range, a sheet that claims too many columns is cut.
        if at.1 - self.range.first.1 >= MOST_COLUMNS {
            self.has_more_columns = true;
            return;
        }
        if at.0 != self.row.0 {
            self.end_row();
            self.row.0 = at.0;
        }
        self.has_text |= self.find.as_ref().is_some_and(|find| full(value).to_lowercase().contains(find));
        let is_alone = self.range.first == self.range.last;
        let text = match (shown(value, if is_alone { self.room } else { CELL }), formula) {
            (Some(text), _) => text,
            (None, Some(formula)) => {
                self.without_value.insert(at, formula.chars().take(CELL).collect());
                "[no value]".to_owned()
            }
            (None, None) => return,
        };
        self.row.1.insert(at.1, text);
    }

    /// Keeps the row that was read if it is wanted and there is room for it; the first one in any case.
    fn end_row(&mut self) {
        let (row, cells) = (self.row.0, std::mem::take(&mut self.row.1));
        let has_text = std::mem::take(&mut self.has_text);
        let is_over = self.next.is_some_and(|next| row >= next);
        if cells.is_empty() || is_over || (self.find.is_some() && !has_text) {
            return;
        }
        let length = cells.values().map(|text| text.len() + 1).sum::<usize>() + 8;
        match (self.room.checked_sub(length), self.cells.is_empty()) {
            (Some(room), _) => self.room = room,
            (None, true) => (self.next, self.room) = (Some(row.saturating_add(1)), 0),
            (None, false) => {
                self.next = Some(row);
                return;
            }
        }
        self.cells.extend(cells.into_iter().map(|(column, text)| ((row, column), text)));
    }

    /// The cells as a table, and how to go on.
    pub(super) fn to_text(&self, name: &str) -> String {
        let columns = self.cells.keys().map(|(_, column)| *column);
        let (Some(first), Some(last)) = (columns.clone().min(), columns.max()) else {
            let why = match (&self.find, self.end) {
                (Some(find), _) => format!("No row has `{find}`."),
                (None, (0, 0)) => "The sheet is empty.".to_owned(),
                (None, _) => "The range is empty.".to_owned(),
            };
            return format!("\n## {name}\n{why}\n");
        };
        // A table begins with its first column, unless a range says otherwise.
        let first = if self.range.first.1 == 0 { 0 } else { first };
        let (rows, all) = (u64::from(self.end.0) + 1, u64::from(self.end.1) + 1);
        let mut text = format!("\n## {name} ({rows} rows, {all} columns)\nrow");
        // Writing to a string cannot fail.
        for column in first..=last {
            let _ = write!(text, "\t{}", column_name(column));
        }
        let mut row = None;
        let mut next = first;
        for ((at, column), value) in &self.cells {
            if row != Some(*at) {
                let _ = write!(text, "\n{}", u64::from(*at) + 1);
                (row, next) = (Some(*at), first);
            }
            while next <= *column {
                text.push('\t');
                next += 1;
            }
            text.push_str(value);
        }
        text.push('\n');
        for (at, formula) in &self.without_value {
            let cell = cell_name(*at);
            let _ = writeln!(
                text,
                "{cell} is the formula `={formula}`, whose result the file does not have: compute it from the other cells"
            );
        }
        if let Some(next) = self.next {
            let _ = writeln!(
                text,
                "[the rows from {} on do not fit: go on with `start`, or look for a text with `find`]",
                u64::from(next) + 1
            );
        }
        if self.has_more_columns {
            let _ = writeln!(text, "[only {MOST_COLUMNS} columns are shown: set `range` for others]");
        }
        text
    }
}

fn check(count: usize, work: &Work) -> Result<(), String> {
    if count.is_multiple_of(1024) { work.check() } else { Ok(()) }
}

fn borrowed(value: &Data) -> DataRef<'_> {
    match value {
        Data::Int(number) => DataRef::Int(*number),
        Data::Float(number) => DataRef::Float(*number),
        Data::String(text) => DataRef::SharedString(text),
        Data::Bool(value) => DataRef::Bool(*value),
        Data::DateTime(time) => DataRef::DateTime(*time),
        Data::DateTimeIso(text) => DataRef::DateTimeIso(text.clone()),
        Data::DurationIso(text) => DataRef::DurationIso(text.clone()),
        Data::Error(error) => DataRef::Error(error.clone()),
        Data::Empty => DataRef::Empty,
    }
}

/// The text of a value, where it is one, without a copy.
fn full<'v>(value: &'v DataRef<'_>) -> std::borrow::Cow<'v, str> {
    match value {
        DataRef::String(text) | DataRef::DateTimeIso(text) | DataRef::DurationIso(text) => {
            text.as_str().into()
        }
        DataRef::SharedString(text) => (*text).into(),
        other => shown(other, CELL).unwrap_or_default().into(),
    }
}

/// A value on one line, up to so many characters; `None` for an empty cell.
fn shown(value: &DataRef<'_>, longest: usize) -> Option<String> {
    let text = match value {
        DataRef::Empty => return None,
        DataRef::Float(number) if number.trunc() == *number && number.abs() < 1e15 => format!("{number:.0}"),
        DataRef::Float(number) => number.to_string(),
        DataRef::Int(number) => number.to_string(),
        DataRef::Bool(value) => value.to_string(),
        DataRef::Error(error) => error.to_string(),
        DataRef::DateTime(time) => date(time),
        DataRef::String(text) | DataRef::DateTimeIso(text) | DataRef::DurationIso(text) => {
            return Some(one_line(text, longest));
        }
        DataRef::SharedString(text) => return Some(one_line(text, longest)),
    };
    Some(text)
}

fn one_line(text: &str, longest: usize) -> String {
    let plain = |letter: char| if letter.is_control() { ' ' } else { letter };
    let mut line: String = text.chars().take(longest).map(plain).collect();
    if line.len() < text.len() && text.chars().nth(longest).is_some() {
        line += " [.. more: set `range` to this cell]";
    }
    line
}

/// A day, a time, both, or a duration.
fn date(time: &ExcelDateTime) -> String {
    let value = time.as_f64();
    let seconds = (value * 86_400.0).round() as i64;
    if time.is_duration() || !(0.0..2_958_466.0).contains(&value) {
        let sign = if seconds < 0 { "-" } else { "" };
        let seconds = seconds.unsigned_abs();
        return format!("{sign}{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    }
    // Before the first day there are only times.
    if value < 1.0 {
        return format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    }
    let (year, month, day, hour, minute, second, _) = time.to_ymd_hms_milli();
    match value.fract() == 0.0 {
        true => format!("{year:04}-{month:02}-{day:02}"),
        false => format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}"),
    }
}
