//! The kinds of files, in one table. The instructions, `list_files`, `read_file` and the tools for media all
//! use it, so they name the same kind and the same tool for a file.
//!
//! The content decides; the name counts only where the content has no mark, as that of a text.

use super::readers::Archive;
use super::work::Work;

/// The reader of a file's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reader {
    Text,
    Html,
    Pdf,
    Docx,
    Pptx,
    Archive,
    Sheet,
    /// No reader makes a text of it.
    None,
}

/// A kind of file.
#[derive(Debug)]
pub(super) struct Kind {
    /// In words.
    pub(super) name: &'static str,
    extensions: &'static [&'static str],
    /// Beginnings of the content; `?` stands for any byte.
    marks: &'static [&'static [u8]],
    /// The media type for a model that sees and hears; empty if it takes none of this kind.
    pub(super) media_type: &'static str,
    pub(super) reader: Reader,
    /// The tools for it, the best first, and what each does.
    tools: &'static [(&'static str, &'static str)],
}

const READ: (&str, &str) = ("read_file", "shows its text");
const SHEET: &[(&str, &str)] = &[("read_excel", "shows its cells")];
const LOOK: &[(&str, &str)] = &[("analyze_image", "looks at it")];
const HEAR: &[(&str, &str)] = &[("understand_audio", "listens to it")];
const WATCH: &[(&str, &str)] = &[("understand_video", "watches it")];

/// The mark of an archive, whose members say more.
const ZIP: &[u8] = b"PK\x03\x04";
/// The mark of the older formats of Office, and of a newer one under a password.
const OLE: &[u8] = &[0xd0, 0xcf, 0x11, 0xe0];

const fn kind(
    name: &'static str,
    extensions: &'static [&'static str],
    marks: &'static [&'static [u8]],
    reader: Reader,
    tools: &'static [(&'static str, &'static str)],
) -> Kind {
    Kind { name, extensions, marks, media_type: "", reader, tools }
}

const fn media(
    name: &'static str,
    media_type: &'static str,
    extensions: &'static [&'static str],
    marks: &'static [&'static [u8]],
    tools: &'static [(&'static str, &'static str)],
) -> Kind {
    Kind { name, extensions, marks, media_type, reader: Reader::None, tools }
}

const KINDS: &[Kind] = &[
    kind("a spreadsheet", &["xlsx", "xlsm", "xlsb", "xls"], &[], Reader::Sheet, SHEET),
    kind("a Word document", &["docx", "docm"], &[], Reader::Docx, &[READ]),
    kind("a presentation", &["pptx", "pptm"], &[], Reader::Pptx, &[READ]),
    kind("an OpenDocument file", &["ods", "odt", "odp"], &[], Reader::None, &[]),
    kind("a document of an old Office", &["doc", "ppt"], &[], Reader::None, &[]),
    kind(
        "an archive",
        &["zip"],
        &[b"PK\x05\x06"],
        Reader::Archive,
        &[("read_file", "lists and shows its files")],
    ),
    Kind {
        media_type: "application/pdf",
        ..kind("a PDF", &["pdf"], &[b"%PDF"], Reader::Pdf, &[READ, ("analyze_image", "looks at its pages")])
    },
    kind("a web page", &["html", "htm", "xhtml"], &[], Reader::Html, &[READ]),
    kind("Python code", &["py"], &[], Reader::Text, &[("execute_python_file", "runs it"), READ]),
    kind("a table as text", &["csv", "tsv"], &[], Reader::Text, &[READ]),
    kind("a protein's structure as text", &["pdb"], &[], Reader::Text, &[READ]),
    kind("JSON", &["json", "jsonl", "jsonld"], &[], Reader::Text, &[READ]),
    kind("XML", &["xml", "svg"], &[], Reader::Text, &[READ]),
    kind("a text", &["txt", "md"], &[], Reader::Text, &[READ]),
    media("an image", "image/png", &["png"], &[b"\x89PNG"], LOOK),
    media("an image", "image/jpeg", &["jpg", "jpeg"], &[b"\xff\xd8\xff"], LOOK),
    media("an image", "image/gif", &["gif"], &[b"GIF87a", b"GIF89a"], LOOK),
    media("an image", "image/webp", &["webp"], &[b"RIFF????WEBP"], LOOK),
    media("an image", "image/heic", &["heic"], &[b"????ftyphei"], LOOK),
    media("a recording", "audio/wav", &["wav"], &[b"RIFF????WAVE"], HEAR),
    media(
        "a recording",
        "audio/mpeg",
        &["mp3"],
        &[b"ID3\x02", b"ID3\x03", b"ID3\x04", b"\xff\xfb", b"\xff\xf3", b"\xff\xf2"],
        HEAR,
    ),
    media("a recording", "audio/mp4", &["m4a"], &[b"????ftypM4A"], HEAR),
    media("a recording", "audio/flac", &["flac"], &[b"fLaC\0"], HEAR),
    media("a recording", "audio/ogg", &["ogg"], &[b"OggS\0"], HEAR),
    media("a recording", "audio/aac", &["aac"], &[], HEAR),
    media("a video", "video/quicktime", &["mov"], &[b"????ftypqt"], WATCH),
    media("a video", "video/mp4", &["mp4"], &[b"????ftyp"], WATCH),
    media("a video", "video/webm", &["webm"], &[b"\x1a\x45\xdf\xa3"], WATCH),
    media("a video", "video/mpeg", &["mpeg", "mpg"], &[b"\x00\x00\x01\xba"], WATCH),
    kind("a Parquet file", &["parquet"], &[b"PAR1\x15"], Reader::None, &[]),
];

