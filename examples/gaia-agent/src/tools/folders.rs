//! [`Folders`]: the files that tools may see, by capability: the current folder, and the downloads of one
//! question.
//!
//! No path leads out of the two, whatever it is made of: `..`, an absolute path, a symbolic link. Names that
//! begin with a dot are not seen, since they hold settings and keys. A file is looked for in the current
//! folder first and then in the downloads; one that is in neither does not exist. The question's own file
//! goes before a file of its name in the current folder, which is then known as `./name`.

use std::io::{self, Read, Write};
use std::path::{Component, Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, File, Metadata};

use crate::files::{link, replace};

/// The name of the second folder in paths that a model reads and writes.
const DOWNLOADS: &str = "downloads";
/// A longer list of a folder is cut.
const MOST_LISTED: usize = 200;
const DEEPEST: usize = 3;
/// The most bytes that are copied for Python.
const COPIED: u64 = 64 << 20;

/// The files that tools may see.
#[derive(Debug)]
pub struct Folders {
    /// `None` if there is no such folder to see.
    current: Option<Dir>,
    downloads: Dir,
    /// The name of the question's own file among the downloads.
    own: Option<String>,
}

/// A file in one of the two folders.
#[derive(Debug)]
pub struct FoundFile {
    /// The path that the model knows it by.
    pub path: String,
    /// Its size in bytes.
    pub size: u64,
    file: File,
}

/// Why a file cannot be used. The text is for the model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct FileError(String);

impl Folders {
    /// Opens the two folders; that of the downloads is made.
    ///
    /// # Errors
    /// If one of them cannot be opened.
    pub fn open(current: Option<&Path>, downloads: &Path) -> io::Result<Self> {
        std::fs::create_dir_all(downloads)?;
        let current = current.map(|path| Dir::open_ambient_dir(path, ambient_authority())).transpose()?;
        Ok(Folders { current, downloads: Dir::open_ambient_dir(downloads, ambient_authority())?, own: None })
    }

    /// Sets the name of the question's own file among the downloads.
    #[must_use]
    pub fn own(mut self, name: Option<&str>) -> Self {
        self.own = name.map(str::to_owned);
        self
    }

