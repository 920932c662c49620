//! The text of bytes: by a byte order mark, by what the text declares, as UTF-8, else by a guess.

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE};

/// How far a declaration is looked for.
const HEAD: usize = 1024;

/// The text, after a line that says its encoding if that is not UTF-8. `label` is the encoding that a server
/// says, or empty.
pub(in crate::tools) fn text(bytes: &[u8], label: &str) -> String {
    let (encoding, why) = encoding(bytes, label);
    let (text, _, _) = encoding.decode(bytes);
    if encoding == UTF_8 {
        text.into_owned()
    } else {
        format!("[the text is in {}, {why}]\n{text}", encoding.name())
    }
}

fn encoding(bytes: &[u8], label: &str) -> (&'static Encoding, &'static str) {
    if let Some((encoding, _)) = Encoding::for_bom(bytes) {
        return (encoding, "as its first bytes say");
    }
    if let Some(encoding) = wide(bytes) {
        return (encoding, "by a guess");
    }
    if std::str::from_utf8(bytes).is_ok() {
        return (UTF_8, "");
    }
    let declared = Encoding::for_label(label.as_bytes()).or_else(|| declared(bytes));
    if let Some(encoding) = declared {
        return (encoding, "as it declares");
    }
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(bytes, true);
    (detector.guess(None, Utf8Detection::Allow), "by a guess")
}

/// The encoding that XML, HTML or Python code declares in its first lines.
fn declared(bytes: &[u8]) -> Option<&'static Encoding> {
    let head = String::from_utf8_lossy(&bytes[..bytes.len().min(HEAD)]).to_lowercase();
    ["encoding=", "charset=", "coding:", "coding="].iter().find_map(|word| {
        let (_, rest) = head.split_once(word)?;
        let name = rest.trim_start_matches([' ', '"', '\'']);
        let name: String = name
            .chars()
            .take_while(|letter| letter.is_ascii_alphanumeric() || "-_".contains(*letter))
            .collect();
        Encoding::for_label(name.as_bytes()).filter(|encoding| *encoding != UTF_8)
    })
}

/// The form of UTF-16 that a text without a mark is in: nearly all zeros are on one side of the pairs.
pub(in crate::tools) fn wide(bytes: &[u8]) -> Option<&'static Encoding> {
    if let Some((encoding, _)) = Encoding::for_bom(bytes) {
        return Some(encoding);
    }
    let head = &bytes[..bytes.len().min(HEAD)];
    let zeros = |at: usize| head.iter().skip(at).step_by(2).filter(|byte| **byte == 0).count();
    let (even, odd, pairs) = (zeros(0), zeros(1), head.len() / 2);
    if pairs < 2 || !bytes.len().is_multiple_of(2) {
        None
    } else if even == 0 && odd * 2 > pairs {
        Some(UTF_16LE)
    } else if odd == 0 && even * 2 > pairs {
        Some(UTF_16BE)
    } else {
        None
    }
}
