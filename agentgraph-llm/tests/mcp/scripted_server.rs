//! A server as a shell script, so that it answers what no library would.

use std::process::Command;

use agentgraph_llm::mcp::{McpClient, McpClientBuilder, McpProtocol};
use serde_json::{Value, json};

/// A script of a server. Each answer goes to the request that was read last.
pub(crate) struct Script(String);

impl Script {
    /// Nothing yet.
    pub(crate) fn empty() -> Self {
        Script(String::new())
    }

    /// The handshake of 2025-11-25, after which the client may ask.
    pub(crate) fn started() -> Self {
        let result = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {"listChanged": true}},
            "serverInfo": {"name": "script", "version": "1"},
            "instructions": "Be gentle.",
        });
        Script::empty().answer(result).read()
    }

    /// The handshake, and a list with one tool of this name.
    pub(crate) fn with_tool(name: &str) -> Self {
        Script::started().list(&[name])
    }

    /// Answers a request for the list.
    pub(crate) fn list(self, names: &[&str]) -> Self {
        let tools = names.iter().map(|name| json!({"name": name, "inputSchema": {"type": "object"}}));
        self.answer(json!({"tools": tools.collect::<Vec<_>>()}))
    }

    /// Reads a message that has no answer.
    pub(crate) fn read(mut self) -> Self {
        self.0 += "read -r line || exit\n";
        self
    }

    /// Reads a request and answers it.
    pub(crate) fn answer(self, result: Value) -> Self {
        self.reply("result", &result)
    }

    /// Reads a request and answers it with an error.
    pub(crate) fn error(self, code: i64, message: &str) -> Self {
        self.reply("error", &json!({"code": code, "message": message}))
    }

    fn reply(self, field: &str, value: &Value) -> Self {
        let mut script = self.read();
        script.0 += r#"id=$(printf '%s' "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')"#;
        let value = value.to_string().replace('\'', "'\\''");
        script.0 +=
            &format!("\nprintf '{{\"jsonrpc\":\"2.0\",\"id\":%s,\"{field}\":%s}}\\n' \"$id\" '{value}'\n");
        script
    }

    /// Sends a notification.
    pub(crate) fn notify(mut self, method: &str) -> Self {
        self.0 += &format!("printf '%s\\n' '{}'\n", json!({"jsonrpc": "2.0", "method": method}));
        self
    }

    /// Reads everything and answers nothing, until the client ends.
    pub(crate) fn hang(mut self) -> Self {
        self.0 += "while read -r line; do :; done\n";
        self
    }

    /// The client of this server, which ends after its last line.
    pub(crate) fn client(self) -> McpClientBuilder {
        let mut command = Command::new("sh");
        command.args(["-c", &self.0]);
        McpClient::command(command).protocol(McpProtocol::Handshake)
    }
}
