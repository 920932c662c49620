//! Chromium, driven over WebDriver.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;
use std::time::Duration;

use axum::http::Method;
use fantoccini::wd::WebDriverCompatibleCommand;
use fantoccini::{Client, ClientBuilder, Locator};
use hyper_util::client::legacy::connect::HttpConnector;
use reqwest::Url;
use serde_json::{Map, Value, json};
use tokio::sync::{Mutex, MutexGuard};

/// One browser at a time: several are slower than one after the other.
static TURN: LazyLock<Mutex<()>> = LazyLock::new(Mutex::default);
/// A bound on waits for what must be seen.
const PATIENCE: Duration = Duration::from_secs(60);

/// A browser. It ends on drop.
pub(crate) struct Browser {
    pub(crate) client: Client,
    driver: Child,
    /// Where the driver listens, and the id of its session.
    session: (String, String),
    _turn: MutexGuard<'static, ()>,
}

impl Browser {
    pub(crate) async fn open(url: &str) -> Self {
        let turn = TURN.lock().await;
        let mut driver = Command::new("chromedriver")
            .arg("--port=0")
            .process_group(0)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("chromedriver is installed: `.ci/test` sees to that");
        let mut lines = BufReader::new(driver.stdout.take().unwrap()).lines();
        let port = lines.by_ref().map_while(Result::ok).find_map(|line| {
            line.split_once("started successfully on port ")
                .map(|(_, port)| port.trim_end_matches('.').to_owned())
        });
        let port = port.expect("chromedriver says its port");
        std::thread::spawn(move || lines.for_each(drop));
        let flags = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--window-size=1100,900",
        ];
        let capabilities = Map::from_iter([("goog:chromeOptions".to_owned(), json!({ "args": flags }))]);
        let mut client = ClientBuilder::new(HttpConnector::new());
        let client =
            client.capabilities(capabilities).connect(&format!("http://127.0.0.1:{port}")).await.unwrap();
        client.goto(url).await.unwrap();
        let id = client.session_id().await.unwrap().unwrap();
        Browser { client, driver, session: (format!("127.0.0.1:{port}"), id), _turn: turn }
    }

    pub(crate) async fn script(&self, script: &str) -> Value {
        self.client.execute(script, Vec::new()).await.unwrap()
    }

    /// The text of the conversation.
    pub(crate) async fn talk(&self) -> String {
        let text = self.script("return document.getElementById('talk').innerText").await;
        text.as_str().unwrap_or_default().to_owned()
    }

    pub(crate) async fn says(&self, text: &str) {
        let input = self.client.find(Locator::Id("text")).await.unwrap();
        input.send_keys(text).await.unwrap();
        input.send_keys("\u{e007}").await.unwrap();
    }

    /// Waits until a script returns true.
    pub(crate) async fn until(&self, script: &str) {
        let wait = async {
            loop {
                match self.client.execute(script, Vec::new()).await {
                    Ok(Value::Bool(true)) => return,
                    _ => tokio::time::sleep(Duration::from_millis(50)).await,
                }
            }
        };
        if tokio::time::timeout(PATIENCE, wait).await.is_err() {
            panic!("`{script}` never comes true; the page has: {}", self.talk().await);
        }
    }

    /// Waits until the conversation has a text, and no turn is running.
    pub(crate) async fn hears(&self, text: &str) {
        let text = json!(text);
        self.until(&format!(
            "return document.getElementById('talk').innerText.includes({text}) && document.getElementById('cancel').hidden"
        ))
        .await;
    }

    /// Clicks the last element with a text.
    pub(crate) async fn clicks(&self, text: &str) {
        let path = format!("(//*[self::button][contains(normalize-space(.), \"{text}\")])[last()]");
        self.client.wait().for_element(Locator::XPath(&path)).await.unwrap().click().await.unwrap();
    }

    /// A command of Chromium's own protocol.
    pub(crate) async fn devtools(&self, command: Value) {
        self.client.issue_cmd(Devtools(command)).await.unwrap();
    }

    /// Writes a picture for a person to look at, if `SHOP_PICTURES` names a folder.
    pub(crate) async fn picture(&self, name: &str) {
        if let Some(folder) = std::env::var_os("SHOP_PICTURES") {
            let picture = self.client.screenshot().await.unwrap();
            std::fs::write(std::path::Path::new(&folder).join(format!("{name}.png")), picture).unwrap();
        }
    }
}

impl Drop for Browser {
    /// Closes the session, which ends its browser, and waits for that: a driver that is only told to end
    /// leaves the browser behind. Then ends the driver with what is left of its group.
    fn drop(&mut self) {
        let (driver, id) = &self.session;
        let close = || -> std::io::Result<()> {
            let mut connection = TcpStream::connect(driver)?;
            connection.set_read_timeout(Some(Duration::from_secs(10)))?;
            write!(
                connection,
                "DELETE /session/{id} HTTP/1.1\r\nHost: {driver}\r\nConnection: close\r\n\r\n"
            )?;
            connection.read_to_end(&mut Vec::new()).map(drop)
        };
        let closed = close();
        if let Some(id) = self.driver.id().try_into().ok().and_then(rustix::process::Pid::from_raw) {
            let _ = rustix::process::kill_process_group(id, rustix::process::Signal::KILL);
        }
        let _ = self.driver.wait();
        if let Err(error) = closed {
            eprintln!("the browser was not closed: {error}");
        }
    }
}

#[derive(Debug)]
struct Devtools(Value);

impl WebDriverCompatibleCommand for Devtools {
    fn endpoint(&self, base: &Url, session: Option<&str>) -> Result<Url, url::ParseError> {
        base.join(&format!("session/{}/goog/cdp/execute", session.unwrap_or_default()))
    }

    fn method_and_body(&self, _: &Url) -> (Method, Option<String>) {
        (Method::POST, Some(self.0.to_string()))
    }
}
