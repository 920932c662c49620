//! The command `config`: the settings and their sources.

use serde::Serialize;

use super::answer;
use super::screen::{Screen, Style};
use crate::config::{Config, SettingReport};

/// The output of `--json`. Names and meanings are stable; fields may be added.
#[derive(Serialize)]
struct Settings<'a> {
    settings: &'a [SettingReport],
    files: Files,
}

/// The files of the program.
#[derive(Serialize)]
struct Files {
    threads: String,
    history: String,
    server: String,
}

pub(super) fn print(config: &Config, json: bool, screen: Screen) {
    let files = Files {
        threads: config.threads_file().display().to_string(),
        history: config.history_file().display().to_string(),
        server: config.server_file().display().to_string(),
    };
    let settings = config.report.0.as_slice();
    if json {
        return answer::print(screen, &Settings { settings, files });
    }
    for told in settings {
        line(told.name, &value(told), &told.from, screen);
    }
    for (name, file) in
        [("threads", files.threads), ("history", files.history), ("server data", files.server)]
    {
        line(name, &file, "kept in the data folder", screen);
    }
}

fn line(name: &str, value: &str, from: &str, screen: Screen) {
    screen.piece(&format!("{name:16} {value}"));
    screen.styled(Style::Faint, &format!("   ({from})"));
}

fn value(told: &SettingReport) -> String {
    match (&told.value, told.set) {
        (Some(value), _) => value.clone(),
        (None, true) => "set, and not shown".to_owned(),
        (None, false) => "not set".to_owned(),
    }
}
