//! Settings that a model refuses are left out.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;

use super::attempts::{Attempts, Next, first_success};
use super::{Hooks, Middleware, ModelRequest, NextModel};
use crate::error::{Code, Error, Result};
use crate::model::{ChatRequest, ChatStream, ModelInfo};

/// Leaves out the temperature, or the share of the likeliest words (`top_p`), for a model that refuses it.
///
/// Some models take no temperature, and refuse a request that has one as `E_LLM_BAD_REQUEST`. If the message
/// of such an error names a setting that the request has, the request is made again without it, and later
/// requests to that model are made without it at once. Every other error passes. Make it an inner middleware:
/// inside [`ModelFallback`](super::ModelFallback), each model keeps what it accepts.
///
/// ```
/// use agentgraph_llm::middleware::{Middleware, ModelRequest, NextModel, RefusedSettings};
/// use agentgraph_llm::prelude::*;
/// use agentgraph_llm::{Code, Error};
/// use std::sync::Arc;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> agentgraph_llm::Result<()> {
/// let model = ScriptedModel::from_fn(|request| match request.temperature {
///     Some(_) => Error::new(Code::BadRequest, "Unsupported value: 'temperature' does not support 0").into(),
///     None => Reply::text("hello"),
/// });
/// let settings = RefusedSettings::new();
/// for _ in 0..2 {
///     let request = ModelRequest::new(Arc::new(model.clone()), ChatRequest::user("hi").with_temperature(0.0));
///     let stream = settings.wrap_model(request, NextModel::direct()).await?;
///     assert_eq!(stream.into_response().await?.message.text(), "hello");
/// }
/// assert_eq!(model.requests().len(), 3, "the second call began without a temperature");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct RefusedSettings {
    /// Clones share what was learned.
    refused: Arc<Mutex<BTreeSet<(String, Setting)>>>,
}

/// A setting that may be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Setting {
    Temperature,
    TopP,
}

const SETTINGS: [Setting; 2] = [Setting::Temperature, Setting::TopP];

impl Setting {
    fn is_in(self, request: &ChatRequest) -> bool {
        match self {
            Setting::Temperature => request.temperature.is_some(),
            Setting::TopP => request.top_p.is_some(),
        }
    }

    fn leave_out(self, request: &mut ChatRequest) {
        match self {
            Setting::Temperature => request.temperature = None,
            Setting::TopP => request.top_p = None,
        }
    }

    /// Whether a message names the setting, as the wires of all providers spell it.
    fn is_named_in(self, message: &str) -> bool {
        let names: &[&str] = match self {
            Setting::Temperature => &["temperature"],
            Setting::TopP => &["top_p", "topP"],
        };
        names.iter().any(|name| message.contains(name))
    }
}

impl RefusedSettings {
    /// Nothing is left out until a model refuses it.
    pub fn new() -> Self {
        RefusedSettings::default()
    }

    fn without_refused(&self, mut request: ModelRequest) -> ModelRequest {
        let model = name(&request.model.info());
        let refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        for setting in SETTINGS {
            if refused.contains(&(model.clone(), setting)) {
                setting.leave_out(&mut request.request);
            }
        }
        request
    }

    /// The setting that the error refuses, from now on left out.
    fn learn(&self, error: &Error, request: &ModelRequest) -> Option<Setting> {
        if error.code() != Code::BadRequest {
            return None;
        }
        let named =
            |setting: &Setting| setting.is_in(&request.request) && setting.is_named_in(error.message());
        let setting = SETTINGS.into_iter().find(named)?;
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        refused.insert((name(&request.model.info()), setting));
        Some(setting)
    }
}

fn name(model: &ModelInfo) -> String {
    model.to_string()
}

#[async_trait]
impl Middleware for RefusedSettings {
    fn name(&self) -> &str {
        "refused_settings"
    }

    fn hooks(&self) -> Hooks {
        Hooks::NONE
    }

    async fn wrap_model(&self, request: ModelRequest, next: NextModel<'_>) -> Result<ChatStream> {
        let (request, next) = (self.without_refused(request), next.into_owned());
        let first = next.clone().run(request.clone()).await;
        first_success(first, Without { settings: self.clone(), request, next }).await
    }
}

/// Each attempt has one setting less, so there are few.
struct Without {
    settings: RefusedSettings,
    request: ModelRequest,
    next: NextModel<'static>,
}

#[async_trait]
impl Attempts for Without {
    async fn next(&mut self, failed: Error) -> Next {
        let Some(setting) = self.settings.learn(&failed, &self.request) else {
            return Next::GiveUp(failed);
        };
        setting.leave_out(&mut self.request.request);
        Next::Attempt(self.next.clone().run(self.request.clone()).await)
    }
}
