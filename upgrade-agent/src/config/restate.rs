//! [`RestateConfig`]: the addresses of a Restate server and of the relay beside it.

use secrecy::SecretString;

use super::Flags;
use super::source::{Key, Sources};

const INGRESS: Key = Key { name: "restate", flag: "--restate", variables: &["UPGRADE_AGENT_RESTATE"] };
const ADMIN: Key =
    Key { name: "restate_admin", flag: "--restate-admin", variables: &["UPGRADE_AGENT_RESTATE_ADMIN"] };
const RELAY: Key = Key { name: "relay", flag: "--relay", variables: &["UPGRADE_AGENT_RELAY"] };
const RELAY_TOKEN: Key = Key { name: "relay_token", flag: "", variables: &["UPGRADE_AGENT_RELAY_TOKEN"] };

/// The admin API of a server on this machine.
const ADMIN_HERE: &str = "http://127.0.0.1:9070";

/// A Restate server.
#[derive(Clone, Debug)]
#[cfg_attr(not(feature = "restate"), allow(dead_code))]
pub(crate) struct RestateConfig {
    /// The ingress; none if this program runs the turns.
    pub(crate) ingress: Option<String>,
    /// The admin API.
    pub(crate) admin: String,
    /// The relay between workers and chats; none if replies come whole.
    pub(crate) relay: Option<String>,
    pub(crate) relay_token: Option<SecretString>,
}

impl RestateConfig {
    pub(super) fn collect(flags: &Flags, sources: &mut Sources<'_>) -> Self {
        let file = sources.file.0.clone();
        let ingress = sources.text(&INGRESS, flags.restate.clone(), file.restate, "this program");
        let admin = sources.text(&ADMIN, flags.restate_admin.clone(), file.restate_admin, ADMIN_HERE);
        let relay = sources.text(&RELAY, flags.relay.clone(), file.relay, "none");
        RestateConfig {
            ingress,
            admin: admin.unwrap_or_else(|| ADMIN_HERE.to_owned()),
            relay,
            relay_token: sources.secret(&RELAY_TOKEN),
        }
    }
}
