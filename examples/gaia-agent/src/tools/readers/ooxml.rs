//! The paragraphs, lists and tables of Word and PowerPoint, whose elements have the same local names.

use std::collections::BTreeMap;

use super::xml::{Node, attribute, walk};
use super::{Archive, Source};

/// Collects the text of one part.
#[derive(Default)]
struct Body {
    text: String,
    line: String,
    /// What the paragraph begins with: the marks of a heading or of a list.
    mark: String,
    /// The depth of tables; a table within a cell is text of the cell.
    tables: usize,
    cells: Vec<String>,
    /// Elements in which nothing counts: the older form of a drawing, and fields such as a slide's number.
    skipped: usize,
    is_text: bool,
    is_title: bool,
}

/// The text of a part.
pub(super) fn text_of(xml: &str, source: Source<'_>) -> Result<String, String> {
    let mut body = Body::default();
    walk(xml, source.work, |node| match node {
        Node::Open("Fallback" | "fld", _) => body.skipped += 1,
        Node::Close("Fallback" | "fld") => body.skipped = body.skipped.saturating_sub(1),
        _ if body.skipped > 0 => {}
        Node::Open(name, start) => body.open(name, &|of| attribute(start, of)),
        Node::Close(name) => body.close(name),
        Node::Text(text) if body.is_text => body.line.push_str(text),
        Node::Text(_) => {}
    })?;
    body.end_line();
    Ok(body.text)
}

impl Body {
    fn open(&mut self, name: &str, attribute: &dyn Fn(&str) -> Option<String>) {
        match name {
            "t" => self.is_text = true,
            "tab" => self.line.push('\t'),
            "br" | "cr" => self.line.push(if self.tables > 0 { ' ' } else { '\n' }),
            "tbl" => {
                self.end_line();
                self.tables += 1;
            }
            "tr" if self.tables == 1 => self.cells.clear(),
            "tc" if self.tables == 1 => self.cells.push(String::new()),
            "pStyle" => self.mark = heading(&attribute("val").unwrap_or_default()),
            "ilvl" => self.mark = list(attribute("val")),
            "numPr" if self.mark.is_empty() => self.mark = list(None),
            "ph" => self.is_title = attribute("type").is_some_and(|of| of == "title" || of == "ctrTitle"),
            // What a picture shows, in the words of its author.
            "docPr" | "cNvPr" => {
                if let Some(words) = attribute("descr").filter(|words| !words.trim().is_empty()) {
                    self.line += &format!("[picture: {}]", words.trim());
                }
            }
            _ => {}
        }
    }

    fn close(&mut self, name: &str) {
        match name {
            "t" => self.is_text = false,
            "p" => self.end_line(),
            "sp" => self.is_title = false,
            "tbl" => self.tables = self.tables.saturating_sub(1),
            "tr" if self.tables == 1 => {
                let cells: Vec<_> = self.cells.iter().map(|cell| cell.trim()).collect();
                self.text += &format!("| {} |\n", cells.join(" | "));
            }
            _ => {}
        }
    }

    fn end_line(&mut self) {
        let (line, mark) = (std::mem::take(&mut self.line), std::mem::take(&mut self.mark));
        let line = line.trim_end();
        if line.is_empty() {
            return;
        }
        match self.cells.last_mut().filter(|_| self.tables > 0) {
            Some(cell) => *cell += &format!("{line} "),
            None if self.is_title => self.text += &format!("# {line}\n"),
            None => self.text += &format!("{mark}{line}\n"),
        }
    }
}

/// `Heading2` is a heading of the second level; lists have styles as well.
fn heading(style: &str) -> String {
    let style = style.to_lowercase();
    let level = style.strip_prefix("heading").and_then(|level| level.trim().parse().ok());
    match (style.as_str(), level) {
        ("title", _) => "# ".to_owned(),
        (_, Some(level)) if (1..=9).contains(&level) => "#".repeat(level) + " ",
        (style, _) if style.starts_with("list") => list(None),
        _ => String::new(),
    }
}

fn list(level: Option<String>) -> String {
    let level = level.and_then(|level| level.parse::<usize>().ok()).unwrap_or(0).min(9);
    "  ".repeat(level) + "- "
}

/// The targets of a part's relations, by their ids and with the last word of their types.
pub(super) fn relations(
    archive: &mut Archive<'_>,
    part: &str,
    source: Source<'_>,
) -> Result<BTreeMap<String, (String, String)>, String> {
    let (folder, name) = part.rsplit_once('/').unwrap_or(("", part));
    let xml = archive.xml(&format!("{folder}/_rels/{name}.rels"))?;
    let mut found = BTreeMap::new();
    walk(&xml, source.work, |node| {
        if let Node::Open("Relationship", start) = node {
            let of = |name: &str| attribute(start, name).unwrap_or_default();
            let kind = of("Type").rsplit('/').next().unwrap_or_default().to_owned();
            found.insert(of("Id"), (kind, below(folder, &of("Target"))));
        }
    })?;
    Ok(found)
}

/// The name of a part that another one in this folder names.
fn below(folder: &str, target: &str) -> String {
    if let Some(whole) = target.strip_prefix('/') {
        return whole.to_owned();
    }
    let mut parts: Vec<&str> = folder.split('/').collect();
    for part in target.split('/') {
        match part {
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// A line about the pictures of a document, if this run has a tool that looks at them.
pub(super) fn pictures(archive: &Archive<'_>, folder: &str, source: Source<'_>) -> String {
    let names = archive.names().into_iter().filter(|name| name.starts_with(folder));
    let paths: Vec<_> = names.map(|name| format!("`{}/{name}`", source.path)).collect();
    if paths.is_empty() || !(source.offers)("analyze_image") {
        return String::new();
    }
    format!("\n[pictures, which `analyze_image` looks at: {}]\n", paths.join(", "))
}
