//! The settings of an agent, under the names of its document, and the addresses of the services that its
//! tools use.

use std::path::PathBuf;

use reqwest::Url;

/// The settings of an agent, under the names of its document.
///
/// ```
/// use gaia_agent::settings::Settings;
///
/// let settings = Settings::default();
/// assert_eq!((settings.recursion_limit, settings.max_retries, settings.temperature), (50, 5, Some(0.0)));
/// assert_eq!(settings.cache_file.to_str(), Some("agent_cache.json"));
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Settings {
    /// Whether a run has a log file.
    pub log_to_file: bool,
    /// Whether answers are kept, and kept ones used.
    pub use_cache: bool,
    /// The file of the cache.
    pub cache_file: PathBuf,
    /// The most rounds of a question: answers of the model.
    pub recursion_limit: u64,
    /// The temperature of the model; `None` to send none. It is left out for a model that refuses it.
    pub temperature: Option<f32>,
    /// How often a failed request to a model is made again.
    pub max_retries: u32,
    /// Whether one more call brings an answer into the form that the model left out twice.
    pub reformulate: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            log_to_file: true,
            use_cache: true,
            cache_file: "agent_cache.json".into(),
            recursion_limit: 50,
            temperature: Some(0.0),
            max_retries: 5,
            reformulate: true,
        }
    }
}

/// The addresses of the services that tools use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// Wikipedia, below which `w/api.php` is.
    pub wikipedia: Url,
    /// arXiv's interface, below which `api/query` is.
    pub arxiv: Url,
    /// DuckDuckGo without scripts, below which `html/` is.
    pub duckduckgo: Url,
    /// Tavily, below which `search` is.
    pub tavily: Url,
    /// YouTube, below which `watch` and `youtubei/v1/player` are.
    pub youtube: Url,
    /// The archive of the web, below which `web/DATE/ADDRESS` is.
    pub archive: Url,
}

/// The services, by name, with their public addresses.
const PUBLIC: [(&str, &str); 6] = [
    ("wikipedia", "https://en.wikipedia.org"),
    ("arxiv", "https://export.arxiv.org"),
    ("duckduckgo", "https://html.duckduckgo.com"),
    ("tavily", "https://api.tavily.com"),
    ("youtube", "https://www.youtube.com"),
    ("archive", "https://web.archive.org"),
];

impl Addresses {
    /// The names of the services.
    pub const NAMES: [&str; 6] =
        [PUBLIC[0].0, PUBLIC[1].0, PUBLIC[2].0, PUBLIC[3].0, PUBLIC[4].0, PUBLIC[5].0];

    /// The public services, except those for which a function gives another address by name.
    ///
    /// # Errors
    /// With the name of the service and what is wrong with its address.
    pub fn public_except(other: impl Fn(&str) -> Option<String>) -> Result<Self, String> {
        let of = |at: usize| {
            let (name, public) = PUBLIC[at];
            let address = other(name).unwrap_or_else(|| public.to_owned());
            let url = Url::parse(&address).map_err(|error| format!("the address of {name}: {error}"))?;
            match url.scheme() {
                "http" | "https" => Ok(url),
                _ => Err(format!("the address of {name} is neither http nor https")),
            }
        };
        Ok(Addresses {
            wikipedia: of(0)?,
            arxiv: of(1)?,
            duckduckgo: of(2)?,
            tavily: of(3)?,
            youtube: of(4)?,
            archive: of(5)?,
        })
    }

    /// All services on one server, each below its name.
    ///
    /// # Errors
    /// If it is no address.
    pub fn on(server: &str) -> Result<Self, String> {
        Addresses::public_except(|name| Some(format!("{}/{name}/", server.trim_end_matches('/'))))
    }
}
