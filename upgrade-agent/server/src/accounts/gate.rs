//! Authorization: administrators have a bearer token that belongs to an account; applications have a token
//! signed with the shared secret, if the setting requires it. Without configured tokens, administrators need
//! none.

use std::time::UNIX_EPOCH;

use secrecy::{ExposeSecret, SecretString};

use super::settings;
use crate::core::{ApiRequest, Core};
use crate::wire::fault::Fault;
use crate::wire::token::{self, TokenFault};
use crate::world::table::key;

/// The kind of caller that a route is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Caller {
    Anybody,
    Administrator,
    Application,
}

impl Caller {
    /// The kind of caller for this path.
    pub(crate) fn of(path: &str) -> Self {
        if path == "/api" || path.starts_with("/api/scheduledJobs/") {
            Self::Anybody
        } else if path.ends_with("/clearDB") {
            Self::Administrator
        } else if path.starts_with("/api/v5/") || path.starts_with("/api/v6/") {
            Self::Application
        } else {
            Self::Administrator
        }
    }
}

/// The credentials that callers need.
#[derive(Default)]
pub(crate) struct Gate {
    /// The email of the account for each administrator's token. If empty, no token is required.
    pub(crate) admins: Vec<(SecretString, String)>,
    /// The key of the applications, and the secret.
    pub(crate) client: Option<(String, SecretString)>,
}

impl Gate {
    /// Admits a request, or returns the error.
    pub(crate) fn admit(&self, core: &Core, caller: Caller, asked: &ApiRequest) -> Result<(), Fault> {
        match caller {
            Caller::Anybody => Ok(()),
            Caller::Administrator => self.admit_administrator(core, asked),
            Caller::Application => self.admit_application(core, asked),
        }
    }

    /// A login needs no account, because it creates one.
    fn admit_administrator(&self, core: &Core, asked: &ApiRequest) -> Result<(), Fault> {
        if self.admins.is_empty() {
            return Ok(());
        }
        let token = bearer(asked).unwrap_or_default();
        let known = self.admins.iter().find(|(known, _)| is_same(known.expose_secret(), &token));
        let has_account = |email: &str| core.world.accounts.contains(&key(&[email]));
        match known {
            Some(_) if asked.route == "/api/login/user" => Ok(()),
            Some((_, email)) if has_account(email) => Ok(()),
            _ => Err(Fault::unauthorized(&asked.method, &asked.endpoint)),
        }
    }

    fn admit_application(&self, core: &Core, asked: &ApiRequest) -> Result<(), Fault> {
        if !settings::setting(&core.world).is_some_and(|setting| setting.to_check_auth) {
            return Ok(());
        }
        name_student(core, asked)?;
        let token = bearer(asked).ok_or_else(Fault::no_token)?;
        // Without a key, no application can have signed anything.
        let (key, secret) = self.client.as_ref().ok_or_else(|| Fault::token(&TokenFault::Forged))?;
        let now = core.time().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        token::check(&token, key, secret.expose_secret().as_bytes(), now).map_err(|why| Fault::token(&why))
    }
}

/// The bearer token of a request.
pub(super) fn bearer(asked: &ApiRequest) -> Option<String> {
    let header = asked.authorization.as_deref()?;
    let token = header.replacen("Bearer ", "", 1).trim().to_owned();
    Some(token).filter(|token| !token.is_empty())
}

/// Compares in constant time.
fn is_same(one: &str, other: &str) -> bool {
    let pairs = one.bytes().zip(other.bytes());
    one.len() == other.len() && pairs.fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
}

/// Requires that the request names a student, who has to be known on some routes. The original checks this
/// before the application's token.
fn name_student(core: &Core, asked: &ApiRequest) -> Result<(), Fault> {
    match asked.route.strip_prefix("/api/v6/") {
        None => Ok(()),
        Some("init" | "featureflag") => asked.student_id().map(drop),
        Some(_) => core.student(asked).map(drop),
    }
}
