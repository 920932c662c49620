//! What a person sees of a sheet beside its values: fills, comments, merged and hidden cells, formulas and
//! formats. The styles are calamine's; comments and hidden rows it does not read.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use calamine::{Color, Sheets, XlsxCellReader};

use super::Book;
use super::range::{Range, cell_name, column_name, ranges};
use crate::tools::readers::xml::{Node, attribute, walk};
use crate::tools::readers::{Archive, Source, ooxml};
use crate::tools::work::{Bytes, Work};

type Reader<'a, 'b> = XlsxCellReader<'a, Bytes<'b>>;

/// The most cells whose style or formula is kept.
const MOST: usize = 20_000;
/// The most characters of each part.
const LONGEST: usize = 8_000;

#[derive(Default)]
struct Details {
    fills: BTreeMap<String, BTreeSet<(u32, u32)>>,
    formats: BTreeMap<String, BTreeSet<(u32, u32)>>,
    formulas: BTreeMap<(u32, u32), String>,
    comments: BTreeMap<String, String>,
    merged: Vec<String>,
    hidden: Vec<String>,
}

/// The details of a sheet; without `all`, a line that says which there are.
pub(super) fn text(
    book: &mut Book<'_>,
    bytes: &[u8],
    name: &str,
    range: Range,
    all: bool,
    work: &Work,
) -> Result<String, String> {
    let Sheets::Xlsx(book) = book else {
        let why = "[fills, comments, formulas and formats are read of xlsx and xlsm only]\n";
        return Ok(if all { why.to_owned() } else { String::new() });
    };
    let mut details = Details::default();
    let wrong = |error: calamine::XlsxError| error.to_string();
    details.read_styles(book.worksheet_cells_reader(name).map_err(wrong)?, range, work)?;
    if all {
        details.read_formulas(book.worksheet_cells_reader(name).map_err(wrong)?, range, work)?;
    }
    details.read_parts(bytes, name, range, work)?;
    Ok(if all { details.to_text() } else { details.hint() })
}

impl Details {
    fn read_styles(&mut self, mut cells: Reader<'_, '_>, range: Range, work: &Work) -> Result<(), String> {
        for _ in 0..MOST {
            work.check()?;
            let Some((row, column, style)) = cells.next_style_id().map_err(|error| error.to_string())? else {
                break;
            };
            let Some(style) = cells.styles().get(style).filter(|_| range.has((row, column))) else {
                continue;
            };
            let fill = style.fill.as_ref().filter(|fill| fill.is_visible()).and_then(|fill| fill.get_color());
            if let Some(color) = fill {
                self.fills.entry(color_name(color)).or_default().insert((row, column));
            }
            let format = style.number_format.as_ref().map(|format| format.format_code.as_str());
            let format =
                format.filter(|format| !format.is_empty() && !format.eq_ignore_ascii_case("general"));
            if let Some(format) = format {
                self.formats.entry(format.to_owned()).or_default().insert((row, column));
            }
        }
        Ok(())
    }

    fn read_formulas(&mut self, mut cells: Reader<'_, '_>, range: Range, work: &Work) -> Result<(), String> {
        while let Some(cell) = cells.next_formula().map_err(|error| error.to_string())? {
            work.check()?;
            let (at, formula) = (cell.get_position(), cell.get_value());
            if !formula.is_empty() && range.has(at) && self.formulas.len() < MOST {
                self.formulas.insert(at, formula.chars().take(500).collect());
            }
        }
        Ok(())
    }

    /// What calamine does not read.
    fn read_parts(&mut self, bytes: &[u8], name: &str, range: Range, work: &Work) -> Result<(), String> {
        const BOOK: &str = "xl/workbook.xml";
        let mut archive = Archive::open(bytes, &work.anew())?;
        let source = Source { path: "", work, offers: &|_| false, depth: 0 };
        let parts = ooxml::relations(&mut archive, BOOK, source)?;
        let mut part = None;
        walk(&archive.xml(BOOK)?, work, |node| {
            if let Node::Open("sheet", start) = node
                && attribute(start, "name").as_deref() == Some(name)
            {
                part = attribute(start, "id").and_then(|id| parts.get(&id)).map(|(_, part)| part.clone());
            }
        })?;
        let Some(part) = part else { return Ok(()) };
        walk(&archive.xml(&part)?, work, |node| match node {
            Node::Open("row", start) if is_hidden(start) => {
                let row = attribute(start, "r").unwrap_or_default();
                if row.parse().is_ok_and(|row: u32| range.has((row.saturating_sub(1), range.first.1))) {
                    self.hidden.push(format!("row {row}"));
                }
            }
            Node::Open("col", start) if is_hidden(start) => {
                let of = |name| attribute(start, name).and_then(|text| text.parse::<u32>().ok()).unwrap_or(1);
                let name = |column: u32| column_name(column.saturating_sub(1));
                self.hidden.push(format!("column {}:{}", name(of("min")), name(of("max"))));
            }
            Node::Open("mergeCell", start) => self.merged.extend(attribute(start, "ref")),
            _ => {}
        })?;
        for (kind, part) in ooxml::relations(&mut archive, &part, source)?.into_values() {
            if kind == "comments" {
                self.read_comments(&archive.xml(&part)?, range, work)?;
            }
        }
        Ok(())
    }

