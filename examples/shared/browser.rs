//! Chromium, driven over the W3C's WebDriver protocol: a request for each command. A module of the tests of
//! several packages.
#![allow(dead_code)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::{Mutex, MutexGuard};

/// One browser at a time: several are slower than one after the other.
static TURN: LazyLock<Mutex<()>> = LazyLock::new(Mutex::default);
/// A bound on waits for what must be seen.
const PATIENCE: Duration = Duration::from_secs(60);
/// The key under which the protocol names an element.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// A browser. It ends on drop.
pub(crate) struct Browser {
    http: reqwest::Client,
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
            "--disable-dev-shm-usage",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--window-size=1100,900",
        ];
        let mut browser = Browser {
            http: agentgraph_llm::http_client_builder().no_proxy().build().unwrap(),
            driver,
            session: (format!("127.0.0.1:{port}"), String::new()),
            _turn: turn,
        };
        let wanted =
            json!({ "capabilities": { "alwaysMatch": { "goog:chromeOptions": { "args": flags } } } });
        let address = format!("http://{}/session", browser.session.0);
        let made = browser.send(browser.http.post(address).json(&wanted)).await.unwrap();
        browser.session.1 = made["sessionId"].as_str().unwrap().to_owned();
        browser.goto(url).await;
        browser
    }

    /// A command with its values, or a question if there are none. The error is that of the driver.
    async fn command(&self, command: &str, values: Option<Value>) -> Result<Value, Value> {
        let (driver, id) = &self.session;
        let address = format!("http://{driver}/session/{id}/{command}");
        self.send(match values {
            Some(values) => self.http.post(address).json(&values),
            None => self.http.get(address),
        })
        .await
    }

    async fn send(&self, request: reqwest::RequestBuilder) -> Result<Value, Value> {
        let answer = request.send().await.unwrap();
        let succeeds = answer.status().is_success();
        let value = answer.json::<Value>().await.unwrap()["value"].take();
        if succeeds { Ok(value) } else { Err(value) }
    }

    pub(crate) async fn goto(&self, url: &str) {
        self.command("url", Some(json!({ "url": url }))).await.unwrap();
    }

    pub(crate) async fn reload(&self) {
        self.command("refresh", Some(json!({}))).await.unwrap();
    }

    /// The handles of all tabs.
    pub(crate) async fn tabs(&self) -> Vec<Value> {
        self.command("window/handles", None).await.unwrap().as_array().unwrap().clone()
    }

    pub(crate) async fn switch_to(&self, tab: &Value) {
        self.command("window", Some(json!({ "handle": tab }))).await.unwrap();
    }

    pub(crate) async fn script(&self, script: &str) -> Value {
        self.command("execute/sync", Some(json!({ "script": script, "args": [] }))).await.unwrap()
    }

    /// A script that calls its first argument with its result.
    pub(crate) async fn script_with_callback(&self, script: &str) -> Value {
        self.command("execute/async", Some(json!({ "script": script, "args": [] }))).await.unwrap()
    }

    /// The text of the page.
    pub(crate) async fn text(&self) -> String {
        self.script("return document.body.innerText").await.as_str().unwrap_or_default().to_owned()
    }

    /// Types into the first element of a CSS selector.
    pub(crate) async fn types(&self, selector: &str, keys: &str) {
        let element = self.find("css selector", selector).await.unwrap();
        self.command(&format!("element/{element}/value"), Some(json!({ "text": keys }))).await.unwrap();
    }

    /// Waits until a script returns `true`.
    pub(crate) async fn until(&self, script: &str) {
        let wait = async {
            loop {
                let values = json!({ "script": script, "args": [] });
                match self.command("execute/sync", Some(values)).await {
                    Ok(Value::Bool(true)) => return,
                    _ => tokio::time::sleep(Duration::from_millis(50)).await,
                }
            }
        };
        if tokio::time::timeout(PATIENCE, wait).await.is_err() {
            panic!("`{script}` never became true; the page says:\n{}", self.text().await);
        }
    }

    /// Clicks the last element with a text.
    pub(crate) async fn clicks(&self, text: &str) {
        let path = format!("(//*[self::button][contains(normalize-space(.), \"{text}\")])[last()]");
        let element = async {
            loop {
                match self.find("xpath", &path).await {
                    Ok(element) => return element,
                    Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
                }
            }
        };
        let element = tokio::time::timeout(PATIENCE, element).await.expect("there is such a button");
        self.command(&format!("element/{element}/click"), Some(json!({}))).await.unwrap();
    }

    async fn find(&self, using: &str, value: &str) -> Result<String, Value> {
        let found = self.command("element", Some(json!({ "using": using, "value": value }))).await?;
        Ok(found[ELEMENT].as_str().unwrap().to_owned())
    }

    /// A width that windows of a headless browser cannot have.
    pub(crate) async fn narrows(&self) {
        let narrow = json!({ "width": 360, "height": 740, "deviceScaleFactor": 2, "mobile": true });
        self.devtools("Emulation.setDeviceMetricsOverride", narrow).await;
    }

    pub(crate) async fn prefers(&self, scheme: &str) {
        let feature = json!([{ "name": "prefers-color-scheme", "value": scheme }, { "name": "prefers-reduced-motion", "value": "reduce" }]);
        self.devtools("Emulation.setEmulatedMedia", json!({ "features": feature })).await;
    }

    /// Asserts that axe-core, whose script `AXE` names, finds nothing on the page.
    pub(crate) async fn passes_axe(&self, state: &str) {
        let axe = std::fs::read_to_string(std::env::var("AXE").expect("AXE is axe-core's file")).unwrap();
        self.script(&axe).await;
        let run = "const done = arguments[0]; axe.run(document).then(found => done(found.violations.map(one => \
                   `${one.id}: ${one.nodes.map(node => node.target).join(' ')}`)))";
        assert_eq!(self.script_with_callback(run).await, json!([]), "{state}");
    }

    /// A command of Chromium's own protocol.
    pub(crate) async fn devtools(&self, command: &str, values: Value) {
        let command = json!({ "cmd": command, "params": values });
        self.command("goog/cdp/execute", Some(command)).await.unwrap();
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
