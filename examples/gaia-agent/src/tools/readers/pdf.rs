//! The text layer of a PDF, page by page.

use std::panic::{AssertUnwindSafe, catch_unwind};

use lopdf::{Document, LoadOptions};

use super::{Source, bounded};

/// The most bytes that a part of a PDF unpacks to.
const UNPACKED: usize = 32 << 20;
const MOST_PAGES: usize = 2_000;

pub(in crate::tools) fn read(bytes: &[u8], source: Source<'_>) -> Result<String, String> {
    // The library reads files of strangers; a panic in it is the file's fault.
    let read = catch_unwind(AssertUnwindSafe(|| pages(bytes, source)));
    let pages = read.unwrap_or_else(|_| Err("it is broken".to_owned()));
    let pages = pages.map_err(|why| format!("the PDF cannot be read: {why}"))?;
    let is_scan = pages.iter().all(|page| page.trim().is_empty());
    if is_scan {
        let help = match (source.offers)("analyze_image") {
            true => "; `analyze_image` looks at them",
            false => ", and no tool of this run looks at them",
        };
        return Err(format!("the PDF has no text layer: its {} pages are pictures{help}", pages.len()));
    }
    let numbered =
        pages.iter().enumerate().map(|(at, page)| format!("[page {}]\n{}", at + 1, page.trim_end()));
    Ok(bounded(numbered.collect::<Vec<_>>().join("\n\n")))
}

fn pages(bytes: &[u8], source: Source<'_>) -> Result<Vec<String>, String> {
    let options = LoadOptions { max_decompressed_size: Some(UNPACKED), ..LoadOptions::default() };
    let document = Document::load_mem_with_options(bytes, options).map_err(|error| match error {
        lopdf::Error::InvalidPassword => "a password protects it".to_owned(),
        other => other.to_string(),
    })?;
    if document.is_encrypted() {
        return Err("a password protects it".to_owned());
    }
    let numbers: Vec<u32> = document.get_pages().into_keys().take(MOST_PAGES).collect();
    let mut left = UNPACKED;
    let mut pages = Vec::new();
    for number in numbers {
        source.work.check()?;
        let text = document.extract_text_with_limit(&[number], left).map_err(|error| error.to_string())?;
        left = left.saturating_sub(text.len());
        pages.push(text);
    }
    Ok(pages)
}
