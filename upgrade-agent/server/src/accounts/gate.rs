//! Who may call what: administrators with a bearer token that stands for an account, applications
//! with one that is signed with the secret they share with the server, if the setting asks for it.
//! As on a server that is only tried out, administrators need none unless tokens were given.

use std::time::UNIX_EPOCH;

use secrecy::{ExposeSecret, SecretString};

use super::settings;
use crate::core::{ApiRequest, Core};
use crate::wire::fault::Fault;
use crate::wire::token::{self, TokenFault};
use crate::world::table::key;

/// Whose call a route is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Caller {
    Anybody,
    Administrator,
    Application,
}

impl Caller {
    /// Tells by the path.
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

/// What callers must show.
#[derive(Default)]
pub(crate) struct Gate {
    /// The emails that the tokens of administrators stand for; without any, nobody is asked.
    pub(crate) admins: Vec<(SecretString, String)>,
    /// The key of the applications, and the secret.
    pub(crate) client: Option<(String, SecretString)>,
}

impl Gate {
    /// Lets a call pass, or says why not.
    pub(crate) fn admit(&self, core: &Core, caller: Caller, asked: &ApiRequest) -> Result<(), Fault> {
        match caller {
            Caller::Anybody => Ok(()),
            Caller::Administrator => self.admit_administrator(core, asked),
            Caller::Application => self.admit_application(core, asked),
        }
    }

    /// Whoever logs in needs no account yet: he gets one by it.
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
        // Without a key nobody can have signed anything.
        let (key, secret) = self.client.as_ref().ok_or_else(|| Fault::token(&TokenFault::Forged))?;
        let now = core.time().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        token::check(&token, key, secret.expose_secret().as_bytes(), now).map_err(|why| Fault::token(&why))
    }
}

/// The token that a call shows.
pub(super) fn bearer(asked: &ApiRequest) -> Option<String> {
    let header = asked.authorization.as_deref()?;
    let token = header.replacen("Bearer ", "", 1).trim().to_owned();
    Some(token).filter(|token| !token.is_empty())
}

/// Takes as long whether the first or the last letter differs.
fn is_same(one: &str, other: &str) -> bool {
    let pairs = one.bytes().zip(other.bytes());
    one.len() == other.len() && pairs.fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
}

/// Sees that the caller names a student, and one who is known if he needs to be. The original asks
/// that before it asks the application for its token.
fn name_student(core: &Core, asked: &ApiRequest) -> Result<(), Fault> {
    match asked.route.strip_prefix("/api/v6/") {
        None => Ok(()),
        Some("init" | "featureflag") => asked.student_id().map(drop),
        Some(_) => core.student(asked).map(drop),
    }
}
