//! The text of a file, by its kind: one reader a module. Pure: bytes in, text out.
//!
//! Files come from strangers. Each reader is bounded in bytes, elements and depth, and ends with its
//! [`Work`].

mod archive;
mod docx;
mod encoding;
mod ooxml;
mod pdf;
mod pptx;
mod sheets;
mod view;
mod xml;

use super::kinds::{Reader, identify};
use super::work::Work;

pub(super) use archive::{Archive, member};
pub(super) use encoding::{text as decode, wide};
pub(super) use sheets::{Wanted, read_sheets};
pub(super) use view::{page, view};
pub(super) use xml::{Node, attribute, walk};

/// The most bytes of the text of a file.
const TEXT: usize = 8 << 20;
/// Archives within archives, deeper than this, are only listed.
const DEEPEST: usize = 3;

/// What a reader needs beside the content.
#[derive(Clone, Copy)]
pub(super) struct Source<'a> {
    /// The path that the model knows the file by.
    pub(super) path: &'a str,
    pub(super) work: &'a Work,
    /// Whether this run has a tool.
    pub(super) offers: &'a dyn Fn(&str) -> bool,
    /// How many archives the file is in.
    pub(super) depth: usize,
}

/// The text of a file, after a line about what the name or the encoding does not say.
pub(super) fn read(bytes: &[u8], source: Source<'_>) -> Result<String, String> {
    source.work.check()?;
    if bytes.is_empty() {
        return Ok("[the file is empty]".to_owned());
    }
    let (kind, said) = identify(source.path, bytes);
    let misnamed =
        said.map(|said| format!("[by its name this is {}; its content is {}]\n", said.name, kind.name));
    let text = match kind.reader {
        Reader::Text => encoding::text(bytes, ""),
        Reader::Html => {
            let page = encoding::text(bytes, "");
            super::html::page(&page, None, source.work)?.to_text()
        }
        Reader::Pdf => pdf::read(bytes, source)?,
        Reader::Docx => docx::read(bytes, source)?,
        Reader::Pptx => pptx::read(bytes, source)?,
        Reader::Archive => archive::read(bytes, source)?,
        Reader::Sheet => {
            let text = read_sheets(bytes, &Wanted::default(), source.work)?;
            match (source.offers)("read_excel") {
                true => format!("{text}[`read_excel` shows other sheets and ranges, and fills]\n"),
                false => text,
            }
        }
        Reader::None => return Err(kind.sentence(source.offers)),
    };
    Ok(misnamed.unwrap_or_default() + &text)
}

/// Cuts a text that is too long at a character, and says so.
fn bounded(mut text: String) -> String {
    if text.len() > TEXT {
        let mut end = TEXT;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        text += "\n[the rest of the file is left out: it is too long]";
    }
    text
}
