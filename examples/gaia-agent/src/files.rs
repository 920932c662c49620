//! Files that are replaced whole, and links.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

/// Replaces a file: a kill leaves the old content or the new one.
pub(crate) fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".new-{}", uuid::Uuid::new_v4()));
    let new = path.with_file_name(name);
    let written = File::create(&new).and_then(|mut file| {
        file.write_all(content)?;
        file.sync_all()
    });
    let replaced = written.and_then(|()| fs::rename(&new, path));
    if replaced.is_err() {
        let _ = fs::remove_file(&new);
    }
    replaced
}

/// Makes a link to a file or folder, or a copy where links need a right of their own.
///
/// # Errors
/// If there is something of its name, among others.
pub(crate) fn link(original: &Path, link: &Path) -> io::Result<()> {
    #[cfg(unix)]
    return std::os::unix::fs::symlink(original, link);
    #[cfg(not(unix))]
    return std::fs::copy(link.parent().unwrap_or(link).join(original), link).map(|_| ());
}