    fn read_comments(&mut self, xml: &str, range: Range, work: &Work) -> Result<(), String> {
        let (mut cell, mut is_text) = (None, false);
        walk(xml, work, |node| match node {
            Node::Open("comment", start) => {
                cell = attribute(start, "ref")
                    .filter(|cell| Range::parse(cell).is_some_and(|at| range.has(at.first)));
            }
            Node::Close("comment") => cell = None,
            Node::Open("t", _) => is_text = true,
            Node::Close("t") => is_text = false,
            Node::Text(text) if is_text => {
                if let Some(cell) = &cell {
                    self.comments.entry(cell.clone()).or_default().push_str(text);
                }
            }
            _ => {}
        })
    }

    /// The details that there are, for a model that sees only values.
    fn hint(&self) -> String {
        let count =
            |cells: &BTreeMap<String, BTreeSet<(u32, u32)>>| cells.values().map(BTreeSet::len).sum::<usize>();
        let parts = [
            (count(&self.fills), "cells with a fill"),
            (self.comments.len(), "comments"),
            (self.merged.len(), "merged ranges"),
            (self.hidden.len(), "hidden rows or columns"),
        ];
        let parts: Vec<_> =
            parts.iter().filter(|(count, _)| *count > 0).map(|(count, of)| format!("{count} {of}")).collect();
        if parts.is_empty() {
            String::new()
        } else {
            format!("[there are {}: set `details` to see them]\n", parts.join(", "))
        }
    }

    fn to_text(&self) -> String {
        let areas = |cells: &BTreeMap<String, BTreeSet<(u32, u32)>>| -> Vec<String> {
            cells.iter().map(|(name, cells)| format!("{name}: {}", ranges(cells).join(" "))).collect()
        };
        let formulas = self.formulas.iter().map(|(at, formula)| format!("{}: ={formula}", cell_name(*at)));
        let comments =
            self.comments.iter().map(|(cell, text)| format!("{cell}: {}", text.trim().replace('\n', " ")));
        let mut text = String::new();
        for (title, lines) in [
            ("Fills", areas(&self.fills)),
            ("Formats", areas(&self.formats)),
            ("Formulas", formulas.collect()),
            ("Comments", comments.collect()),
            ("Merged", self.merged.clone()),
            ("Hidden", self.hidden.clone()),
        ] {
            let lines = lines.join("\n");
            let cut = lines.char_indices().nth(LONGEST).map(|(at, _)| at);
            let note = if cut.is_some() { "\n[there are more: set `range`]" } else { "" };
            if !lines.is_empty() {
                let _ = writeln!(text, "### {title}\n{}{note}", &lines[..cut.unwrap_or(lines.len())]);
            }
        }
        if text.is_empty() {
            "[no fills, comments, merged or hidden cells, formulas or formats]\n".to_owned()
        } else {
            text
        }
    }
}

fn is_hidden(start: &quick_xml::events::BytesStart<'_>) -> bool {
    attribute(start, "hidden").is_some_and(|hidden| hidden == "1" || hidden == "true")
}

/// The code of a color and the word for it, since questions say "green".
fn color_name(color: Color) -> String {
    let (red, green, blue) = (i32::from(color.red), i32::from(color.green), i32::from(color.blue));
    let (most, least) = (red.max(green).max(blue), red.min(green).min(blue));
    let spread = most - least;
    let hue = if spread == 0 {
        0
    } else if most == red {
        (60 * (green - blue) / spread).rem_euclid(360)
    } else if most == green {
        60 * (blue - red) / spread + 120
    } else {
        60 * (red - green) / spread + 240
    };
    let word = match (spread < 25, most, hue) {
        (true, ..60, _) => "black",
        (true, 230.., _) => "white",
        (true, ..) => "gray",
        (_, _, 0..15 | 330..) => "red",
        (_, ..190, 15..45) => "brown",
        (_, _, 15..45) => "orange",
        (_, _, 45..70) => "yellow",
        (_, _, 70..165) => "green",
        (_, _, 165..195) => "cyan",
        (_, _, 195..260) => "blue",
        (_, _, 260..290) => "purple",
        _ => "pink",
    };
    format!("{:02X}{:02X}{:02X} ({word})", color.red, color.green, color.blue)
}
