//! [`Archive`]: the members of a ZIP file, each bounded. A document of Office is such a file, too.

use std::io::Read;

use zip::ZipArchive;
use zip::result::ZipError;

use super::{DEEPEST, Source, bounded, read as read_file};
use crate::tools::kinds::{by_name, identify};
use crate::tools::work::{Bytes, Work};

/// The most members that are looked at.
const MOST: usize = 2_000;
/// The most bytes of a member.
const LONGEST: u64 = 32 << 20;
/// A member that becomes more than so many times longer, and longer than a mebibyte, is made to fill the
/// memory: deflate comes to 1,000, and the sheets of real books to less than 100.
const RATIO: u64 = 300;
/// The most bytes of text that one call shows of all members.
const SHOWN: usize = 1 << 20;

pub(in crate::tools) struct Archive<'b> {
    zip: ZipArchive<Bytes<'b>>,
    work: Work,
}

impl<'b> Archive<'b> {
    pub(in crate::tools) fn open(bytes: &'b [u8], work: &Work) -> Result<Self, String> {
        let zip =
            ZipArchive::new(work.reader(bytes)).map_err(|error| format!("the archive is broken: {error}"))?;
        if zip.len() > MOST {
            return Err(format!("the archive has more than {MOST} files"));
        }
        Ok(Archive { zip, work: work.clone() })
    }

    pub(in crate::tools) fn has(&self, name: &str) -> bool {
        self.zip.index_for_name(name).is_some()
    }

    /// The names of all members, without those of folders.
    pub(super) fn names(&self) -> Vec<String> {
        let names = self.zip.file_names().filter_map(Result::ok).map(|name| name.into_owned());
        names.filter(|name| !name.ends_with('/')).collect()
    }

    /// The content of a member; `None` if there is none by this name.
    pub(super) fn part(&mut self, name: &str) -> Result<Option<Vec<u8>>, String> {
        self.work.check()?;
        let file = match self.zip.by_name(name) {
            Ok(file) => file,
            Err(ZipError::FileNotFound) => return Ok(None),
            Err(ZipError::UnsupportedArchive(ZipError::PASSWORD_REQUIRED)) => {
                return Err(format!("a password protects `{name}`"));
            }
            Err(error) => return Err(format!("`{name}` in the archive cannot be read: {error}")),
        };
        let longest = LONGEST.min(file.compressed_size().saturating_mul(RATIO).max(1 << 20));
        let mut content = Vec::new();
        let read = file.take(longest + 1).read_to_end(&mut content);
        read.map_err(|error| format!("`{name}` in the archive is broken: {error}"))?;
        if content.len() as u64 > longest {
            return Err(format!("`{name}` in the archive unpacks to more than {longest} bytes"));
        }
        self.work.unpack(content.len() as u64)?;
        Ok(Some(content))
    }

    /// The text of a member; empty if there is none.
    pub(super) fn xml(&mut self, name: &str) -> Result<String, String> {
        let part = self.part(name)?.unwrap_or_default();
        let (encoding, rest) = encoding_rs::Encoding::for_bom(&part).unwrap_or((encoding_rs::UTF_8, 0));
        Ok(encoding.decode(&part[rest..]).0.into_owned())
    }
}

/// A list of the files, and their texts.
pub(super) fn read(bytes: &[u8], source: Source<'_>) -> Result<String, String> {
    let mut archive = Archive::open(bytes, source.work)?;
    let names = archive.names();
    let mut list = format!("{} files\n", names.len());
    let mut texts = String::new();
    for name in &names {
        let path = format!("{}/{name}", source.path);
        let (about, text) = match archive.part(name) {
            Err(why) => (why, None),
            Ok(None) => continue,
            Ok(Some(content)) => describe(&path, &content, source, texts.len()),
        };
        list += &format!("{path} ({about})\n");
        if let Some(text) = text {
            texts += &format!("\n## {path}\n{text}\n");
        }
    }
    Ok(bounded(list + &texts))
}

/// The size and the kind of a member, and its text if it has one and there is room for it.
fn describe(path: &str, content: &[u8], source: Source<'_>, shown: usize) -> (String, Option<String>) {
    let (kind, _) = identify(path, content);
    let tools = kind.tools(source.offers);
    let about =
        format!("{} bytes; {}{}{tools}", content.len(), kind.name, if tools.is_empty() { "" } else { ": " });
    if source.depth >= DEEPEST || shown > SHOWN {
        return (format!("{about}; not shown here"), None);
    }
    match read_file(content, Source { path, depth: source.depth + 1, ..source }) {
        Ok(text) => (about, Some(text)),
        Err(why) => (format!("{} bytes; {why}", content.len()), None),
    }
}

/// The bytes of a file within archives, by a path such as `a.zip/data/b.xlsx`: `find` reads the outermost.
pub(in crate::tools) fn member<E>(
    path: &str,
    work: &Work,
    find: impl Fn(&str) -> Result<(String, Vec<u8>), E>,
) -> Option<Result<(String, Vec<u8>), String>> {
    let ends = path.match_indices('/').map(|(at, _)| at);
    let (outer, inner) = ends
        .filter(|at| by_name(&path[..*at]).is_some())
        .find_map(|at| Some((find(&path[..at]).ok()?, &path[at + 1..])))?;
    let (known, content) = outer;
    Some(within(&content, inner, work, 0).map(|content| (format!("{known}/{inner}"), content)))
}

fn within(bytes: &[u8], path: &str, work: &Work, depth: usize) -> Result<Vec<u8>, String> {
    let mut archive = Archive::open(bytes, work)?;
    if let Some(content) = archive.part(path)? {
        return Ok(content);
    }
    let ends: Vec<usize> = path.match_indices('/').map(|(at, _)| at).collect();
    for at in ends {
        if depth < DEEPEST
            && let Some(content) = archive.part(&path[..at])?
        {
            return within(&content, &path[at + 1..], work, depth + 1);
        }
    }
    Err(format!("the archive has no file `{path}`; it has {}", archive.names().join(", ")))
}
