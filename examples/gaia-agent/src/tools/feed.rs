//! The papers in a feed of arXiv, and the lines of a transcript. Pure.

use serde::Deserialize;

use super::readers::{Node, attribute, walk};
use super::work::Work;

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

#[derive(Deserialize)]
struct Captions {
    events: Vec<Caption>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Caption {
    #[serde(default)]
    t_start_ms: f64,
    #[serde(default)]
    segs: Vec<Segment>,
}

#[derive(Deserialize)]
struct Segment {
    #[serde(default)]
    utf8: String,
}

fn events(document: &str) -> Result<Vec<String>, String> {
    let captions: Captions =
        serde_json::from_str(document).map_err(|error| format!("the captions have another form: {error}"))?;
    let line = |caption: &Caption| {
        let text: String = caption.segs.iter().map(|segment| segment.utf8.as_str()).collect();
        timed(caption.t_start_ms / 1000.0, &text)
    };
    Ok(captions.events.iter().filter_map(line).collect())
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

fn day(time: &str) -> String {
    time.trim().split('T').next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn captions_of_all_three_forms_have_their_times() {
        let srv1 = "<transcript><text start=\"61.5\" dur=\"2\">It&amp;#39;s hot</text><text start=\"70\"> </text></transcript>";
        let srv3 = "<timedtext format=\"3\"><body><w t=\"0\"/><p t=\"61500\" d=\"9\"><s>It&amp;#39;s</s><s t=\"9\"> hot</s></p><p t=\"7\" a=\"1\">\n</p></body></timedtext>";
        let json3 = r#"{"wireMagic": "pb3", "events": [{"tStartMs": 0, "id": 1}, {"tStartMs": 61500, "segs": [{"utf8": "It's"}, {"utf8": " hot"}]}, {"tStartMs": 7, "segs": [{"utf8": "\n"}]}]}"#;
        for document in [srv1, srv3, json3] {
            assert_eq!(transcript(document).unwrap(), ["[1:01] It's hot"], "{document}");
        }
        assert!(transcript("{\"events\": 7}").is_err() && transcript("<p").is_err());
    }

    #[test]
    fn an_error_of_arxiv_is_no_paper() {
        let feed = "<feed><entry><id>http://arxiv.org/api/errors#incorrect_id</id><title>Error</title><summary>incorrect id format</summary></entry></feed>";
        assert_eq!(papers(feed).unwrap_err(), "arXiv refused the request: incorrect id format");
    }
}
