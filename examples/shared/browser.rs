//! Chromium, driven over the W3C's WebDriver protocol: a request for each command. A module of the tests of
//! several packages.
#![allow(dead_code)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::{Mutex, MutexGuard};

/// One browser at a time: several are slower than one after the other.
static TURN: LazyLock<Mutex<()>> = LazyLock::new(Mutex::default);
/// A bound on waits for what must be seen.
const PATIENCE: Duration = Duration::from_secs(60);
/// The key under which the protocol names an element.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// A driver with its session. It ends on drop.
struct Driver {
    process: Child,
    /// Where it listens.
    address: String,
    session: String,
}

/// A browser for one test.
pub(crate) struct Browser {
    http: reqwest::Client,
    driver: Arc<Driver>,
    // Dropped before the turn: the next test finds the shared driver, or none.
    _user: Option<User>,
    _turn: MutexGuard<'static, ()>,
}

/// A driver for several tests, and the number of tests that have it or wait for it.
static SHARED: std::sync::Mutex<(usize, Option<Arc<Driver>>)> = std::sync::Mutex::new((0, None));

struct User;

impl User {
    fn new() -> Self {
        SHARED.lock().unwrap().0 += 1;
        User
    }
}

impl Drop for User {
    /// The last one takes the driver with it: nothing ends what a static holds.
    fn drop(&mut self) {
        let mut shared = SHARED.lock().unwrap();
        shared.0 -= 1;
        if shared.0 == 0 {
            shared.1 = None;
        }
    }
}

fn client() -> reqwest::Client {
    agentgraph_llm::http_client_builder().no_proxy().build().unwrap()
}

impl Browser {
    /// A browser of its own.
    pub(crate) async fn open(url: &str) -> Self {
        let turn = TURN.lock().await;
        let driver = Arc::new(Driver::start().await);
        let browser = Browser { http: client(), driver, _user: None, _turn: turn };
        browser.goto(url).await;
        browser
    }

    /// The browser of the tests that run at this time, which start it once.
    pub(crate) async fn shared(url: &str) -> Self {
        let user = User::new();
        let turn = TURN.lock().await;
        let known = SHARED.lock().unwrap().1.clone();
        let driver = match known {
            Some(driver) => driver,
            None => Arc::new(Driver::start().await),
        };
        SHARED.lock().unwrap().1 = Some(Arc::clone(&driver));
        let browser = Browser { http: client(), driver, _user: Some(user), _turn: turn };
        browser.devtools("Emulation.clearDeviceMetricsOverride", json!({})).await;
        browser.devtools("Emulation.setEmulatedMedia", json!({ "features": [] })).await;
        browser.goto(url).await;
        browser
    }

    /// A command with its values, or a question if there are none. The error is that of the driver.
    async fn command(&self, command: &str, values: Option<Value>) -> Result<Value, Value> {
        let Driver { address, session, .. } = &*self.driver;
        let address = format!("http://{address}/session/{session}/{command}");
        send(match values {
            Some(values) => self.http.post(address).json(&values),
            None => self.http.get(address),
        })
        .await
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

    /// Presses a key, wherever the focus is.
    pub(crate) async fn presses(&self, key: &str) {
        // Before its first frame a new page drops keys.
        let frame = "return new Promise(drawn => requestAnimationFrame(() => requestAnimationFrame(() => drawn(true))))";
        self.until(frame).await;
        let key = json!([{ "type": "keyDown", "value": key }, { "type": "keyUp", "value": key }]);
        let actions = json!({ "actions": [{ "type": "key", "id": "keys", "actions": key }] });
        self.command("actions", Some(actions)).await.unwrap();
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

    /// Clicks the last button with a text, when there is one. A page may replace it in between.
    pub(crate) async fn clicks(&self, text: &str) {
        let path = format!("(//*[self::button][contains(normalize-space(.), \"{text}\")])[last()]");
        let click = async {
            loop {
                if let Ok(element) = self.find("xpath", &path).await
                    && self.command(&format!("element/{element}/click"), Some(json!({}))).await.is_ok()
                {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        tokio::time::timeout(PATIENCE, click).await.expect("there is such a button");
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

    /// The answer to a command of Chromium's own protocol.
    pub(crate) async fn devtools(&self, command: &str, values: Value) -> Value {
        let command = json!({ "cmd": command, "params": values });
        self.command("goog/cdp/execute", Some(command)).await.unwrap()
    }
}

async fn send(request: reqwest::RequestBuilder) -> Result<Value, Value> {
    let answer = request.send().await.unwrap();
    let succeeds = answer.status().is_success();
    let value = answer.json::<Value>().await.unwrap()["value"].take();
    if succeeds { Ok(value) } else { Err(value) }
}

impl Driver {
    async fn start() -> Self {
        let mut process = Command::new("chromedriver")
            .arg("--port=0")
            .process_group(0)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("chromedriver is installed: `.ci/test` sees to that");
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
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
        let mut driver = Driver { process, address: format!("127.0.0.1:{port}"), session: String::new() };
        let wanted =
            json!({ "capabilities": { "alwaysMatch": { "goog:chromeOptions": { "args": flags } } } });
        let made = send(client().post(format!("http://{}/session", driver.address)).json(&wanted)).await;
        made.unwrap()["sessionId"].as_str().unwrap().clone_into(&mut driver.session);
        driver
    }
}

impl Drop for Driver {
    /// Closes the session, which ends its browser, and waits for that: a driver that is only told to end
    /// leaves the browser behind. Then ends the driver with what is left of its group.
    fn drop(&mut self) {
        let Driver { address, session, .. } = &*self;
        let close = || -> std::io::Result<()> {
            let mut connection = TcpStream::connect(address)?;
            connection.set_read_timeout(Some(Duration::from_secs(10)))?;
            write!(
                connection,
                "DELETE /session/{session} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"
            )?;
            // The answer comes when the browser has ended; the driver leaves the connection open.
            connection.read(&mut [0]).map(drop)
        };
        let closed = close();
        if let Some(id) = self.process.id().try_into().ok().and_then(rustix::process::Pid::from_raw) {
            let _ = rustix::process::kill_process_group(id, rustix::process::Signal::KILL);
        }
        let _ = self.process.wait();
        if let Err(error) = closed {
            eprintln!("the browser was not closed: {error}");
        }
    }
}
