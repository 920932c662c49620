//! [`read_text`]: the text of a file: plain, or the text layer of a PDF. Pure.

use std::panic::{AssertUnwindSafe, catch_unwind};

use lopdf::{Document, LoadOptions};

/// The most bytes that a part of a PDF unpacks to.
const UNPACKED: usize = 32 << 20;
const MOST_PAGES: usize = 500;

/// The text of a file.
pub(crate) fn read_text(bytes: &[u8]) -> Result<String, String> {
    if bytes.starts_with(b"%PDF") {
        return pdf_text(bytes);
    }
    if let [0xff, 0xfe, rest @ ..] = bytes {
        return Ok(utf16(rest, u16::from_le_bytes));
    }
    if let [0xfe, 0xff, rest @ ..] = bytes {
        return Ok(utf16(rest, u16::from_be_bytes));
    }
    if bytes.contains(&0) {
        return Err(format!("this is no text: {}", kind_of(bytes)));
    }
    let text = String::from_utf8_lossy(bytes);
    Ok(text.strip_prefix('\u{feff}').unwrap_or(&text).to_owned())
}

/// The text layer of a PDF, page by page.
fn pdf_text(bytes: &[u8]) -> Result<String, String> {
    // The library reads files of strangers; a panic in it is the file's fault.
    let read = catch_unwind(AssertUnwindSafe(|| pages(bytes)));
    let pages = read.unwrap_or_else(|_| Err("it is broken".to_owned()));
    let pages = pages.map_err(|why| format!("the PDF cannot be read: {why}"))?;
    if pages.iter().all(|page| page.trim().is_empty()) {
        return Err("the PDF has no text layer: its pages are pictures".to_owned());
    }
    let numbered =
        pages.iter().enumerate().map(|(at, page)| format!("[page {}]\n{}", at + 1, page.trim_end()));
    Ok(numbered.collect::<Vec<_>>().join("\n\n"))
}

fn pages(bytes: &[u8]) -> Result<Vec<String>, String> {
    let options = LoadOptions { max_decompressed_size: Some(UNPACKED), ..LoadOptions::default() };
    let document = Document::load_mem_with_options(bytes, options).map_err(|error| error.to_string())?;
    if document.is_encrypted() {
        return Err("it is encrypted".to_owned());
    }
    let numbers: Vec<u32> = document.get_pages().into_keys().take(MOST_PAGES).collect();
    let mut left = UNPACKED;
    let mut pages = Vec::new();
    for number in numbers {
        let text = document.extract_text_with_limit(&[number], left).map_err(|error| error.to_string())?;
        left = left.saturating_sub(text.len());
        pages.push(text);
    }
    Ok(pages)
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> String {
    let units: Vec<u16> = bytes.chunks_exact(2).map(|pair| unit([pair[0], pair[1]])).collect();
    String::from_utf16_lossy(&units)
}

/// The kind of a file that is no text, and the tool that reads it.
fn kind_of(bytes: &[u8]) -> &'static str {
    match bytes {
        [b'P', b'K', 3, 4, ..] | [0xd0, 0xcf, 0x11, 0xe0, ..] => {
            "if it is a spreadsheet, `read_excel` reads it"
        }
        [0x89, b'P', b'N', b'G', ..] | [0xff, 0xd8, 0xff, ..] | [b'G', b'I', b'F', b'8', ..] => {
            "it is an image, which `analyze_image` looks at"
        }
        [b'I', b'D', b'3', ..]
        | [b'R', b'I', b'F', b'F', ..]
        | [0xff, 0xfb, ..]
        | [b'O', b'g', b'g', b'S', ..] => "it is a recording, which `understand_audio` listens to",
        _ => "it is data that no tool reads",
    }
}