    /// Finds a file: in the current folder, then in the downloads.
    ///
    /// # Errors
    /// If there is none by that name, or it may not be seen.
    pub fn find(&self, name: &str) -> Result<FoundFile, FileError> {
        let path = plain(name)?;
        let below = path.strip_prefix(DOWNLOADS).ok().filter(|rest| rest.components().next().is_some());
        let is_own = self.is_own(&path) && !name.trim().starts_with("./");
        let places = [
            is_own.then_some((&self.downloads, path.as_path(), "downloads/")),
            self.current.as_ref().map(|dir| (dir, path.as_path(), "")),
            below.map(|rest| (&self.downloads, rest, "downloads/")),
            Some((&self.downloads, path.as_path(), "downloads/")),
        ];
        for (dir, path, prefix) in places.into_iter().flatten() {
            match open_file(dir, path) {
                Ok((file, about)) => {
                    let path = format!("{prefix}{}", path.display());
                    return Ok(FoundFile { path, size: about.len(), file });
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(FileError(format!("`{name}` cannot be opened: {error}"))),
            }
        }
        Err(self.missing(name))
    }

    fn is_own(&self, path: &Path) -> bool {
        self.own.as_deref().is_some_and(|own| path == Path::new(own))
    }

    /// All files, as paths with their sizes; a note behind those of a folder that has more.
    pub fn list(&self) -> Vec<String> {
        let places = [self.current.as_ref().map(|dir| (dir, "")), Some((&self.downloads, "downloads/"))];
        let mut all = Vec::new();
        for (dir, prefix) in places.into_iter().flatten() {
            let mut found = Vec::new();
            list_into(dir, prefix, 0, &mut found);
            let is_own = |line: &&mut String| {
                line.rsplit_once(" (").is_some_and(|(path, _)| self.is_own(Path::new(path)))
            };
            found.iter_mut().filter(is_own).for_each(|line| line.insert_str(0, "./"));
            if found.len() > MOST_LISTED {
                found.truncate(MOST_LISTED);
                found.push(format!("[only the first {MOST_LISTED} files of this folder are shown]"));
            }
            all.append(&mut found);
        }
        all
    }

    /// Writes a file into the downloads, whole or not at all, and returns the path that the model knows it
    /// by.
    ///
    /// # Errors
    /// If the name is not plain, or the file cannot be written.
    pub fn store(&self, name: &str, bytes: &[u8]) -> Result<String, FileError> {
        let path = plain(name)?;
        let wrong = |error: io::Error| FileError(format!("`{name}` cannot be written: {error}"));
        if path.components().count() != 1 {
            return Err(FileError(format!("`{name}` is no plain name of a file")));
        }
        let new = PathBuf::from(format!(".{}.part", uuid::Uuid::new_v4()));
        let written = self.downloads.create(&new).and_then(|mut file| file.write_all(bytes));
        let stored = written.and_then(|()| self.downloads.rename(&new, &self.downloads, &path));
        if stored.is_err() {
            let _ = self.downloads.remove_file(&new);
        }
        stored.map_err(wrong)?;
        Ok(format!("{DOWNLOADS}/{}", path.display()))
    }

    /// Copies all files into a folder, in which each has the path that the model knows it by; downloads also
    /// have their names alone there. Copies that are up to date stay. Returns the files for which there is no
    /// room; the question's own file has room first.
    pub(crate) fn copy_into(&self, target: &Path) -> Vec<String> {
        let (mut room, mut left_out) = (COPIED, Vec::new());
        let lines = self.list();
        // A file that is known as `./name` is behind the question's own.
        let listed = lines.iter().filter_map(|line| Some(line.rsplit_once(" (")?.0));
        let mut paths: Vec<_> = listed.filter(|path| !path.starts_with("./")).collect();
        let of_downloads =
            |path: &str| path.strip_prefix("downloads/").map(|name| self.is_own(Path::new(name)));
        paths.sort_by_key(|path| std::cmp::Reverse(of_downloads(path)));
        for path in paths {
            match self.find(path).map(|found| found.copy(&target.join(path), room)) {
                Ok(Ok(size)) => room -= size,
                _ => left_out.push(path.to_owned()),
            }
        }
        for entry in target.join(DOWNLOADS).read_dir().into_iter().flatten().flatten() {
            // One of its name is in the current folder.
            let _ = link(&Path::new(DOWNLOADS).join(entry.file_name()), &target.join(entry.file_name()));
        }
        left_out
    }

    fn missing(&self, name: &str) -> FileError {
        let known = self.list();
        let file_name = |path: &str| path.rsplit('/').next().unwrap_or_default().to_lowercase();
        let wanted = file_name(name);
        let near = known.iter().map(|line| line.split(" (").next().unwrap_or_default());
        let near = near.max_by(|one, other| {
            let likeness = |path: &str| strsim::jaro_winkler(&file_name(path), &wanted);
            likeness(one).total_cmp(&likeness(other))
        });
        match near {
            Some(near) if strsim::jaro_winkler(&file_name(near), &wanted) > 0.8 => {
                FileError(format!("there is no file `{name}`; did you mean `{near}`?"))
            }
            _ => FileError(format!("there is no file `{name}`: `list_files` shows those that exist")),
        }
    }
}

impl FoundFile {
    /// Copies the file, unless a copy has its size and time, and returns its size.
    fn copy(self, target: &Path, room: u64) -> io::Result<u64> {
        let (size, modified) = (self.size, self.file.metadata()?.modified()?.into_std());
        let is_current = std::fs::symlink_metadata(target)
            .is_ok_and(|copy| copy.len() == size && copy.modified().ok() == Some(modified));
        if size > room {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        if !is_current {
            let content = self.read(room).map_err(io::Error::other)?;
            if let Some(folder) = target.parent() {
                std::fs::create_dir_all(folder)?;
            }
            replace(target, &content)?;
            std::fs::File::options().write(true).open(target)?.set_modified(modified)?;
        }
        Ok(size)
    }

    /// Reads the file.
    ///
    /// # Errors
    /// If it is longer than the limit, or cannot be read.
    pub fn read(self, limit: u64) -> Result<Vec<u8>, FileError> {
        let mut bytes = Vec::new();
        let too_long = || FileError(format!("`{}` is longer than {limit} bytes", self.path));
        if self.size > limit {
            return Err(too_long());
        }
        let read = self.file.take(limit + 1).read_to_end(&mut bytes);
        read.map_err(|error| FileError(format!("`{}` cannot be read: {error}", self.path)))?;
        if bytes.len() as u64 > limit {
            return Err(FileError(format!("`{}` is longer than {limit} bytes", self.path)));
        }
        Ok(bytes)
    }
}

/// A path of plain names: relative, without `..` and without hidden names.
fn plain(name: &str) -> Result<PathBuf, FileError> {
    let mut path = PathBuf::new();
    for part in Path::new(name.trim()).components() {
        match part {
            Component::CurDir => {}
            Component::Normal(part) => {
                let is_hidden = part.to_string_lossy().starts_with('.');
                if is_hidden || part.to_string_lossy().contains(['\0', '\\']) {
                    return Err(FileError(format!(
                        "`{name}` may not be seen: its name is hidden, or not plain"
                    )));
                }
                path.push(part);
            }
            _ => {
                let why = "a path is relative to the current folder or to `downloads`, without `..`";
                return Err(FileError(format!("`{name}` may not be seen: {why}")));
            }
        }
    }
    if path.as_os_str().is_empty() {
        Err(FileError("the name of the file is empty".to_owned()))
    } else {
        Ok(path)
    }
}

/// Only a regular file is opened: a pipe would wait for its writer.
fn open_file(dir: &Dir, path: &Path) -> io::Result<(File, Metadata)> {
    if !dir.metadata(path)?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no file"));
    }
    let file = dir.open(path)?;
    let about = file.metadata()?;
    Ok((file, about))
}

fn list_into(dir: &Dir, prefix: &str, depth: usize, found: &mut Vec<String>) {
    let Ok(entries) = dir.entries() else { return };
    let mut names: Vec<_> = entries.flatten().map(|entry| entry.file_name()).collect();
    names.sort();
    for name in names {
        let shown = name.to_string_lossy().into_owned();
        let Ok(about) = dir.metadata(&name) else { continue };
        if found.len() > MOST_LISTED || shown.starts_with('.') {
            continue;
        }
        if about.is_file() {
            found.push(format!("{prefix}{shown} ({} bytes)", about.len()));
        } else if about.is_dir()
            && depth < DEEPEST
            && let Ok(inner) = dir.open_dir(&name)
        {
            list_into(&inner, &format!("{prefix}{shown}/"), depth + 1, found);
        }
    }
}
