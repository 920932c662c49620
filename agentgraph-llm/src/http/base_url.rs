//! The address of a server, checked.

use reqwest::Url;

use crate::error::{Code, Error, Result};

/// The rules for the address of a server.
pub(super) struct BaseUrl<'a> {
    pub(super) text: &'a str,
    /// An address that is right, for messages.
    pub(super) example: &'a str,
    /// The path that is added unless the address ends with a version, such as `v1`, or has a query; empty for
    /// none.
    pub(super) version: &'a str,
    pub(super) allows_plain_http: bool,
}

impl BaseUrl<'_> {
    /// The address, with the version and without a slash at the end.
    ///
    /// # Errors
    /// `E_LLM_CONFIG`. The message does not repeat the address, which may hold a password.
    pub(super) fn check(&self) -> Result<Url> {
        let text = self.text.trim().trim_end_matches('/');
        if text.is_empty() {
            return Err(config(
                "no base URL: this server has none of its own, so set one with `.base_url(..)`",
            ));
        }
        let mut url = Url::parse(text).map_err(|error| self.wrong(&error.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(self.wrong("it is neither http nor https"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(self.wrong("it holds a user or a password, which would show up in logs"));
        }
        if url.fragment().is_some() {
            return Err(self.wrong("it has a fragment"));
        }
        if url.scheme() == "http" && !is_loopback(&url) && !self.allows_plain_http {
            return Err(config(
                "the base URL is http, by which the key could be read on its way: give it as https, or allow this with \
                 `.allow_plain_http()`",
            ));
        }
        let has_version = url.path_segments().and_then(|mut path| path.next_back()).is_some_and(is_version);
        // An address with a query, such as `..?api-version=..`, is that of one deployment.
        if !has_version && url.query().is_none() && !self.version.is_empty() {
            extend(&mut url, self.version);
        }
        Ok(url)
    }

    fn wrong(&self, why: &str) -> Error {
        config(format!("the base URL cannot be used ({why}): it looks like `{}`", self.example))
    }
}

/// Adds a path, whose parts are separated by slashes.
pub(super) fn extend(url: &mut Url, path: &str) {
    // An http address always has a path.
    if let Ok(mut parts) = url.path_segments_mut() {
        parts.pop_if_empty().extend(path.split('/'));
    }
}

/// Whether the host is a loopback address.
pub(super) fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Such as `v1`, `v2` or `v1beta`.
fn is_version(part: &str) -> bool {
    part.strip_prefix('v').is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
}

fn config(message: impl Into<String>) -> Error {
    Error::new(Code::Config, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, version: &str, allows_plain_http: bool) -> Result<String> {
        let base = BaseUrl { text, example: "https://api.example.com", version, allows_plain_http };
        base.check().map(|url| url.to_string())
    }

    #[test]
    fn a_base_url_may_include_the_version() {
        for base in
            ["http://127.0.0.1:80", "http://127.0.0.1/", "http://127.0.0.1/v1", " http://127.0.0.1/v1/ "]
        {
            assert_eq!(check(base, "v1", false).unwrap(), "http://127.0.0.1/v1", "{base}");
        }
        assert_eq!(check("https://gate/llm", "v1", false).unwrap(), "https://gate/llm/v1");
        assert_eq!(check("https://gate/v1beta2", "v1beta", false).unwrap(), "https://gate/v1beta2");
        assert_eq!(check("https://gate/voice", "v1", false).unwrap(), "https://gate/voice/v1");
        assert_eq!(check("https://gate/a", "", false).unwrap(), "https://gate/a");
        assert_eq!(check("https://gate", "openai/v1", false).unwrap(), "https://gate/openai/v1");
        assert_eq!(
            check("https://gate/d?api-version=1", "v1", false).unwrap(),
            "https://gate/d?api-version=1"
        );
    }

    #[test]
    fn an_invalid_base_url_is_refused_and_not_repeated_in_the_error() {
        for base in ["", "api.anthropic.com", "ftp://host", "http://user:hunter2@host", "http://host#hunter2"]
        {
            let error = check(base, "v1", false).unwrap_err();
            assert_eq!(error.code(), Code::Config, "{base}");
            assert!(!error.to_string().contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn plain_http_is_refused_unless_allowed_or_on_this_machine() {
        for base in
            ["http://gate", "http://10.0.0.1:80", "http://localhost.evil.example", "HTTP://[2001:db8::1]"]
        {
            let error = check(base, "v1", false).unwrap_err();
            assert_eq!(error.code(), Code::Config, "{base}");
            assert!(error.message().contains(".allow_plain_http()"), "{error}");
            assert!(check(base, "v1", true).is_ok(), "{base}");
        }
        for base in ["http://localhost:1", "http://127.0.0.9", "http://[::1]:8080", "https://gate"] {
            assert!(check(base, "v1", false).is_ok(), "{base}");
        }
    }

    #[test]
    fn a_name_in_a_path_stays_one_part_of_it() {
        let mut url = Url::parse("https://gate/v1").unwrap();
        extend(&mut url, "models/a?b#c:run");
        assert_eq!(url.as_str(), "https://gate/v1/models/a%3Fb%23c:run");
        let mut url = Url::parse("https://gate/d?api-version=1").unwrap();
        extend(&mut url, "chat/completions");
        assert_eq!(url.as_str(), "https://gate/d/chat/completions?api-version=1");
    }
}
