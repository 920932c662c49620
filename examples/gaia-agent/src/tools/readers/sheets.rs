//! [`read_sheets`]: the cells of a spreadsheet as text, by sheet, range and row, and on request what a
//! person sees beside the values: fills, comments, merged and hidden cells, formulas and formats.
//!
//! Cells are read one after another, and only those that are shown are kept: a file that claims a million
//! columns, or one long text in many cells, costs what is printed of it.

mod cells;
mod details;
mod range;

use std::io;

use calamine::{Reader as _, SheetVisible, Sheets, open_workbook_auto_from_rs};

use super::view::SHOWN;
use crate::tools::work::{Bytes, UNPACKED, Work};
use cells::Cells;
use range::Range;

/// What is to be shown.
#[derive(Clone, Debug, Default)]
pub(in crate::tools) struct Wanted {
    /// All sheets if it is not set.
    pub(in crate::tools) sheet: Option<String>,
    /// Such as `B2:D40`, `B:D` or `C7`.
    pub(in crate::tools) range: Option<String>,
    /// The first row, counted from 1 as sheets do.
    pub(in crate::tools) start: u32,
    /// Only rows with this text.
    pub(in crate::tools) find: Option<String>,
    pub(in crate::tools) details: bool,
}

type Book<'b> = Sheets<Bytes<'b>>;

/// The text of a spreadsheet: its sheets, and the cells of one or of all of them.
pub(in crate::tools) fn read_sheets(bytes: &[u8], wanted: &Wanted, work: &Work) -> Result<String, String> {
    check_archive(bytes, work)?;
    let mut book = open_workbook_auto_from_rs(work.reader(bytes)).map_err(|error| {
        format!("this is no spreadsheet that can be read (xlsx, xlsm, xlsb, xls): {error}")
    })?;
    if matches!(book, Sheets::Ods(_)) {
        return Err("OpenDocument sheets are not supported: only xlsx, xlsm, xlsb and xls".to_owned());
    }
    let names = book.sheet_names();
    let only = wanted.sheet.as_deref().map(str::trim);
    let is_wanted = |name: &String| only.is_none_or(|only| name.eq_ignore_ascii_case(only));
    if !names.iter().any(is_wanted) {
        let wanted = only.unwrap_or_default();
        return Err(format!("there is no sheet `{wanted}`; the sheets are {}", names.join(", ")));
    }
    let range = Range::of(wanted)?;
    let is_hidden = |name: &String| {
        let sheets = book.sheets_metadata().iter();
        sheets.filter(|sheet| sheet.name == *name).any(|sheet| sheet.visible != SheetVisible::Visible)
    };
    let shown = names.iter().map(|name| format!("{name}{}", if is_hidden(name) { " (hidden)" } else { "" }));
    let mut text = format!("Sheets: {}\n", shown.collect::<Vec<_>>().join(", "));
    for name in names.iter().filter(|name| is_wanted(name)) {
        let Some(room) = SHOWN.checked_sub(text.len()).filter(|room| *room > 0) else {
            text += &format!("\n[`{name}` is not shown: set `sheet`]\n");
            continue;
        };
        let wrong = |error: String| format!("sheet `{name}`: {error}");
        let cells = Cells::read(&mut book, name, range, wanted.find.as_deref(), room, work).map_err(wrong)?;
        text += &cells.to_text(name);
        text += &details::text(&mut book, bytes, name, range, wanted.details, work).map_err(wrong)?;
    }
    Ok(text)
}

/// Unpacks the whole archive into nothing, and counts.
fn check_archive(bytes: &[u8], work: &Work) -> Result<(), String> {
    let Ok(mut archive) = zip::ZipArchive::new(work.reader(bytes)) else {
        // The older format is no archive.
        return Ok(());
    };
    let mut left = UNPACKED;
    for at in 0..archive.len() {
        let file = archive.by_index(at).map_err(|error| format!("the archive is broken: {error}"))?;
        let read = io::copy(&mut io::Read::take(file, left + 1), &mut io::sink());
        let read = read.map_err(|error| format!("the archive is broken: {error}"))?;
        left = left
            .checked_sub(read)
            .ok_or_else(|| format!("the file unpacks to more than {} MiB", UNPACKED >> 20))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
