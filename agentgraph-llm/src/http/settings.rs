//! The setters that the builders of all wires share.

/// Gives a builder with the fields `model: Option<String>` and `connection: Connection` the setters of the
/// shared settings. `default_url` is the address that is used if none is set.
macro_rules! connection_settings {
    ($builder:ident $(<$parameter:ident>)?, default_url = $default_url:literal) => {
        impl$(<$parameter>)? $builder$(<$parameter>)? {
            /// Sets the model's name. Required.
            pub fn model(mut self, model: impl Into<String>) -> Self {
                self.model = Some(model.into());
                self
            }

            pub(crate) fn connection(&mut self) -> &mut $crate::http::Connection {
                &mut self.connection
            }
        }

        $crate::http::connection_settings!(@ $builder $(<$parameter>)?, $default_url);
    };
    (@ $builder:ident $(<$parameter:ident>)?, $default_url:literal) => {
        /// # Connection
        impl$(<$parameter>)? $builder$(<$parameter>)? {
            /// Sets the key. White space around it is ignored.
            pub fn api_key(mut self, key: impl Into<$crate::SecretString>) -> Self {
                self.connection().key = Some($crate::http::KeySource::Fixed(key.into()));
                self
            }

            /// Sets a source of keys, which is asked before each request and each retry. After a refused key
            /// (HTTP 401) it is asked for a new one, once.
            pub fn key_provider(mut self, provider: impl $crate::KeyProvider + 'static) -> Self {
                let provider = ::std::sync::Arc::new(provider);
                self.connection().key = Some($crate::http::KeySource::Provider(provider));
                self
            }

            /// Sets how the key is sent.
            pub fn authentication(mut self, kind: $crate::Authentication) -> Self {
                self.connection().authentication = Some(kind);
                self
            }

            #[doc = concat!("Sets the server's address, with or without the version in its path: `", $default_url, "` if")]
            /// not set. An address of another machine must be https, unless
            /// [plain http is allowed](Self::allow_plain_http).
            pub fn base_url(mut self, url: impl Into<String>) -> Self {
                self.connection().base_url = url.into();
                self
            }

            /// Allows an unencrypted address of another machine, for a gateway in a private network. Anyone
            /// on the network path can then read the key and the conversations.
            pub fn allow_plain_http(mut self) -> Self {
                self.connection().allows_plain_http = true;
                self
            }

            /// Sets a header of every request. It replaces a header of the same name, also that of the key; a
            /// model with such a header needs no key.
            pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
                self.connection().headers.push((name.into(), value.into()));
                self
            }

            /// Sets the HTTP client, for a proxy, own certificates, or a pool shared by models. Begin it with
            /// [`http_client_builder`]($crate::http_client_builder). Its own connect timeout applies.
            pub fn http_client(mut self, client: $crate::HttpClient) -> Self {
                self.connection().client = Some(client);
                self
            }

            /// Limits the time from the start of an attempt until its stream begins, or until its body ends
            /// if the answer is not a stream: 600 s if not set. A stream that has begun is limited by the
            /// [idle timeout](Self::idle_timeout) only.
            pub fn timeout(mut self, total: ::std::time::Duration) -> Self {
                self.connection().timeouts.total = total;
                self
            }

            /// Limits the time until the connection is open: 5 s if not set.
            pub fn connect_timeout(mut self, connect: ::std::time::Duration) -> Self {
                self.connection().timeouts.connect = connect;
                self
            }

            /// Limits the silence within a stream: 120 s if not set. Any byte ends the silence, so pings do.
            pub fn idle_timeout(mut self, idle: ::std::time::Duration) -> Self {
                self.connection().timeouts.idle = idle;
                self
            }

            /// Sets the number of retries of a failed call: 2 if not set.
            pub fn max_retries(mut self, retries: u32) -> Self {
                self.connection().policy.max_retries = retries;
                self
            }

            /// Limits the wait before a retry that a server may ask for: 60 s if not set. A call whose server
            /// asks for a longer one fails at once, with the wait in
            /// [`retry_after`]($crate::Error::retry_after). A retry is never earlier than the server asks.
            pub fn longest_wait(mut self, wait: ::std::time::Duration) -> Self {
                self.connection().policy.longest_wait = wait;
                self
            }

            /// Sets the clock and the randomness of retries, for tests.
            pub fn clock(mut self, clock: impl $crate::Clock + 'static) -> Self {
                self.connection().clock = ::std::sync::Arc::new(clock);
                self
            }

            /// Sets the source of message ids.
            pub fn message_ids(mut self, ids: $crate::MessageIds) -> Self {
                self.connection().ids = ids;
                self
            }
        }
    };
}

/// Gives the builder of a chat model with a field `defaults: Defaults` the setters of these. `otherwise` says
/// what holds without a limit of tokens.
macro_rules! default_settings {
    ($builder:ident $(<$parameter:ident>)?, otherwise = $otherwise:literal) => {
        impl$(<$parameter>)? $builder$(<$parameter>)? {
            /// Sets the temperature of requests that have none.
            pub fn temperature(mut self, temperature: f32) -> Self {
                self.defaults.temperature = Some(temperature);
                self
            }

            #[doc = concat!("Sets the limit of output tokens of requests that have none", $otherwise, ".")]
            pub fn max_tokens(mut self, tokens: u32) -> Self {
                self.defaults.max_tokens = Some(tokens);
                self
            }
        }
    };
}

pub(crate) use {connection_settings, default_settings};
