//! The conversation on the page.

use serde_json::json;

use crate::browser::Browser;

impl Browser {
    /// The text of the conversation.
    pub(crate) async fn talk(&self) -> String {
        let text = self.script("return document.getElementById('talk').innerText").await;
        text.as_str().unwrap_or_default().to_owned()
    }

    pub(crate) async fn says(&self, text: &str) {
        self.types("#text", &format!("{text}\u{e007}")).await;
    }

    /// Waits until the conversation contains a text.
    pub(crate) async fn hears(&self, text: &str) {
        self.until(&format!("return document.getElementById('talk').innerText.includes({})", json!(text)))
            .await;
    }
}
