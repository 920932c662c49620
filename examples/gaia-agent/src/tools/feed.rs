//! The papers in a feed of arXiv, and the lines of a transcript. Pure.

use std::collections::BTreeMap;

use serde_json::Value;

use super::readers::{Node, attribute, walk};
use super::work::Work;

/// The papers of an Atom feed, each as some lines.
pub(super) fn papers(feed: &str) -> Result<Vec<String>, String> {
    let (mut papers, mut paper) = (Vec::new(), Paper::new());
    let mut is_feed = false;
    read_xml(feed, |path, text| {
        is_feed |= path == ["feed"];
        let Some(at) = path.iter().position(|name| *name == "entry") else { return };
        match path[at + 1..].join("/") {
            part if part.is_empty() => papers.push(shown(&std::mem::take(&mut paper))),
            part => paper.entry(part).or_default().push(one_line(text)),
        }
    })?;
    // An error comes as a paper.
    if let Some(error) = papers.iter().find(|paper| paper.contains("/api/errors")) {
        return Err(format!(
            "arXiv refused the request: {}",
            error.rsplit("abstract: ").next().unwrap_or_default()
        ));
    }
    if is_feed { Ok(papers) } else { Err("the answer is no feed of papers".to_owned()) }
}

/// The lines of a transcript with their times, in each of YouTube's forms: `<text start>` in seconds (srv1),
/// `<p t>` in milliseconds with words in `<s>` (srv3), and JSON (json3).
pub(super) fn transcript(document: &str) -> Result<Vec<String>, String> {
    if document.trim_start().starts_with('{') {
        return events(document);
    }
    let mut lines = Vec::new();
    let mut line: Option<(f64, String)> = None;
    walk(document, &Work::new(), |node| match node {
        Node::Open("text", start) => line = Some((number(attribute(start, "start")), String::new())),
        Node::Open("p", start) => line = Some((number(attribute(start, "t")) / 1000.0, String::new())),
        Node::Close("text" | "p") => lines.extend(line.take().and_then(|(at, text)| timed(at, &text))),
        Node::Text(text) => {
            if let Some((_, line)) = &mut line {
                line.push_str(text);
            }
        }
        _ => {}
    })?;
    Ok(lines)
}

fn events(document: &str) -> Result<Vec<String>, String> {
    let captions: Value = serde_json::from_str(document).map_err(|error| error.to_string())?;
    let events = captions["events"].as_array().ok_or("the captions have another form")?;
    let line = |caption: &Value| {
        let parts = caption["segs"].as_array()?.iter();
        let text: String = parts.filter_map(|part| part["utf8"].as_str()).collect();
        timed(caption["tStartMs"].as_f64().unwrap_or_default() / 1000.0, &text)
    };
    Ok(events.iter().filter_map(line).collect())
}

/// A line with its time; `None` for one without words.
fn timed(at: f64, text: &str) -> Option<String> {
    // It was escaped twice.
    let text = one_line(&super::html::unescaped(text));
    let seconds = at.max(0.0) as u64;
    (!text.is_empty()).then(|| format!("[{}:{:02}] {text}", seconds / 60, seconds % 60))
}

fn number(text: Option<String>) -> f64 {
    text.and_then(|text| text.parse().ok()).unwrap_or_default()
}

/// The texts of a paper, by the paths of their elements.
type Paper = BTreeMap<String, Vec<String>>;

fn shown(paper: &Paper) -> String {
    let all = |part: &str| paper.get(part).map(|texts| texts.join(", ")).unwrap_or_default();
    let [published, updated] =
        ["published", "updated"].map(|part| all(part).split('T').next().unwrap_or_default().to_owned());
    let mut text = format!(
        "{}\n{}\nsubmitted {published}, last changed {updated}\nauthors: {}",
        all("title"),
        all("id"),
        all("author/name")
    );
    for (name, value) in [("comment", all("comment")), ("journal", all("journal_ref"))] {
        if !value.is_empty() {
            text += &format!("\n{name}: {value}");
        }
    }
    text + "\nabstract: " + &all("summary")
}

/// Calls a function with the path of each element, by local names, and with its text, when it ends.
fn read_xml(document: &str, mut ended: impl FnMut(&[&str], &str)) -> Result<(), String> {
    let (mut path, mut texts): (Vec<String>, Vec<String>) = (Vec::new(), vec![String::new()]);
    walk(document, &Work::new(), |node| match node {
        Node::Open(name, _) => {
            path.push(name.to_owned());
            texts.push(String::new());
        }
        Node::Close(_) => {
            let text = texts.pop().unwrap_or_default();
            let names: Vec<&str> = path.iter().map(String::as_str).collect();
            ended(&names, &text);
            path.pop();
        }
        Node::Text(text) => {
            if let Some(last) = texts.last_mut() {
                last.push_str(text);
            }
        }
    })
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
