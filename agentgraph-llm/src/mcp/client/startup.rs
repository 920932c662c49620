//! The first exchange with a server that may be slow to start.
//!
//! Without a protocol that is set, the client first asks in the newer era (`server/discover`), and after ten
//! seconds in the older one (`initialize`). A program that took longer to start finds both requests, and
//! answers both. The answer to the first one must not be read as that to the second.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::model::{
    ClientRequest, InitializeResult, JsonRpcMessage, ProtocolVersion, RequestId, ServerPeerInfo, ServerResult,
};
use rmcp::service::{RoleClient, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;

/// What the client waits for, for the message of a timeout.
#[derive(Clone, Debug, Default)]
pub(super) struct Awaited(Arc<Mutex<Option<&'static str>>>);

impl Awaited {
    fn set(&self, what: &'static str) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(what);
    }

    /// What the server did not do.
    pub(super) fn text(&self) -> String {
        match *self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(method) => format!("answer the request `{method}`"),
            None => "take a request".to_owned(),
        }
    }
}

/// A transport that knows which of the first requests an answer belongs to.
pub(super) struct Startup<T> {
    transport: T,
    awaited: Awaited,
    discover: Option<RequestId>,
    initialize: Option<RequestId>,
    /// The request whose answer was made of a late one to `discover`. Its own answer means nothing.
    superseded: Option<RequestId>,
}

impl<T> Startup<T> {
    pub(super) fn new(transport: T, awaited: Awaited) -> Self {
        Startup { transport, awaited, discover: None, initialize: None, superseded: None }
    }

    fn sees(&mut self, message: &TxJsonRpcMessage<RoleClient>) {
        let JsonRpcMessage::Request(asked) = message else { return };
        match &asked.request {
            ClientRequest::DiscoverRequest(_) if self.initialize.is_none() => {
                self.discover = Some(asked.id.clone());
                self.awaited.set("server/discover");
            }
            ClientRequest::InitializeRequest(_) => {
                self.initialize = Some(asked.id.clone());
                self.awaited.set("initialize");
            }
            _ => {}
        }
    }

    /// The message for the client; `None` if it answers a request that has timed out.
    fn sort(&mut self, message: RxJsonRpcMessage<RoleClient>) -> Option<RxJsonRpcMessage<RoleClient>> {
        let id = match &message {
            JsonRpcMessage::Response(answer) => Some(&answer.id),
            JsonRpcMessage::Error(refused) => refused.id.as_ref(),
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
        };
        let is = |asked: &Option<RequestId>| asked.as_ref().zip(id).is_some_and(|(asked, id)| asked == id);
        if is(&self.superseded) {
            return None;
        }
        let (true, Some(initialize)) = (is(&self.discover), &self.initialize) else { return Some(message) };
        let initialize = initialize.clone();
        let JsonRpcMessage::Response(answer) = message else { return None };
        let ServerResult::DiscoverResult(found) = answer.result else { return None };
        let newest = ProtocolVersion::V_2026_07_28;
        if !found.supported_versions.contains(&newest) {
            return None;
        }
        // The server is of the newer era: it will refuse `initialize`.
        self.superseded = Some(initialize.clone());
        let ServerPeerInfo { capabilities, instructions, server_info, .. } =
            ServerPeerInfo::from_discover_result(newest.clone(), found);
        let mut started = InitializeResult::new(capabilities);
        started.protocol_version = newest;
        started.instructions = instructions;
        if let Some(server_info) = server_info {
            started.server_info = server_info;
        }
        Some(JsonRpcMessage::response(ServerResult::InitializeResult(started), initialize))
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Startup<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.sees(&message);
        self.transport.send(message)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let message = self.transport.receive().await?;
            if let Some(message) = self.sort(message) {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.transport.close().await
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rmcp::transport::IntoTransport;
    use rmcp::{ClientLifecycleMode, ClientServiceExt};
    use serde_json::{Value, json};
    use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream};

    use super::*;
    use crate::mcp::McpProtocol;

    /// A server that needs 13 seconds to start, and then answers all that came.
    async fn slow_server(stream: DuplexStream, answer: fn(&Value) -> Value) {
        tokio::time::sleep(Duration::from_secs(13)).await;
        let (reader, mut writer) = tokio::io::split(stream);
        let mut lines = BufReader::new(reader).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            let asked: Value = serde_json::from_str(&line).unwrap();
            if let Some(id) = asked.get("id") {
                let mut answer = answer(&asked["method"]);
                answer["jsonrpc"] = json!("2.0");
                answer["id"] = id.clone();
                writer.write_all(format!("{answer}\n").as_bytes()).await.unwrap();
            }
        }
    }

    fn older(method: &Value) -> Value {
        match method.as_str() {
            Some("initialize") => json!({"result": {"protocolVersion": "2025-11-25", "capabilities": {},
                "serverInfo": {"name": "slow", "version": "1"}, "instructions": "older"}}),
            _ => json!({"error": {"code": -32601, "message": "no such method"}}),
        }
    }

    fn newer(method: &Value) -> Value {
        match method.as_str() {
            Some("server/discover") => {
                json!({"result": {"resultType": "complete", "supportedVersions": ["2026-07-28"],
                "ttlMs": 0, "cacheScope": "private", "capabilities": {}, "instructions": "newer"}})
            }
            _ => json!({"error": {"code": -32601, "message": "no such method"}}),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_starts_slowly_is_connected_in_its_own_era() {
        for (answer, version, instructions) in
            [(older as fn(&Value) -> Value, "2025-11-25", "older"), (newer, "2026-07-28", "newer")]
        {
            let (near, far) = tokio::io::duplex(1 << 16);
            tokio::spawn(slow_server(far, answer));
            let transport = IntoTransport::<RoleClient, _, _>::into_transport(tokio::io::split(near));
            let awaited = Awaited::default();
            let transport = Startup::new(transport, awaited.clone());
            let (listener, _heard) = super::super::Listener::new(false);
            let mode = ClientLifecycleMode::from(McpProtocol::Auto);
            let running = listener.serve_with_lifecycle(transport, mode).await.unwrap();
            let info = running.peer().peer_info().unwrap();
            assert_eq!(info.protocol_version.as_str(), version);
            assert_eq!(info.instructions.as_deref(), Some(instructions));
            assert_eq!(awaited.text(), "answer the request `initialize`");
        }
    }
}
