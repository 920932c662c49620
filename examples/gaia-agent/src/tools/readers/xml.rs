//! [`walk`]: the elements and texts of an XML document, one after another. Nothing is kept of them, so
//! depth costs nothing; entities that a document defines are not expanded.

use quick_xml::Reader;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::{BytesStart, Event};

use crate::tools::work::Work;

/// The most elements and texts that are read.
const MOST: usize = 5_000_000;

/// A part of a document. Names are local ones.
pub(in crate::tools) enum Node<'n> {
    Open(&'n str, &'n BytesStart<'n>),
    Close(&'n str),
    Text(&'n str),
}

/// Calls a function with each part, in order.
pub(in crate::tools) fn walk(
    document: &str,
    work: &Work,
    mut heard: impl FnMut(Node<'_>),
) -> Result<(), String> {
    let wrong = |error: &dyn std::fmt::Display| format!("its XML cannot be read: {error}");
    let mut reader = Reader::from_str(document);
    for count in 0..MOST {
        if count % 1024 == 0 {
            work.check()?;
        }
        match reader.read_event().map_err(|error| wrong(&error))? {
            Event::Start(start) => heard(Node::Open(start.local_name().as_ref(), &start)),
            Event::Empty(start) => {
                heard(Node::Open(start.local_name().as_ref(), &start));
                heard(Node::Close(start.local_name().as_ref()));
            }
            Event::End(end) => heard(Node::Close(end.local_name().as_ref())),
            Event::Text(text) => heard(Node::Text(&text)),
            Event::CData(text) => heard(Node::Text(&text)),
            Event::GeneralRef(name) => match name.resolve_char_ref() {
                Ok(Some(letter)) => heard(Node::Text(letter.encode_utf8(&mut [0; 4]))),
                _ => heard(Node::Text(resolve_predefined_entity(&name).unwrap_or_default())),
            },
            Event::Eof => return Ok(()),
            _ => {}
        }
    }
    Err("it has too many elements".to_owned())
}

/// The value of an attribute, by its local name.
pub(in crate::tools) fn attribute(start: &BytesStart<'_>, name: &str) -> Option<String> {
    let found = start.attributes().flatten().find(|attribute| attribute.key.local_name().as_ref() == name)?;
    Some(
        quick_xml::escape::unescape(&found.value)
            .map_or_else(|_| found.value.to_string(), |value| value.into_owned()),
    )
}
