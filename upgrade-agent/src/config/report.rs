//! The report of the settings, with the value and source of each. Of a secret it only says whether it is set.

use serde::Serialize;

use super::source::Origin;

/// The settings, in the order in which they were read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Report(pub(crate) Vec<SettingReport>);

/// One setting.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct SettingReport {
    pub(crate) name: &'static str,
    /// None for a secret.
    pub(crate) value: Option<String>,
    /// Whether it was set explicitly.
    pub(crate) set: bool,
    /// The flag, the variable or the file of the value, or `default`.
    pub(crate) from: String,
}

impl Report {
    pub(super) fn tell(&mut self, name: &'static str, value: &str, origin: &Origin) {
        let value = Some(without_secrets(value));
        self.0.push(SettingReport { name, value, set: *origin != Origin::Default, from: origin.to_string() });
    }

    pub(super) fn tell_secret(&mut self, name: &'static str, set: bool, origin: &Origin) {
        self.0.push(SettingReport { name, value: None, set, from: origin.to_string() });
    }
}

/// A URL with a password or a query is refused later, and is not displayed before either.
fn without_secrets(value: &str) -> String {
    let Some((scheme, rest)) = value.split_once("://") else { return value.to_owned() };
    let (place, hidden) = match rest.find(['?', '#']) {
        Some(at) => (&rest[..at], format!("{}***", &rest[at..=at])),
        None => (rest, String::new()),
    };
    let end = place.find('/').unwrap_or(place.len());
    let place = match place[..end].rfind('@') {
        Some(at) => format!("***{}", &place[at..]),
        None => place.to_owned(),
    };
    format!("{scheme}://{place}{hidden}")
}
