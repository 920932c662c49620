//! The command line: settings, and the life of the server.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use agentgraph::checkpoint::PostgresSaver;
use agentgraph::{Checkpointer, MemorySaver, SqliteSaver};
use agentgraph_llm::{ChatModel, ModelName};
use clap::Parser;
use secrecy::{ExposeSecret, SecretString};
use shopify_agent::ShopAgent;
use shopify_agent::agent::Limits;
use shopify_agent::embedded::EmbeddedShop;
use shopify_agent::offline::OfflineModel;
use shopify_agent::server::{listen, routes};
use shopify_agent::shop::{Shop, ShopSettings};
use shopify_agent::telemetry::Traces;

/// The address of Groq, which the original used, and its variables.
/// The origin of the pictures of Shopify's shops.
const SHOPIFY_PICTURES: &str = "https://cdn.shopify.com";
/// How often old tasks are looked for.
const SWEEP: Duration = Duration::from_secs(600);

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// A shop assistant over HTTP, with a page. Without settings it serves an embedded shop with an offline
/// model.
#[derive(Parser)]
#[command(name = "shopify-agent", version)]
struct Settings {
    /// The address to listen on.
    #[arg(long, default_value = "127.0.0.1:8090", env = "SHOPIFY_AGENT_LISTEN")]
    listen: String,
    /// The model, such as `anthropic:NAME`, `groq:NAME` or `ollama:NAME`; the offline model if it is not
    /// given.
    #[arg(long, env = "SHOPIFY_AGENT_MODEL")]
    model: Option<String>,
    /// The shop, such as `https://example.myshopify.com`; the embedded one if it is not given.
    #[arg(long, env = "SHOPIFY_SHOP_URL")]
    shop_url: Option<String>,
    /// The shop's Admin API access token. On the command line others may see it; the variable is safer.
    #[arg(long, env = "SHOPIFY_ACCESS_TOKEN", hide_env_values = true)]
    shop_token: Option<SecretString>,
    /// The version of the shop's API.
    #[arg(long, default_value = ShopSettings::VERSION, env = "SHOPIFY_API_VERSION")]
    api_version: String,
    /// The folder of the tasks and of the embedded shop's data; one of the user's if it is not given.
    #[arg(long, env = "SHOPIFY_AGENT_DATA_DIR")]
    data_dir: Option<PathBuf>,
    /// The store of the tasks: a file, `postgres://...` or `memory`; `threads.db` in the data folder if it is
    /// not given.
    #[arg(long, env = "SHOPIFY_AGENT_STORE", hide_env_values = true)]
    store: Option<String>,
    /// Hours after which a task is forgotten.
    #[arg(long, default_value_t = 24)]
    keep_hours: u64,
    /// Seconds that a node may take: a call of the model with its repairs, or a tool.
    #[arg(long, default_value_t = 30)]
    node_seconds: u64,
    /// Seconds that the shop may take for a call.
    #[arg(long, default_value_t = 10)]
    shop_seconds: u64,
}

pub(crate) fn main() -> ExitCode {
    let settings = Settings::parse();
    let traces = match Traces::install() {
        Ok(traces) => traces,
        Err(error) => {
            eprintln!("Spans cannot be sent: {error}");
            return ExitCode::from(2);
        }
    };
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("The program cannot start: {error}");
            return ExitCode::FAILURE;
        }
    };
    let done = runtime.block_on(serve(settings));
    drop(runtime);
    traces.shut_down();
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

async fn serve(settings: Settings) -> Result<(), Failure> {
    let model = model(settings.model.as_deref())?;
    let folder = settings.data_dir.clone().unwrap_or_else(data_folder);
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let (_embedded, shop_settings, pictures) = shop(&settings, folder.join("shop.json")).await?;
    let shop =
        Shop::new(ShopSettings { timeout: Duration::from_secs(settings.shop_seconds), ..shop_settings })?;
    let saver = match settings.store.as_deref() {
        Some(place) => store(place).await?,
        None => Arc::new(SqliteSaver::open(folder.join("threads.db")).await?),
    };
    let limits = Limits { node_time: Duration::from_secs(settings.node_seconds), ..Limits::default() };
    let agent = ShopAgent::new(model, shop, saver, limits)?;

    let listener = listen(&settings.listen).await?;
    println!("The shop is open: http://{}/", listener.local_addr()?);
    let continued = agent.go_on().await?;
    if continued > 0 {
        println!("Going on with {continued} unfinished tasks.");
    }
    let (sweeper, age) = (agent.clone(), Duration::from_secs(settings.keep_hours * 3600));
    tokio::spawn(async move {
        loop {
            if let Err(error) = sweeper.forget(age).await {
                tracing::warn!(%error, "old tasks were not removed");
            }
            tokio::time::sleep(SWEEP).await;
        }
    });
    let listener = axum::serve::ListenerExt::tap_io(listener, |connection| {
        // Frames are small, and each is to leave at once.
        let _ = connection.set_nodelay(true);
    });
    // A task that is cut off here goes on with the next start.
    axum::serve(listener, routes(agent, &pictures)).with_graceful_shutdown(stopped()).await?;
    Ok(())
}

fn data_folder() -> PathBuf {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let shared = variable("XDG_DATA_HOME").or_else(|| Some(variable("HOME")?.join(".local/share")));
    shared.map_or_else(|| "shopify-agent-data".into(), |shared| shared.join("shopify-agent"))
}

async fn stopped() {
    let interrupt = tokio::signal::ctrl_c();
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminate) = signal(SignalKind::terminate()) {
            tokio::select! { _ = interrupt => {}, _ = terminate.recv() => {} }
            return;
        }
    }
    let _ = interrupt.await;
}

fn model(name: Option<&str>) -> Result<Arc<dyn ChatModel>, Failure> {
    let Some(name) = name else { return Ok(Arc::new(OfflineModel)) };
    Ok(name.parse::<ModelName>()?.from_env()?)
}

/// The embedded shop, if there is one; how the shop is called; where its pictures are.
async fn shop(
    settings: &Settings,
    file: PathBuf,
) -> Result<(Option<EmbeddedShop>, ShopSettings, Vec<String>), Failure> {
    let Some(url) = &settings.shop_url else {
        let shop = EmbeddedShop::start_on(0, Some(file)).await?;
        let pictures = vec![format!("http://{}", shop.address())];
        return Ok((Some(shop.clone()), shop.settings(), pictures));
    };
    let token = settings.shop_token.as_ref().ok_or("a shop needs its token: SHOPIFY_ACCESS_TOKEN")?;
    let mut shop = ShopSettings::new(url, token.expose_secret().to_owned());
    shop.version.clone_from(&settings.api_version);
    Ok((None, shop, vec![SHOPIFY_PICTURES.to_owned(), url.trim_end_matches('/').to_owned()]))
}

async fn store(place: &str) -> Result<Arc<dyn Checkpointer>, Failure> {
    Ok(match place {
        "memory" => Arc::new(MemorySaver::new()),
        url if url.starts_with("postgres://") || url.starts_with("postgresql://") => {
            Arc::new(PostgresSaver::connect(url).await?)
        }
        file => Arc::new(SqliteSaver::open(file).await?),
    })
}
