//! The papers in a feed of arXiv, and the lines of a transcript. Pure.

use quick_xml::Reader;
use quick_xml::events::Event;

/// The most elements of a document that are read.
const MOST: usize = 200_000;

/// The papers of an Atom feed, each as some lines.
pub(super) fn papers(feed: &str) -> Result<Vec<String>, String> {
    let mut papers = Vec::new();
    let mut paper: Option<Paper> = None;
    let mut is_feed = false;
    read_xml(feed, |path, text| {
        is_feed |= path == ["feed"];
        let Some(at) = path.iter().position(|name| *name == "entry") else { return };
        let paper = paper.get_or_insert_default();
        match &path[at + 1..] {
            [] => papers.push(std::mem::take(paper).shown()),
            ["title"] => paper.title = one_line(text),
            ["id"] => paper.id = one_line(text),
            ["published"] => paper.published = day(text),
            ["updated"] => paper.updated = day(text),
            ["author", "name"] => paper.authors.push(one_line(text)),
            ["summary"] => paper.summary = one_line(text),
            ["comment"] => paper.comment = one_line(text),
            ["journal_ref"] => paper.journal = one_line(text),
            _ => {}
        }
    })?;
    if is_feed { Ok(papers) } else { Err("the answer is no feed of papers".to_owned()) }
}

/// The lines of a transcript: the text of each `<text>` or `<p>`, with its start in seconds.
pub(super) fn transcript(document: &str) -> Result<Vec<String>, String> {
    let mut lines = Vec::new();
    read_xml(document, |path, text| {
        if matches!(path, [.., "text" | "p"]) && !text.trim().is_empty() {
            // It was escaped twice.
            lines.push(one_line(&super::html::unescaped(text)));
        }
    })?;
    Ok(lines)
}

#[derive(Default)]
struct Paper {
    title: String,
    id: String,
    published: String,
    updated: String,
    authors: Vec<String>,
    summary: String,
    comment: String,
    journal: String,
}

impl Paper {
    fn shown(&self) -> String {
        let mut text = format!(
            "{}\n{}\nsubmitted {}, last changed {}\nauthors: {}",
            self.title,
            self.id,
            self.published,
            self.updated,
            self.authors.join(", ")
        );
        for (name, value) in [("comment", &self.comment), ("journal", &self.journal)] {
            if !value.is_empty() {
                text += &format!("\n{name}: {value}");
            }
        }
        text + "\nabstract: " + &self.summary
    }
}

/// Calls a function with the path of each element, by local names, and with its text, when it ends.
fn read_xml(document: &str, mut ended: impl FnMut(&[&str], &str)) -> Result<(), String> {
    let wrong = |error: &dyn std::fmt::Display| format!("the answer is no XML that can be read: {error}");
    let mut reader = Reader::from_str(document);
    let (mut path, mut texts): (Vec<String>, Vec<String>) = (Vec::new(), vec![String::new()]);
    for _ in 0..MOST {
        match reader.read_event().map_err(|error| wrong(&error))? {
            Event::Start(start) => {
                path.push(start.local_name().as_ref().to_owned());
                texts.push(String::new());
            }
            Event::End(_) => {
                let text = texts.pop().unwrap_or_default();
                let names: Vec<&str> = path.iter().map(String::as_str).collect();
                ended(&names, &text);
                path.pop();
            }
            Event::Text(text) => {
                if let Some(last) = texts.last_mut() {
                    last.push_str(&text);
                }
            }
            Event::GeneralRef(name) => {
                if let Some(last) = texts.last_mut() {
                    last.push_str(&super::html::unescaped(&format!("&{};", &*name)));
                }
            }
            Event::CData(text) => {
                if let Some(last) = texts.last_mut() {
                    last.push_str(&text);
                }
            }
            Event::Eof => return Ok(()),
            _ => {}
        }
    }
    Err("the answer is too long".to_owned())
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn day(time: &str) -> String {
    time.trim().split('T').next().unwrap_or_default().to_owned()
}