/// A file without a mark and without a known name.
static UNKNOWN: Kind = kind("data of an unknown kind", &[], &[], Reader::None, &[]);
static PROTECTED: Kind = kind("a document that a password protects", &[], &[], Reader::None, &[]);
static EMPTY: Kind = kind("an empty file", &[], &[], Reader::None, &[]);
static PLAIN: Kind = kind("a text", &[], &[], Reader::Text, &[READ]);

impl Kind {
    /// The tools for it that this run has, and what each does; empty if there are none.
    pub(super) fn tools(&self, offers: &dyn Fn(&str) -> bool) -> String {
        let offered = self.tools.iter().filter(|(tool, _)| offers(tool));
        let offered: Vec<_> = offered.map(|(tool, does)| format!("`{tool}` {does}")).collect();
        offered.join(", ")
    }

    /// What it is and the tool for it, as a sentence.
    pub(super) fn sentence(&self, offers: &dyn Fn(&str) -> bool) -> String {
        match self.tools(offers) {
            tools if tools.is_empty() => format!("It is {}: no tool of this run reads it.", self.name),
            tools => format!("It is {}: {tools}.", self.name),
        }
    }
}

/// The kind that a name says.
pub(super) fn by_name(name: &str) -> Option<&'static Kind> {
    let (_, extension) = name.rsplit_once('.')?;
    let extension = extension.to_lowercase();
    KINDS.iter().find(|kind| kind.extensions.contains(&extension.as_str()))
}

fn of_extension(extension: &str) -> &'static Kind {
    by_name(&format!(".{extension}")).unwrap_or(&UNKNOWN)
}

/// The kind that the content says; `None` for a text, and for data without a mark.
pub(super) fn by_content(bytes: &[u8]) -> Option<&'static Kind> {
    if bytes.starts_with(ZIP) {
        return Some(of_extension(packed(bytes)));
    }
    if bytes.starts_with(OLE) {
        let has = |stream: &str| {
            let name: Vec<u8> = stream.encode_utf16().flat_map(u16::to_le_bytes).collect();
            bytes.windows(name.len()).any(|window| window == name)
        };
        let is_sheet = has("Workbook") || has("Book");
        return Some(match has("EncryptedPackage") {
            true => &PROTECTED,
            false => of_extension(if is_sheet { "xls" } else { "doc" }),
        });
    }
    let fits = |mark: &&&[u8]| {
        bytes.len() >= mark.len() && mark.iter().zip(bytes).all(|(sign, byte)| *sign == b'?' || sign == byte)
    };
    KINDS.iter().find(|kind| kind.marks.iter().any(|mark| fits(&mark)))
}

/// The extension of what an archive is.
fn packed(bytes: &[u8]) -> &'static str {
    let Ok(archive) = Archive::open(bytes, &Work::new()) else { return "zip" };
    let known = [
        ("word/document.xml", "docx"),
        ("ppt/presentation.xml", "pptx"),
        ("xl/workbook.xml", "xlsx"),
        ("xl/workbook.bin", "xlsb"),
        ("META-INF/manifest.xml", "odt"),
    ];
    known.iter().find(|(member, _)| archive.has(member)).map_or("zip", |(_, extension)| extension)
}

/// The kind of a file, and the kind that its name says if that is another one.
pub(super) fn identify(name: &str, bytes: &[u8]) -> (&'static Kind, Option<&'static Kind>) {
    let said = by_name(name);
    if bytes.is_empty() {
        return (&EMPTY, None);
    }
    let kind = by_content(bytes).unwrap_or_else(|| match said {
        _ if is_data(bytes) => said.filter(|kind| !kind.media_type.is_empty()).unwrap_or(&UNKNOWN),
        Some(said) if matches!(said.reader, Reader::Text | Reader::Html) => said,
        _ if is_page(bytes) => of_extension("html"),
        _ => &PLAIN,
    });
    let is_hidden = std::ptr::eq(kind, &PROTECTED);
    (kind, said.filter(|said| said.name != kind.name && !is_hidden))
}

/// Whether it is no text. In UTF-16 every second byte of a plain text is zero.
fn is_data(bytes: &[u8]) -> bool {
    bytes.contains(&0) && super::readers::wide(bytes).is_none()
}

fn is_page(bytes: &[u8]) -> bool {
    let begin = String::from_utf8_lossy(&bytes[..bytes.len().min(500)]).to_lowercase();
    let begin = begin.trim_start_matches('\u{feff}').trim_start();
    begin.starts_with("<!doctype html") || begin.starts_with("<html")
}

/// The media type of a file for a model that sees and hears.
pub(super) fn media_type(name: &str, bytes: &[u8]) -> Option<&'static str> {
    let (kind, _) = identify(name, bytes);
    // A name says which of several forms a recording without a mark has.
    Some(kind.media_type).filter(|media_type| !media_type.is_empty())
}
