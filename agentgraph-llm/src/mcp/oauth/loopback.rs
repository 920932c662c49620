//! The address on this machine to which a browser comes back.

use std::net::Ipv4Addr;
use std::time::Duration;

use axum::Router;
use axum::http::{StatusCode, Uri};
use axum::routing::get;
use reqwest::Url;
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use crate::error::{Code, Error, Result};

/// How long a person may take.
const PATIENCE: Duration = Duration::from_secs(300);

const DONE: &str = "The program has what it needs. You can close this page.";
const FOREIGN: &str = "This page does not belong to the login that the program waits for.";

pub(super) struct Loopback {
    listener: TcpListener,
    address: String,
}

impl Loopback {
    pub(super) async fn bind(port: u16) -> Result<Self> {
        let bound = async {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
            let address = format!("http://{}/callback", listener.local_addr()?);
            std::io::Result::Ok(Loopback { listener, address })
        };
        bound.await.map_err(|error| {
            let message =
                format!("cannot listen at port {port} for the end of the login: set another `port(..)`");
            Error::new(Code::Config, message).with_source(error)
        })
    }

    /// The address to come back to.
    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// The address with the query that the browser came back with. Other pages can reach this port, too, so a
    /// request with another `state` is refused, and the wait goes on.
    pub(super) async fn redirected(self, opened: &Url) -> Result<String> {
        let (sender, mut came) = mpsc::channel(1);
        let (address, expected) = (self.address, state(opened));
        let callback = get(move |uri: Uri| {
            let redirected = format!("{address}?{}", uri.query().unwrap_or_default());
            let is_ours = Url::parse(&redirected).is_ok_and(|url| state(&url) == expected);
            let sender = sender.clone();
            async move {
                if is_ours && sender.try_send(redirected).is_ok() {
                    (StatusCode::OK, DONE)
                } else {
                    (StatusCode::BAD_REQUEST, FOREIGN)
                }
            }
        });
        let serving = axum::serve(self.listener, Router::new().route("/callback", callback));
        // Ends with the page sent, as far as its connection does.
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let serving =
            tokio::spawn(serving.with_graceful_shutdown(async { drop(stopped.await) }).into_future());
        let redirected = tokio::time::timeout(PATIENCE, came.recv()).await;
        drop((stop, serving));
        redirected.ok().flatten().ok_or_else(|| {
            let message = format!("nobody finished the login within {PATIENCE:?}: connect or call again");
            Error::new(Code::Timeout, message).with_retryable(false)
        })
    }
}

fn state(url: &Url) -> Option<String> {
    url.query_pairs().find_map(|(name, value)| (name == "state").then(|| value.into_owned()))
}
