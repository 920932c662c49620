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
    pub(crate) fn notify(self, method: &str) -> Self {
        self.send(&json!({"jsonrpc": "2.0", "method": method}))
    }

    /// Sends any message.
    pub(crate) fn send(mut self, message: &Value) -> Self {
        self.0 += &format!("printf '%s\\n' '{message}'\n");
        self
    }

    /// A server without a handshake, which answers a request by its method: with `$id` in place of its id,
    /// and with one line for each line of the answer.
    pub(crate) fn stateless(answers: &[(&str, &str)]) -> Self {
        let discovered = json!({"jsonrpc": "2.0", "id": "$id", "result": {
            "resultType": "complete", "supportedVersions": ["2026-07-28"], "ttlMs": 0, "cacheScope": "private",
            "capabilities": {"tools": {"listChanged": true}},
        }});
        let discovered = discovered.to_string().replace("\"$id\"", "$id");
        let mut script = Script("while read -r line; do\n".to_owned());
        script.0 += r#"id=$(printf '%s' "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')"#;
        script.0 += "\ncase \"$line\" in\n";
        for (method, answer) in [("server/discover", &*discovered)].into_iter().chain(answers.iter().copied())
        {
            script.0 += &format!("*'\"method\":\"{method}\"'*) cat <<END\n{answer}\nEND\n;;\n");
        }
        script.0 += "esac\ndone\n";
        script
    }

    /// Reads everything and answers nothing, until the client ends.
    pub(crate) fn hang(mut self) -> Self {
        self.0 += "while read -r line; do :; done\n";
        self
    }

    /// Runs a line of the shell.
    pub(crate) fn run(mut self, line: &str) -> Self {
        self.0 += line;
        self.0 += "\n";
        self
    }

    /// The client of this server, which ends after its last line.
    pub(crate) fn client(self) -> McpClientBuilder {
        let mut command = Command::new("sh");
        command.args(["-c", &self.0]);
        McpClient::command(command).protocol(McpProtocol::Handshake)
    }
}
