//! [`read_sheets`]: the cells of a spreadsheet as text. Pure.
//!
//! Cells are read one after another and only those that are shown are kept, so a file that claims a million
//! columns costs nothing. An archive that unpacks to more than [`UNPACKED`] is refused before it is read.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Cursor, Read};

use calamine::{Data, DataType, ExcelDateTime, Reader, Sheets, open_workbook_auto_from_rs};

/// The most bytes of an unpacked archive.
const UNPACKED: u64 = 128 << 20;
/// The most cells of a sheet that are kept.
const MOST_CELLS: usize = 10_000;
const MOST_COLUMNS: u32 = 200;
/// The most cells that are looked at.
const MOST_READ: usize = 2_000_000;

/// The text of a spreadsheet: its sheets, and the cells of one or of all of them.
pub(crate) fn read_sheets(bytes: &[u8], only: Option<&str>) -> Result<String, String> {
    check_archive(bytes)?;
    let mut book = open_workbook_auto_from_rs(Cursor::new(bytes)).map_err(|error| {
        format!("this is no spreadsheet that can be read (xlsx, xlsm, xlsb, xls): {error}")
    })?;
    if matches!(book, Sheets::Ods(_)) {
        return Err("OpenDocument sheets are not supported: only xlsx, xlsm, xlsb and xls".to_owned());
    }
    let names = book.sheet_names();
    let is_wanted = |name: &String| only.is_none_or(|only| name.eq_ignore_ascii_case(only.trim()));
    if !names.iter().any(is_wanted) {
        let wanted = only.unwrap_or_default();
        return Err(format!("there is no sheet `{wanted}`; the sheets are {}", names.join(", ")));
    }
    let mut text = format!("Sheets: {}\n", names.join(", "));
    for name in names.iter().filter(|name| is_wanted(name)) {
        let sheet = read_sheet(&mut book, name).map_err(|error| format!("sheet `{name}`: {error}"))?;
        sheet.write_into(name, &mut text);
    }
    Ok(text)
}

/// Unpacks the whole archive into nothing, and counts.
fn check_archive(bytes: &[u8]) -> Result<(), String> {
    let Ok(mut archive) = zip::ZipArchive::new(Cursor::new(bytes)) else {
        // The older format is no archive.
        return Ok(());
    };
    let mut left = UNPACKED;
    for at in 0..archive.len() {
        let file = archive.by_index(at).map_err(|error| format!("the archive is broken: {error}"))?;
        let read = io::copy(&mut file.take(left + 1), &mut io::sink());
        let read = read.map_err(|error| format!("the archive is broken: {error}"))?;
        left = left
            .checked_sub(read)
            .ok_or_else(|| format!("the file unpacks to more than {} MiB", UNPACKED >> 20))?;
    }
    Ok(())
}

/// The cells that are shown, by row and column.
#[derive(Default)]
struct Sheet {
    cells: BTreeMap<(u32, u32), String>,
    /// Formulas whose result the file does not have.
    without_value: Vec<(u32, u32, String)>,
    /// The last row and column, shown or not.
    end: (u32, u32),
    is_cut: bool,
}

type Book<'b> = Sheets<Cursor<&'b [u8]>>;

fn read_sheet(book: &mut Book<'_>, name: &str) -> Result<Sheet, String> {
    let mut sheet = Sheet::default();
    match book {
        Sheets::Xlsx(book) => {
            let mut cells = book.worksheet_cells_reader(name).map_err(|error| error.to_string())?;
            for _ in 0..MOST_READ {
                let Some(cell) = cells.next_cell_with_formula().map_err(|error| error.to_string())? else {
                    return Ok(sheet);
                };
                sheet.add(cell.pos, shown(&Data::from(cell.value)), cell.formula);
            }
            sheet.is_cut = true;
        }
        Sheets::Xlsb(book) => {
            let mut cells = book.worksheet_cells_reader(name).map_err(|error| error.to_string())?;
            for _ in 0..MOST_READ {
                let Some(cell) = cells.next_cell().map_err(|error| error.to_string())? else {
                    return Ok(sheet);
                };
                sheet.add(cell.get_position(), shown(&Data::from(cell.get_value().clone())), None);
            }
            sheet.is_cut = true;
        }
        book => {
            // The older format has at most 65,536 rows of 256 columns.
            let values = book.worksheet_range(name).map_err(|error| error.to_string())?;
            let formulas = book.worksheet_formula(name).map_err(|error| error.to_string())?;
            let start = values.start().unwrap_or_default();
            for (row, column, value) in values.used_cells() {
                let at = (start.0 + row as u32, start.1 + column as u32);
                sheet.add(at, shown(value), None);
            }
            let start = formulas.start().unwrap_or_default();
            for (row, column, formula) in formulas.used_cells() {
                let at = (start.0 + row as u32, start.1 + column as u32);
                if values.get_value(at).is_none_or(DataType::is_empty) {
                    sheet.add(at, None, Some(formula.clone()));
                }
            }
        }
    }
    Ok(sheet)
}

