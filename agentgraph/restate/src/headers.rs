//! [`Headers`]: what a caller's request says about the caller.

use std::fmt;

use crate::wire::message::SentHeaders;

/// Headers of requests that say something of the way, and nothing of the caller.
const OF_THE_WAY: &[&str] = &[
    "accept",
    "accept-encoding",
    "authorization",
    "connection",
    "content-length",
    "content-type",
    "cookie",
    "expect",
    "host",
    "idempotency-key",
    "proxy-authorization",
    "te",
    "traceparent",
    "tracestate",
    "transfer-encoding",
    "upgrade",
    "user-agent",
    "via",
];

/// Words of names whose values are credentials.
const CREDENTIALS: &[&str] = &[
    "apikey",
    "auth",
    "authorization",
    "cookie",
    "credential",
    "credentials",
    "jwt",
    "key",
    "password",
    "secret",
    "session",
    "token",
];

/// The headers of a caller's request: those set by
/// [`RemoteCall::header`](crate::RemoteCall::header), and those that a gateway before the server has added. A
/// gateway's header replaces a caller's of the same name.
///
/// They travel with the call to each of its tasks, on whichever worker that runs, and are stored in the
/// server, encrypted if there are keys. Headers for the gateway itself, such as `authorization`, do not
/// travel.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Headers(SentHeaders);

impl Headers {
    /// The value of a header, whatever the case of its name.
    ///
    /// ```
    /// use agentgraph_restate::Headers;
    ///
    /// let headers: Headers = [("X-Tenant", "acme")].into_iter().collect();
    /// assert_eq!(headers.get("x-tenant"), Some("acme"));
    /// ```
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(&name.to_ascii_lowercase()).map(String::as_str)
    }

    /// All names and values, in alphabetical order of the names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (&**name, &**value))
    }

    pub(crate) fn sent(headers: SentHeaders) -> Self {
        Headers(headers)
    }
}

/// Whether the value of a header is likely a credential, by its name.
pub(crate) fn is_credential(name: &str) -> bool {
    name.split(['-', '_']).any(|word| CREDENTIALS.contains(&&*word.to_ascii_lowercase()))
}

/// The headers that travel with a call: those of the message, and over them those of the request itself.
pub(crate) fn of_call<'a>(
    mut sent: SentHeaders,
    request: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> SentHeaders {
    for (name, value) in request {
        let name = name.to_ascii_lowercase();
        if !OF_THE_WAY.contains(&&*name) && !name.starts_with("x-restate-") {
            sent.insert(name, value.to_owned());
        }
    }
    sent
}

impl<K: AsRef<str>, V: Into<String>> FromIterator<(K, V)> for Headers {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(headers: I) -> Self {
        let headers = headers.into_iter();
        Headers(headers.map(|(name, value)| (name.as_ref().to_ascii_lowercase(), value.into())).collect())
    }
}

/// Shows the names. Values may be tokens.
impl fmt::Debug for Headers {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_list().entries(self.0.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gateways_header_replaces_the_callers_and_headers_of_the_way_stay_behind() {
        let sent: SentHeaders = [("x-user".to_owned(), "mallory".to_owned())].into();
        let request = [("X-User", "ada"), ("Host", "h"), ("x-restate-id", "inv_1"), ("x-tenant", "acme")];
        let headers = Headers::sent(of_call(sent, request));
        assert_eq!(headers.iter().collect::<Vec<_>>(), [("x-tenant", "acme"), ("x-user", "ada")]);
        assert_eq!(format!("{headers:?}"), r#"["x-tenant", "x-user"]"#);
    }

    #[test]
    fn credentials_are_known_by_a_word_of_their_name() {
        for name in
            ["Authorization", "x-api-key", "X-Auth-Token", "cookie", "session_token", "proxy-authorization"]
        {
            assert!(is_credential(name), "{name}");
        }
        for name in ["x-user", "x-tenant", "author", "x-keyboard", "accept-language"] {
            assert!(!is_credential(name), "{name}");
        }
    }
}
