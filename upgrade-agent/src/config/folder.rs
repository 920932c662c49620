//! The folder for a user's data, by the convention of each platform.

use std::path::PathBuf;

use super::Environment;

const FOLDER: &str = "upgrade-agent";

/// The folder; `None` if the environment does not define it.
pub(super) fn of_user(env: Environment<'_>) -> Option<PathBuf> {
    // A relative path would depend on the working directory.
    let absolute = |name: &str| env(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = if cfg!(windows) {
        absolute("LOCALAPPDATA").or_else(|| absolute("APPDATA"))
    } else if cfg!(target_os = "macos") {
        absolute("HOME").map(|home| home.join("Library").join("Application Support"))
    } else {
        absolute("XDG_DATA_HOME").or_else(|| absolute("HOME").map(|home| home.join(".local").join("share")))
    };
    base.map(|base| base.join(FOLDER))
}
