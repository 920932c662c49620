//! The model of an example. Each example has a script and needs no key; `--model` names a real model instead:
//!
//! ```sh
//! cargo run -p basics --bin 13_tool_agent -- --model anthropic:claude-...
//! cargo run -p basics --bin 13_tool_agent -- --model ollama:qwen3:8b --base-url http://localhost:11434/v1
//! ```
//!
//! Keys come from the environment, and so does the address without `--base-url`: see
//! [`Provider`](agentgraph_llm::Provider). `--model offline` is the script.

use std::sync::Arc;

use agentgraph_llm::{ChatModel, Code, Error, ModelName, Result};

/// The model that the arguments of the program name; `None` for the script. For programs without arguments of
/// their own.
///
/// # Errors
/// `E_LLM_CONFIG` if the name is wrong, its key is missing, or there are other arguments.
pub fn from_args() -> Result<Option<Arc<dyn ChatModel>>> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let model = take_from(&mut arguments)?;
    match arguments.first() {
        None => Ok(model),
        Some(other) => Err(config(format!("`{other}` is unknown: {USAGE}"))),
    }
}

/// Takes `--model provider:NAME` and `--base-url URL` out of arguments, and makes the model of them.
///
/// ```
/// let mut arguments = ["--model", "ollama:qwen3:8b", "reports.db"].map(str::to_owned).to_vec();
/// let model = example_model::take_from(&mut arguments)?.expect("a model is named");
/// assert_eq!(model.info().to_string(), "ollama/qwen3:8b");
/// assert_eq!(arguments, ["reports.db"]);
/// assert!(example_model::take_from(&mut arguments)?.is_none());
/// # Ok::<(), agentgraph_llm::Error>(())
/// ```
///
/// # Errors
/// `E_LLM_CONFIG` if the name is wrong, its key is missing, or an option has no value or appears twice.
pub fn take_from(arguments: &mut Vec<String>) -> Result<Option<Arc<dyn ChatModel>>> {
    let name = take(arguments, "--model")?;
    let url = take(arguments, "--base-url")?;
    let Some(name) = name.filter(|name| name != "offline") else {
        return match url {
            None => Ok(None),
            Some(_) => Err(config(format!("`--base-url` needs a model: {USAGE}"))),
        };
    };
    let settings = name.parse::<ModelName>()?.settings_from_env();
    let settings = match url {
        Some(url) => settings.base_url(url),
        None => settings,
    };
    settings.build().map(Some)
}

const USAGE: &str = "write `--model provider:NAME`, and `--base-url URL` for a server of your own";

/// Takes one option and its value, written `--option value` or `--option=value`.
fn take(arguments: &mut Vec<String>, option: &str) -> Result<Option<String>> {
    let mut value = None;
    while let Some(at) = arguments.iter().position(|argument| is_option(argument, option)) {
        let argument = arguments.remove(at);
        let given = match argument.split_once('=') {
            Some((_, given)) => given.to_owned(),
            None if at < arguments.len() => arguments.remove(at),
            None => return Err(config(format!("`{option}` has no value: {USAGE}"))),
        };
        if value.replace(given).is_some() {
            return Err(config(format!("`{option}` is there twice: {USAGE}")));
        }
    }
    Ok(value)
}

fn is_option(argument: &str, option: &str) -> bool {
    argument.strip_prefix(option).is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
}

fn config(message: String) -> Error {
    Error::new(Code::Config, message)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn taken(arguments: &[&str]) -> Result<(Option<String>, Vec<String>)> {
        let mut arguments = arguments.iter().map(|&argument| argument.to_owned()).collect();
        let model = take_from(&mut arguments)?;
        Ok((model.map(|model| model.info().to_string()), arguments))
    }

    #[test]
    fn the_options_are_taken_wherever_they_are_and_others_are_left() {
        let vllm = Some("vllm/a:b=c".to_owned());
        for arguments in [
            &["one", "--model", "vllm:a:b=c", "two", "--base-url", "http://localhost:1/v1"][..],
            &["--base-url=http://localhost:1/v1", "one", "--model=vllm:a:b=c", "two"],
        ] {
            assert_eq!(taken(arguments).unwrap(), (vllm.clone(), vec!["one".to_owned(), "two".to_owned()]));
        }
        let kept = vec!["--models".to_owned()];
        assert_eq!(taken(&["--models"]).unwrap(), (None, kept));
    }

    #[test]
    fn without_a_model_or_offline_it_is_the_script() {
        assert_eq!(taken(&[]).unwrap().0, None);
        assert_eq!(taken(&["--model", "offline"]).unwrap().0, None);
    }

    #[test]
    fn wrong_options_say_what_to_write() {
        for arguments in [
            &["--model"][..],
            &["--model", "ollama:a", "--model", "ollama:b"],
            &["--base-url", "http://localhost:1"],
            &["--model", "acme:large"],
            &["--model", "ollama:"],
            &["--model", "ollama:m", "--base-url", "not a url"],
        ] {
            let error = taken(arguments).unwrap_err();
            assert_eq!(error.code(), Code::Config, "{arguments:?}");
        }
        assert!(taken(&["--model"]).unwrap_err().message().contains("--model provider:NAME"));
    }
}
