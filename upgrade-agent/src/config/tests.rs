//! Tests of the precedence of settings, of error messages and of the protection of secrets.

use std::fs;

use super::*;

struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let path = std::env::temp_dir().join(format!("upgrade-agent-config-{}", uuid::Uuid::new_v4()));
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn with(self, text: &str) -> Self {
        fs::write(self.0.join("upgrade-agent.json"), text).unwrap();
        self
    }

    fn flags(&self) -> Flags {
        Flags { data_dir: Some(self.0.clone()), ..Flags::default() }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn env<'a>(pairs: &'a [(&'a str, &'a str)]) -> impl Fn(&str) -> Option<String> + 'a {
    move |name| pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
}

fn file_error(text: &str) -> String {
    let folder = Folder::new().with(text);
    Config::collect(&folder.flags(), &env(&[])).unwrap_err().to_string()
}

#[test]
fn flags_override_variables_and_variables_override_the_file() {
    let folder = Folder::new().with(r#"{"url": "http://file/api", "confidence": 0.1, "temperature": 0.4}"#);
    let vars = [("UPGRADE_API_URL", "http://env/api"), ("UPGRADE_AGENT_CONFIDENCE", "0.2")];
    let flags = Flags { url: Some("http://flag/api".into()), ..folder.flags() };
    let config = Config::collect(&flags, &env(&vars)).unwrap();
    assert_eq!(
        (config.url.as_deref(), config.confidence, config.temperature),
        (Some("http://flag/api"), 0.2, Some(0.4))
    );
    let config = Config::collect(&folder.flags(), &env(&vars)).unwrap();
    assert_eq!(config.url.as_deref(), Some("http://env/api"));
    let config = Config::collect(&folder.flags(), &env(&[])).unwrap();
    assert_eq!((config.url.as_deref(), config.confidence), (Some("http://file/api"), 0.1));
}

#[test]
fn without_any_setting_the_server_is_embedded_and_the_model_offline() {
    let folder = Folder::new();
    let config = Config::collect(&folder.flags(), &env(&[])).unwrap();
    assert!(config.url.is_none() && config.model.is_none() && config.token.is_none());
    assert_eq!((config.temperature, config.confidence), (None, CONFIDENCE));
}

#[test]
fn an_api_key_selects_the_language_model_unless_offline_is_set() {
    let folder = Folder::new();
    let vars = [("ANTHROPIC_API_KEY", "sk-hunter2"), ("UPGRADE_AGENT_MODEL", "claude-x")];
    let model = Config::collect(&folder.flags(), &env(&vars)).unwrap().model.unwrap();
    assert_eq!((model.name.model.as_str(), model.timeout), ("claude-x", Duration::from_secs(60)));
    let unnamed = Config::collect(&folder.flags(), &env(&vars[..1])).unwrap().model.unwrap();
    assert_eq!(unnamed.name.model, DEFAULT_MODEL);
    let flags = Flags { offline: true, ..folder.flags() };
    assert!(Config::collect(&flags, &env(&vars)).unwrap().model.is_none());
    let blank = [("ANTHROPIC_API_KEY", " ")];
    assert!(Config::collect(&folder.flags(), &env(&blank)).unwrap().model.is_none());
}

#[test]
fn a_provider_before_the_name_selects_wire_key_and_address() {
    let folder = Folder::new();
    let vars = [
        ("OPENAI_API_KEY", "sk-o"),
        ("OPENAI_BASE_URL", "http://localhost:1"),
        ("ANTHROPIC_API_KEY", "sk-a"),
    ];
    let model = |text: &str, vars: &[(&'static str, &'static str)]| {
        let flags = Flags { model: Some(text.to_owned()), ..folder.flags() };
        Config::collect(&flags, &env(vars)).map(|config| config.model)
    };
    for (text, provider) in [("openai:gpt-x", Provider::OpenAi), ("openai-chat:gpt-x", Provider::OpenAiChat)]
    {
        let found = model(text, &vars).unwrap().unwrap();
        assert_eq!((found.name.provider, found.name.model.as_str()), (provider, "gpt-x"));
        assert_eq!(found.key.unwrap().expose_secret(), "sk-o");
        assert_eq!(found.base_url.as_deref(), Some("http://localhost:1"));
    }
    let local = model("ollama:qwen3:8b", &[]).unwrap().unwrap();
    assert_eq!((local.name.model.as_str(), local.key.is_none()), ("qwen3:8b", true));
    assert!(model("offline", &vars).unwrap().is_none());
    for (text, needed) in [("openai:gpt-x", "OPENAI_API_KEY"), ("anthropic:c", "ANTHROPIC_API_KEY")] {
        let error = model(text, &[]).unwrap_err().to_string();
        assert!(error.contains(needed), "{error}");
    }
    let error = model("acme:large", &vars).unwrap_err().to_string();
    assert!(error.contains("`gemini:`"), "{error}");
}

#[test]
fn errors_in_the_file_are_explained_and_unknown_settings_get_the_nearest_name() {
    assert!(file_error(r#"{"modle": "x"}"#).contains("did you mean `model`?"));
    assert!(file_error(r#"{"model-timeout": 3}"#).contains("did you mean `model_timeout`?"));
    assert!(file_error(r#"{"colour": "red"}"#).contains("there are url, timeout, service_account"));
    assert!(file_error(r#"{"token": "hunter2"}"#).contains("UPGRADE_TOKEN"));
    assert!(!file_error(r#"{"token": "hunter2"}"#).contains("hunter2"));
    assert!(file_error("[1]").contains("must be a JSON object"));
    assert!(file_error("{").contains("is not JSON"));
    assert!(file_error(r#"{"confidence": "high"}"#).contains("does not fit"));
    assert!(file_error(r#"{"data_dir": "/x"}"#).contains("--data-dir"));
}

#[test]
fn errors_about_invalid_values_name_the_flag_or_variable() {
    let folder = Folder::new();
    let wrong =
        |flags: Flags, vars: &[(&str, &str)]| Config::collect(&flags, &env(vars)).unwrap_err().to_string();
    assert!(wrong(Flags { confidence: Some(1.5), ..folder.flags() }, &[]).contains("--confidence"));
    assert!(
        wrong(folder.flags(), &[("UPGRADE_AGENT_TEMPERATURE", "warm")]).contains("UPGRADE_AGENT_TEMPERATURE")
    );
    assert!(wrong(folder.flags(), &[("UPGRADE_AGENT_TEMPERATURE", "NaN")]).contains("out of range"));
    assert!(wrong(folder.flags(), &[("UPGRADE_AGENT_MODEL_TIMEOUT", "0")]).contains("timeout"));
    assert!(wrong(folder.flags(), &[("UPGRADE_AGENT_OFFLINE", "maybe")]).contains("UPGRADE_AGENT_OFFLINE"));
}

#[test]
fn debug_output_of_the_config_contains_no_secrets() {
    let folder = Folder::new();
    let vars = [("ANTHROPIC_API_KEY", "sk-hunter2"), ("UPGRADE_TOKEN", "hunter2-token")];
    let config = Config::collect(&folder.flags(), &env(&vars)).unwrap();
    assert!(!format!("{config:?} {config:#?}").contains("hunter2"));
}

#[test]
fn a_config_file_given_by_flag_must_exist() {
    let folder = Folder::new();
    let flags = Flags { config: Some(folder.0.join("none.json")), ..folder.flags() };
    let error = Config::collect(&flags, &env(&[])).unwrap_err().to_string();
    assert!(error.starts_with("E_CONFIG_FILE") && error.contains("none.json"), "{error}");
}

#[cfg(all(unix, not(target_os = "macos")))]
#[test]
fn the_data_folder_follows_xdg_data_home_and_home() {
    let found = |vars: &[(&str, &str)]| folder::of_user(&env(vars));
    assert_eq!(found(&[("HOME", "/h")]), Some(PathBuf::from("/h/.local/share/upgrade-agent")));
    assert_eq!(found(&[("HOME", "/h"), ("XDG_DATA_HOME", "/x")]), Some(PathBuf::from("/x/upgrade-agent")));
    assert_eq!(
        found(&[("HOME", "/h"), ("XDG_DATA_HOME", "rel")]),
        Some(PathBuf::from("/h/.local/share/upgrade-agent"))
    );
    assert_eq!(found(&[]), None);
}

#[test]
fn variables_of_upgrades_own_agent_are_used_if_ours_are_not_set() {
    let folder = Folder::new();
    let theirs = [
        ("UPGRADE_API_TIMEOUT", "12"),
        ("UPGRADE_SERVICE_ACCOUNT_KEY_PATH", "/keys/account.json"),
        ("ANTHROPIC_API_KEY", "sk-1"),
        ("ANTHROPIC_API_TIMEOUT", "90"),
        ("ANTHROPIC_MODEL_NAME", "claude-theirs"),
    ];
    let config = Config::collect(&folder.flags(), &env(&theirs)).unwrap();
    let model = config.model.unwrap();
    assert_eq!((config.timeout, model.timeout), (Duration::from_secs(12), Duration::from_secs(90)));
    assert_eq!(config.service_account, Some(PathBuf::from("/keys/account.json")));
    assert_eq!(model.name.model, "claude-theirs");
    let ours = [
        ("UPGRADE_AGENT_TIMEOUT", "5"),
        ("UPGRADE_AGENT_MODEL_TIMEOUT", "6"),
        ("UPGRADE_AGENT_MODEL", "claude-ours"),
    ];
    let both: Vec<_> = theirs.into_iter().chain(ours).collect();
    let config = Config::collect(&folder.flags(), &env(&both)).unwrap();
    let model = config.model.unwrap();
    assert_eq!((config.timeout, model.timeout), (Duration::from_secs(5), Duration::from_secs(6)));
    assert_eq!(model.name.model, "claude-ours");
}

#[test]
fn client_key_and_client_secret_must_be_set_together() {
    let folder = Folder::new();
    let collect = |vars: &[(&str, &str)]| Config::collect(&folder.flags(), &env(vars));
    let both = [("UPGRADE_CLIENT_KEY", "app"), ("UPGRADE_CLIENT_SECRET", "hunter2")];
    assert!(collect(&both).unwrap().client_key.is_some_and(|(key, _)| key == "app"));
    let error = collect(&both[..1]).unwrap_err().to_string();
    assert!(error.contains("UPGRADE_CLIENT_KEY: needs UPGRADE_CLIENT_SECRET"), "{error}");
    let error = collect(&both[1..]).unwrap_err().to_string();
    assert!(
        error.contains("UPGRADE_CLIENT_SECRET: needs UPGRADE_CLIENT_KEY") && !error.contains("hunter2"),
        "{error}"
    );
}

#[test]
fn the_config_report_has_the_source_of_each_setting_and_no_secret() {
    let folder = Folder::new().with(r#"{"confidence": 0.9}"#);
    let vars = [
        ("UPGRADE_API_URL", "https://ada:hunter2@school.example/api?x=a@b"),
        ("UPGRADE_TOKEN", "hunter2"),
        ("UPGRADE_CLIENT_KEY", "app"),
        ("UPGRADE_CLIENT_SECRET", "hunter2"),
        ("ANTHROPIC_API_KEY", "hunter2"),
    ];
    let flags = Flags { temperature: Some(0.5), ..folder.flags() };
    let report = Config::collect(&flags, &env(&vars)).unwrap().report;
    let told = |name: &str| {
        let told = report.0.iter().find(|told| told.name == name).unwrap();
        (told.value.clone(), told.set, told.from.clone())
    };
    let file = folder.0.join("upgrade-agent.json").display().to_string();
    assert_eq!(told("url").0.as_deref(), Some("https://***@school.example/api?***"));
    assert_eq!(told("temperature"), (Some("0.5".into()), true, "--temperature".into()));
    assert_eq!(told("confidence"), (Some("0.9".into()), true, file));
    assert_eq!(told("model_timeout"), (Some("60".into()), false, "default".into()));
    assert_eq!(told("token"), (None, true, "UPGRADE_TOKEN".into()));
    assert!(!format!("{report:?}").contains("hunter2"));
}