impl Sheet {
    fn add(&mut self, at: (u32, u32), value: Option<String>, formula: Option<String>) {
        let (row, column) = at;
        let value = match (value, formula) {
            (Some(value), _) => value,
            (None, Some(formula)) => {
                if self.without_value.len() < MOST_CELLS {
                    self.without_value.push((row, column, formula));
                }
                "[no value]".to_owned()
            }
            (None, None) => return,
        };
        self.end = (self.end.0.max(row), self.end.1.max(column));
        if column < MOST_COLUMNS && self.cells.len() < MOST_CELLS {
            self.cells.insert(at, value);
        } else {
            self.is_cut = true;
        }
    }

    fn write_into(&self, name: &str, text: &mut String) {
        // Writing to a string cannot fail.
        let Some(last) = self.cells.keys().map(|(_, column)| *column).max() else {
            let _ = write!(text, "\n## {name}\nThe sheet is empty.\n");
            return;
        };
        let (rows, columns) = (self.end.0 + 1, self.end.1 + 1);
        let _ = write!(text, "\n## {name} ({rows} rows, {columns} columns)\nrow");
        for column in 0..=last {
            let _ = write!(text, "\t{}", column_name(column));
        }
        let mut row = None;
        let mut next = 0;
        for ((at, column), value) in &self.cells {
            if row != Some(*at) {
                let _ = write!(text, "\n{}", at + 1);
                (row, next) = (Some(*at), 0);
            }
            while next <= *column {
                text.push('\t');
                next += 1;
            }
            text.push_str(value);
        }
        text.push('\n');
        for (row, column, formula) in &self.without_value {
            let cell = format!("{}{}", column_name(*column), row + 1);
            let _ = writeln!(
                text,
                "{cell} is the formula `={formula}`, whose result the file does not have: compute it from the other cells"
            );
        }
        if self.is_cut {
            let _ = writeln!(text, "[only {MOST_CELLS} cells and {MOST_COLUMNS} columns are shown]");
        }
    }
}

/// A value on one line; `None` for an empty cell.
fn shown(value: &Data) -> Option<String> {
    let text = match value {
        Data::Empty => return None,
        Data::String(text) | Data::DateTimeIso(text) | Data::DurationIso(text) => text.clone(),
        Data::Float(number) if number.trunc() == *number && number.abs() < 1e15 => format!("{number:.0}"),
        Data::DateTime(time) => date(time),
        other => other.to_string(),
    };
    Some(text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect())
}

fn date(time: &ExcelDateTime) -> String {
    if time.is_duration() || !(0.0..2_958_466.0).contains(&time.as_f64()) {
        let seconds = (time.as_f64() * 86_400.0).round() as i64;
        return format!("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    }
    let (year, month, day, hour, minute, second, _) = time.to_ymd_hms_milli();
    match time.as_f64().fract() == 0.0 {
        true => format!("{year:04}-{month:02}-{day:02}"),
        false => format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}"),
    }
}

/// `A`, `B`, .. `Z`, `AA`.
fn column_name(mut column: u32) -> String {
    let mut letters = Vec::new();
    loop {
        letters.push(char::from(b'A' + (column % 26) as u8));
        match (column / 26).checked_sub(1) {
            Some(rest) => column = rest,
            None => return letters.iter().rev().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_named_as_in_a_spreadsheet() {
        let names = [0, 25, 26, 51, 52, 701, 702, 16_383].map(column_name);
        assert_eq!(names, ["A", "Z", "AA", "AZ", "BA", "ZZ", "AAA", "XFD"]);
    }
}
