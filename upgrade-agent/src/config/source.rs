//! The precedence of sources: a flag, then the first variable that is set, then the file, then the default.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use secrecy::SecretString;

use super::file::FileConfig;
use super::report::Report;
use super::{ConfigError, Environment};

/// The names of a setting.
pub(super) struct Key {
    /// The key in the file.
    pub(super) name: &'static str,
    /// Empty for a setting without a flag.
    pub(super) flag: &'static str,
    pub(super) variables: &'static [&'static str],
}

/// The source of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    Flag(&'static str),
    Variable(&'static str),
    File(PathBuf),
    Default,
}

impl fmt::Display for Origin {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Flag(name) | Origin::Variable(name) => out.write_str(name),
            Origin::File(path) => write!(out, "{}", path.display()),
            Origin::Default => out.write_str("default"),
        }
    }
}

/// The range of valid numbers.
pub(super) struct Range {
    told: &'static str,
    fits: fn(f64) -> bool,
}

impl Range {
    pub(super) const FROM_0: Range =
        Range { told: "a number from 0 up", fits: |number| number >= 0.0 && number.is_finite() };
    pub(super) const SHARE: Range =
        Range { told: "a number from 0 to 1", fits: |number| (0.0..=1.0).contains(&number) };
    pub(super) const SECONDS: Range = Range {
        told: "a time in seconds above 0, such as 60",
        fits: |number| Duration::try_from_secs_f64(number).is_ok_and(|time| !time.is_zero()),
    };
}

/// All sources except the flags, and the report.
pub(super) struct Sources<'a> {
    pub(super) environment: Environment<'a>,
    /// The settings of the file and its path.
    pub(super) file: (FileConfig, PathBuf),
    pub(super) report: Report,
}

impl<'a> Sources<'a> {
    pub(super) fn new(environment: Environment<'a>) -> Self {
        Sources { environment, file: Default::default(), report: Report::default() }
    }

    /// A text; `unset` is its value in the report if it is not set.
    pub(super) fn text(
        &mut self,
        key: &Key,
        flag: Option<String>,
        file: Option<String>,
        unset: &str,
    ) -> Option<String> {
        let (value, origin) = self.first(key, flag, file, |text| text);
        self.report.tell(key.name, value.as_deref().unwrap_or(unset), &origin);
        value
    }

    /// A path.
    pub(super) fn path(
        &mut self,
        key: &Key,
        flag: Option<PathBuf>,
        file: Option<PathBuf>,
        default: Option<PathBuf>,
    ) -> Option<PathBuf> {
        let (value, origin) = self.first(key, flag, file, PathBuf::from);
        let value = value.or(default);
        let told = value.as_ref().map_or_else(|| "none".to_owned(), |path| path.display().to_string());
        self.report.tell(key.name, &told, &origin);
        value
    }

    /// A secret, from a variable only.
    pub(super) fn secret(&mut self, key: &Key) -> Option<SecretString> {
        let (value, origin) = self.first(key, None, None, SecretString::from);
        self.report.tell_secret(key.name, value.is_some(), &origin);
        value
    }

    /// A number in a range.
    pub(super) fn number(
        &mut self,
        key: &Key,
        flag: Option<f64>,
        file: Option<f64>,
        default: f64,
        range: &Range,
    ) -> Result<f64, ConfigError> {
        let number = self.number_if_set(key, flag, file, &default.to_string(), range)?;
        Ok(number.unwrap_or(default))
    }

    /// A number in a range without a default; `unset` is its value in the report.
    pub(super) fn number_if_set(
        &mut self,
        key: &Key,
        flag: Option<f64>,
        file: Option<f64>,
        unset: &str,
        range: &Range,
    ) -> Result<Option<f64>, ConfigError> {
        let (value, origin) =
            self.first(key, flag.map(Ok), file.map(Ok), |text| text.parse().map_err(|_| text));
        let wrong = |why: String| ConfigError::Value { from: origin.to_string(), why };
        let number = match value {
            None => None,
            Some(Ok(number)) if (range.fits)(number) => Some(number),
            Some(Ok(number)) => {
                return Err(wrong(format!("{number} is out of range: {} takes {}", key.name, range.told)));
            }
            Some(Err(text)) => return Err(wrong(format!("`{text}` is not {}", range.told))),
        };
        let shown = number.map_or_else(|| unset.to_owned(), |number| number.to_string());
        self.report.tell(key.name, &shown, &origin);
        Ok(number)
    }

    /// A yes or no; no if it is not set.
    pub(super) fn truth(
        &mut self,
        key: &Key,
        flag: Option<bool>,
        file: Option<bool>,
    ) -> Result<bool, ConfigError> {
        let read = |text: String| truth(&text).ok_or(text);
        let (value, origin) = self.first(key, flag.map(Ok), file.map(Ok), read);
        let truth = value.unwrap_or(Ok(false)).map_err(|text| ConfigError::Value {
            from: origin.to_string(),
            why: format!("`{text}` is neither true nor false"),
        })?;
        self.report.tell(key.name, &truth.to_string(), &origin);
        Ok(truth)
    }

    fn first<T>(
        &self,
        key: &Key,
        flag: Option<T>,
        file: Option<T>,
        read: impl Fn(String) -> T,
    ) -> (Option<T>, Origin) {
        if flag.is_some() {
            return (flag, Origin::Flag(key.flag));
        }
        let set = key.variables.iter().find_map(|name| Some((*name, self.variable(name)?)));
        match (set, file) {
            (Some((name, text)), _) => (Some(read(text)), Origin::Variable(name)),
            (None, Some(value)) => (Some(value), Origin::File(self.file.1.clone())),
            (None, None) => (None, Origin::Default),
        }
    }

    /// A variable; one that is blank counts as not set.
    fn variable(&self, name: &str) -> Option<String> {
        (self.environment)(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
    }
}

/// A word for yes or no.
pub(crate) fn truth(text: &str) -> Option<bool> {
    match text.to_lowercase().as_str() {
        "1" | "true" | "yes" | "on" => Some(true),
        "0" | "false" | "no" | "off" => Some(false),
        _ => None,
    }
}
