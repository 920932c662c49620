//! The history of typed lines.
//!
//! A history that cannot be read or written is ignored, and the file stays unchanged.

use std::path::Path;

use rustyline::Editor;
use rustyline::history::{FileHistory, History};

const LINES: usize = 1000;

/// Reads the history.
pub(super) fn load(editor: &mut Editor<(), FileHistory>, file: &Path) {
    let _ = editor.history_mut().set_max_len(LINES);
    make_private(file);
    let _ = editor.load_history(file);
}

/// Stores a line unless it seems to contain a secret.
pub(super) fn remember(editor: &mut Editor<(), FileHistory>, line: &str, file: &Path) {
    let line = line.trim_end();
    if line.is_empty() || holds_secret(line) {
        return;
    }
    // A new file is readable by its owner only.
    if editor.add_history_entry(line).is_ok_and(|added| added) {
        let _ = editor.append_history(file);
    }
}

/// Whether a word looks like a key or a token. In doubt the line is not stored.
fn holds_secret(line: &str) -> bool {
    let lower = line.to_lowercase();
    let named = ["bearer ", "-----begin", "password", "api_key", "api key", "secret"];
    named.iter().any(|name| lower.contains(name)) || line.split(is_boundary).any(is_token)
}

fn is_boundary(c: char) -> bool {
    c.is_whitespace() || matches!(c, '"' | '\'' | '=' | ',' | ':' | '`')
}

fn is_token(word: &str) -> bool {
    let prefixed = ["sk-", "ya29.", "ghp_", "AIza"].iter().any(|prefix| word.starts_with(prefix));
    let web_token = word.starts_with("eyJ") && word.matches('.').count() == 2;
    (prefixed && word.len() >= 12) || web_token
}

#[cfg(unix)]
fn make_private(file: &Path) {
    use std::os::unix::fs::PermissionsExt;
    if file.is_file() {
        let _ = std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o600));
    }
}

#[cfg(not(unix))]
fn make_private(_: &Path) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_with_keys_tokens_or_passwords_count_as_secret() {
        for line in [
            "my key is sk-ant-api03-abcdef",
            "use Bearer abc",
            "token=eyJhbGciOi.eyJzdWIi.c2ln",
            "-----BEGIN PRIVATE KEY-----",
            "the password is hunter2",
        ] {
            assert!(holds_secret(line), "{line}");
        }
    }

    #[test]
    fn lines_about_experiments_do_not_count_as_secret() {
        for line in [
            "create experiment sk-1 in assign-prog",
            "start Hints",
            "what is a token?",
            "5f1c9a2e-0000-4000-8000-000000000000",
        ] {
            assert!(!holds_secret(line), "{line}");
        }
    }
}
