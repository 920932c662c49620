//! Whether a request that was refused may be sent again, with another token.

use super::failure::Server;
#[cfg(feature = "mcp-oauth")]
use super::oauth::Authorization;
use crate::error::{Error, Result};

/// The authorization of a connection; none without `oauth(..)`.
#[derive(Default)]
pub(super) struct Access {
    #[cfg(feature = "mcp-oauth")]
    pub(super) authorization: Option<Authorization>,
}

impl Access {
    /// Sends a request, and again if a new authorization could help. `challenge` is the header
    /// `WWW-Authenticate` of a refused one. The limit of time is that of `send`, so that none runs while a
    /// person is asked.
    pub(super) async fn send<T, E, X: From<Error>, S: Future<Output = Result<Result<T, E>, X>>>(
        &self,
        server: &Server,
        challenge: fn(&E) -> Option<&str>,
        send: impl Fn() -> S,
    ) -> Result<Result<T, E>, X> {
        let count = self.count();
        let answer = send().await?;
        let refused = answer.as_ref().err().and_then(challenge);
        match refused {
            Some(refused) if self.renew(refused, count, server).await? => send().await,
            _ => Ok(answer),
        }
    }

    #[cfg(feature = "mcp-oauth")]
    fn count(&self) -> u64 {
        self.authorization.as_ref().map_or(0, Authorization::count)
    }

    #[cfg(feature = "mcp-oauth")]
    async fn renew(&self, challenge: &str, count: u64, server: &Server) -> Result<bool> {
        let Some(authorization) = &self.authorization else { return Ok(false) };
        authorization.answer(challenge, count, server).await?;
        Ok(true)
    }

    #[cfg(not(feature = "mcp-oauth"))]
    fn count(&self) -> u64 {
        0
    }

    #[cfg(not(feature = "mcp-oauth"))]
    async fn renew(&self, _: &str, _: u64, _: &Server) -> Result<bool> {
        Ok(false)
    }
}
