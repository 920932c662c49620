//! The text of a Word document: its body, its notes and comments, its headers and footers.

use super::ooxml::{pictures, text_of};
use super::{Archive, Source, bounded};

pub(super) fn read(bytes: &[u8], source: Source<'_>) -> Result<String, String> {
    let mut archive = Archive::open(bytes, source.work)?;
    let mut text = text_of(&archive.xml("word/document.xml")?, source)?;
    if text.is_empty() {
        text = "[the document has no text]\n".to_owned();
    }
    let beside = |name: &String| {
        let name = name.strip_prefix("word/").and_then(|name| name.strip_suffix(".xml"));
        let kinds = ["footnotes", "endnotes", "comments", "header", "footer"];
        name.is_some_and(|name| {
            kinds.contains(&name.trim_end_matches(|letter: char| letter.is_ascii_digit()))
        })
    };
    let mut names: Vec<_> = archive.names().into_iter().filter(beside).collect();
    names.sort();
    for name in names {
        let part = text_of(&archive.xml(&name)?, source)?;
        if !part.trim().is_empty() {
            let title = name.trim_start_matches("word/").trim_end_matches(".xml");
            text += &format!("\n[{title}]\n{part}");
        }
    }
    Ok(bounded(text + &pictures(&archive, "word/media/", source)))
}
