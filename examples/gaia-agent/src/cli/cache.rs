//! The commands `cache show` and `cache clear`.

use std::process::ExitCode;
use std::time::{Duration, UNIX_EPOCH};

use jiff::Timestamp;

use super::failure::Failure;
use super::screen::Screen;
use super::setup::cache;
use crate::config::Config;

pub(super) fn show(config: &Config, screen: Screen) -> Result<ExitCode, Failure> {
    let cache = cache(config);
    let wrong = |why| Failure::Data { path: cache.path().to_owned(), why };
    let entries = cache.entries().map_err(wrong)?;
    if let Some(path) = cache.set_aside().first() {
        screen.note(&format!("The cache could not be read; it is set aside as {}.", path.display()));
        return Ok(ExitCode::FAILURE);
    }
    for entry in &entries {
        let stored = Timestamp::try_from(UNIX_EPOCH + Duration::from_secs(entry.stored)).unwrap_or_default();
        let question: String = entry.key.question.split_whitespace().collect::<Vec<_>>().join(" ");
        let question: String = question.chars().take(70).collect();
        screen.line(&format!(
            "{stored:.0} {} {}: {question} -> {}",
            entry.key.model, entry.key.prompt, entry.answer
        ));
    }
    screen.line(&format!("{} answers in {}", entries.len(), cache.path().display()));
    Ok(ExitCode::SUCCESS)
}

pub(super) fn clear(config: &Config, screen: Screen) -> Result<ExitCode, Failure> {
    let cache = cache(config);
    let removed = cache.clear().map_err(|why| Failure::Data { path: cache.path().to_owned(), why })?;
    screen.line(&format!("{removed} answers were removed"));
    Ok(ExitCode::SUCCESS)
}
