//! The precedence of settings, and what is refused.

use secrecy::ExposeSecret;

use super::*;

/// A folder that is removed on drop.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let path = std::env::temp_dir().join(format!("gaia-config-{}", uuid::Uuid::new_v4()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn write(&self, name: &str, text: &str) -> &Self {
        std::fs::write(self.0.join(name), text).unwrap();
        self
    }

    fn collect(&self, flags: &[&str], variables: &[(&str, &str)]) -> Result<Config, ConfigError> {
        #[derive(clap::Parser)]
        struct Program {
            #[command(flatten)]
            flags: Flags,
        }
        let flags = <Program as clap::Parser>::parse_from(["gaia-agent"].iter().chain(flags)).flags;
        let flags = Flags { data_dir: flags.data_dir.or(Some(self.0.clone())), ..flags };
        let process = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        Config::collect(&flags, &process, &self.0)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn the_defaults_are_those_of_the_document() {
    let config = Folder::new().collect(&[], &[]).unwrap();
    let settings = &config.settings;
    assert_eq!((settings.log_to_file, settings.use_cache), (true, true));
    assert_eq!((settings.recursion_limit, settings.max_retries, settings.temperature), (50, 5, Some(0.0)));
    assert_eq!(settings.cache_file, config.data_dir.join("agent_cache.json"));
    assert!(settings.reformulate);
    let plain = Folder::new().collect(&["--no-reformulate"], &[]).unwrap();
    assert!(!plain.settings.reformulate);
    assert!(
        config.models.main.is_none()
            && config.models.fallback.is_none()
            && !config.tools.python
            && config.cache.fuzzy.is_none()
    );
}

#[test]
fn with_a_key_the_models_are_those_of_the_document() {
    let config = Folder::new()
        .collect(&[], &[("OPENAI_API_KEY", "k-123456"), ("GEMINI_API_KEY", "g-123456")])
        .unwrap();
    assert_eq!(config.model_name(), "openai:gpt-4o");
    assert_eq!(config.models.fallback.unwrap().name.to_string(), "openai:gpt-4o-mini");
    assert_eq!(config.models.media.unwrap().name.provider, Provider::Gemini);
    let config = Folder::new().collect(&["--model", "offline"], &[("OPENAI_API_KEY", "k-123456")]).unwrap();
    assert!(config.models.main.is_none() && config.models.fallback.is_none());
}

#[test]
fn flags_precede_variables_those_dot_env_and_that_the_file() {
    let folder = Folder::new();
    folder.write(
        "gaia-agent.json",
        r#"{"model": "ollama:file", "max_retries": 1, "recursion_limit": 7, "temperature": null}"#,
    );
    assert_eq!(folder.collect(&[], &[]).unwrap().model_name(), "ollama:file");
    folder.write(".env", "# comment\nexport GAIA_AGENT_MODEL='ollama:dotenv'\nTAVILY_API_KEY=tvly-of-file\n");
    let config = folder.collect(&[], &[]).unwrap();
    assert_eq!((config.model_name().as_str(), config.settings.max_retries), ("ollama:dotenv", 1));
    assert_eq!((config.settings.recursion_limit, config.settings.temperature), (7, None));
    assert_eq!(config.keys.tavily.unwrap().expose_secret(), "tvly-of-file");
    let variables = [("GAIA_AGENT_MODEL", "ollama:variable"), ("TAVILY_API_KEY", "tvly-of-process")];
    let config = folder.collect(&[], &variables).unwrap();
    assert_eq!(config.model_name(), "ollama:variable");
    assert_eq!(config.keys.tavily.unwrap().expose_secret(), "tvly-of-process");
    let config = folder.collect(&["--model", "ollama:flag", "--max-retries", "0"], &variables).unwrap();
    assert_eq!((config.model_name().as_str(), config.settings.max_retries), ("ollama:flag", 0));
}

#[test]
fn wrong_settings_are_refused_by_name_and_no_key_is_shown() {
    let refused = |flags: &[&str], variables: &[(&str, &str)]| {
        Folder::new().collect(flags, variables).unwrap_err().to_string()
    };
    for (flags, part) in [
        (&["--model", "acme:large"][..], "--model"),
        (&["--model", "openai:gpt-4o"], "OPENAI_API_KEY"),
        (&["--temperature", "warm"], "--temperature"),
        (&["--temperature", "-1"], "--temperature"),
        (&["--recursion-limit", "0"], "recursion_limit"),
        (&["--fuzzy-cache", "0.2"], "--fuzzy-cache"),
        (&["--prompt", "c"], "--prompt"),
        (&["--config", "/nowhere/gaia.json"], "/nowhere/gaia.json"),
    ] {
        let text = refused(flags, &[]);
        assert!(text.starts_with("E_GAIA_CONFIG: ") && text.contains(part), "{flags:?}: {text}");
    }
    assert!(refused(&[], &[("GAIA_AGENT_WIKIPEDIA_URL", "ftp://x")]).contains("wikipedia"));
    for (file, part) in [
        (r#"{"openai_api_key": "sk-secret-1"}"#, "openai_api_key"),
        (r#"{"addresses": {"google": "http://x"}}"#, "google"),
        ("[]", "gaia-agent.json"),
    ] {
        let folder = Folder::new();
        let text = folder.write("gaia-agent.json", file).collect(&[], &[]).unwrap_err().to_string();
        assert!(text.contains(part) && !text.contains("sk-secret-1"), "{text}");
    }
    let folder = Folder::new();
    let text =
        folder.write(".env", "OPENAI_API_KEY='sk-secret-1\n").collect(&[], &[]).unwrap_err().to_string();
    assert!(text.contains(".env") && !text.contains("sk-secret-1"), "{text}");
    let config = Folder::new().collect(&[], &[("OPENAI_API_KEY", "sk-secret-1")]).unwrap();
    assert!(!format!("{config:?}").contains("sk-secret-1"));
}
