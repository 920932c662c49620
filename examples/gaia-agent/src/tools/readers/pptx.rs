//! The text of a presentation: of each slide its shapes and tables, and the speaker's notes.

use super::ooxml::{pictures, relations, text_of};
use super::xml::{Node, attribute, walk};
use super::{Archive, Source, bounded};

const BOOK: &str = "ppt/presentation.xml";

pub(super) fn read(bytes: &[u8], source: Source<'_>) -> Result<String, String> {
    let mut archive = Archive::open(bytes, source.work)?;
    let known = relations(&mut archive, BOOK, source)?;
    let mut slides = Vec::new();
    walk(&archive.xml(BOOK)?, source.work, |node| {
        if let Node::Open("sldId", start) = node {
            // The other attribute of this local name is the slide's number.
            let ids = start.attributes().flatten().map(|attribute| attribute.value.into_owned());
            slides.extend(ids.filter_map(|id| known.get(&id)).map(|(_, part)| part.clone()));
        }
    })?;
    let mut text = format!("{} slides\n", slides.len());
    for (at, part) in slides.iter().enumerate() {
        let xml = archive.xml(part)?;
        let hidden = if is_hidden(&xml, source)? { ", hidden" } else { "" };
        text += &format!("\n[slide {}{hidden}]\n{}", at + 1, text_of(&xml, source)?);
        let notes = relations(&mut archive, part, source)?;
        for (_, notes) in notes.into_values().filter(|(kind, _)| kind == "notesSlide") {
            let notes = text_of(&archive.xml(&notes)?, source)?;
            if !notes.trim().is_empty() {
                text += &format!("[notes of the speaker]\n{notes}");
            }
        }
    }
    Ok(bounded(text + &pictures(&archive, "ppt/media/", source)))
}

fn is_hidden(xml: &str, source: Source<'_>) -> Result<bool, String> {
    let mut hidden = false;
    walk(xml, source.work, |node| {
        if let Node::Open("sld", start) = node {
            hidden = attribute(start, "show").is_some_and(|show| show == "0" || show == "false");
        }
    })?;
    Ok(hidden)
}
