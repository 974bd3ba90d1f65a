//! A headless Chromium, driven over its own protocol: <https://chromedevtools.github.io/devtools-protocol/>.

use base64::Engine as _;
use serde_json::{Value, json};
use skidder_testkit::try_wait_for;
use std::io::{BufRead as _, BufReader};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tungstenite::{Message, WebSocket};

/// No command and no condition takes longer.
const PATIENCE: Duration = Duration::from_secs(30);

/// One page in a browser of its own, with an empty profile.
pub(crate) struct Browser {
    child: Child,
    socket: WebSocket<TcpStream>,
    session: Option<String>,
    commands: u64,
    /// Events that the browser sent meanwhile.
    events: Vec<Value>,
    _profile: tempfile::TempDir,
}

impl Browser {
    pub(crate) fn start() -> Self {
        let profile = tempfile::tempdir().unwrap();
        let mut child = Command::new("chromium")
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic"])
            .args(["--no-first-run", "--disable-background-networking", "--disable-dev-shm-usage"])
            .args(["--disable-component-update", "--disable-sync", "--hide-scrollbars"])
            .args(["--remote-debugging-port=0", "about:blank"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("chromium is installed: tests/servers/programs.sh install");
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let url = lines
            .find_map(|line| Some(line.unwrap().strip_prefix("DevTools listening on ")?.to_owned()))
            .expect("chromium says where it listens");
        // It may say more, and must not wait for a reader.
        std::thread::spawn(move || lines.for_each(drop));
        let address = url.strip_prefix("ws://").unwrap().split('/').next().unwrap();
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let (socket, _) = tungstenite::client(&*url, stream).unwrap();
        let events = Vec::new();
        let mut browser =
            Self { child, socket, session: None, commands: 0, events, _profile: profile };
        let target = browser.call("Target.createTarget", json!({"url": "about:blank"}));
        let target = json!({"targetId": target["targetId"], "flatten": true});
        let attached = browser.call("Target.attachToTarget", target);
        browser.session = attached["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Network", "Log"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        browser
    }

    /// One command and its answer.
    pub(crate) fn call(&mut self, method: &str, parameters: Value) -> Value {
        let mut answer = self.ask(method, parameters);
        assert!(answer["error"].is_null(), "{method}: {answer}");
        answer["result"].take()
    }

    /// The same, also if the answer is an error.
    fn ask(&mut self, method: &str, parameters: Value) -> Value {
        self.commands += 1;
        let mut command = json!({"id": self.commands, "method": method, "params": parameters});
        if let Some(session) = &self.session {
            command["sessionId"] = session.as_str().into();
        }
        self.socket.send(Message::text(command.to_string())).unwrap();
        loop {
            let Message::Text(text) = self.socket.read().unwrap() else { continue };
            let answer: Value = serde_json::from_str(&text).unwrap();
            if answer["id"] == self.commands {
                return answer;
            }
            self.events.push(answer);
        }
    }

    pub(crate) fn open(&mut self, url: &str) {
        self.call("Page.navigate", json!({"url": url}));
    }

    /// The value of an expression.
    pub(crate) fn value(&mut self, expression: &str) -> Value {
        self.value_unless_moved(expression)
            .unwrap_or_else(|| panic!("{expression}: the page is loaded anew"))
    }

    /// The same; `None` if the page was loaded anew meanwhile.
    fn value_unless_moved(&mut self, expression: &str) -> Option<Value> {
        let asked = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let mut answer = self.ask("Runtime.evaluate", asked);
        let error = answer["error"]["message"].as_str().unwrap_or_default();
        if error == "Inspected target navigated or closed" {
            return None;
        }
        assert!(answer["error"].is_null(), "{expression}: {answer}");
        let result = &mut answer["result"];
        assert!(result["exceptionDetails"].is_null(), "{expression}: {result}");
        Some(result["result"]["value"].take())
    }

    /// Waits until an expression is true; fails with the content of the page if it never is.
    pub(crate) fn await_that(&mut self, expression: &str) {
        let found =
            try_wait_for(PATIENCE, || (self.value_unless_moved(expression)? == true).then_some(()));
        if found.is_none() {
            let text = self.value("document.body.innerText");
            panic!("in vain: {expression}; the page says:\n{text}");
        }
    }

    /// The text of the first element that a selector finds; empty if there is none.
    pub(crate) fn text(&mut self, selector: &str) -> String {
        let found = self.value(&format!("document.querySelector({selector:?})?.innerText ?? ''"));
        found.as_str().unwrap().to_owned()
    }

    /// Presses a key, by its name or as the character that it is.
    pub(crate) fn press(&mut self, key: &str) {
        let code = match key {
            "Enter" => 13,
            "Tab" => 9,
            "Escape" => 27,
            "ArrowRight" => 39,
            _ => 0,
        };
        let mut event = json!({"type": "keyDown", "key": key});
        if code == 0 || key == "Enter" {
            event["text"] = if key == "Enter" { "\r" } else { key }.into();
        }
        if code > 0 {
            event["windowsVirtualKeyCode"] = code.into();
            event["code"] = key.into();
        }
        self.call("Input.dispatchKeyEvent", event.clone());
        event["type"] = "keyUp".into();
        event.as_object_mut().unwrap().remove("text");
        self.call("Input.dispatchKeyEvent", event);
    }

    /// Types a text into what has the focus.
    pub(crate) fn write(&mut self, text: &str) {
        self.call("Input.insertText", json!({"text": text}));
    }

    /// What the machine prefers: `light` or `dark`.
    pub(crate) fn prefer(&mut self, scheme: &str) {
        let feature = json!({"name": "prefers-color-scheme", "value": scheme});
        self.call("Emulation.setEmulatedMedia", json!({"features": [feature]}));
    }

    /// The size of the window.
    pub(crate) fn size(&mut self, width: u32, height: u32) {
        let size =
            json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.call("Emulation.setDeviceMetricsOverride", size);
    }

    /// Takes a picture, which is kept in `target/screenshots`.
    pub(crate) fn picture(&mut self, name: &str) {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("screenshots");
        std::fs::create_dir_all(&folder).unwrap();
        let picture = self.call("Page.captureScreenshot", json!({"format": "png"}));
        let picture = picture["data"].as_str().unwrap();
        let picture = base64::engine::general_purpose::STANDARD.decode(picture).unwrap();
        let path = folder.join(format!("{name}.png"));
        std::fs::write(&path, picture).unwrap();
        crate::common::print(&format!("picture: {}\n", path.display()));
    }

    /// Asserts that the page sent requests to `server` only, and had no errors.
    pub(crate) fn assert_quiet(&mut self, server: &str) {
        // Everything before the answer has come.
        self.value("1");
        let mut requests = 0;
        for event in &self.events {
            let parameters = &event["params"];
            match event["method"].as_str().unwrap_or_default() {
                "Network.requestWillBeSent" => {
                    let url = parameters["request"]["url"].as_str().unwrap();
                    // Chromium's own icons are in the address, and need no request.
                    let is_own = url.starts_with("data:");
                    assert!(is_own || url.starts_with(server), "a request to {url}");
                    requests += usize::from(!is_own);
                }
                "Network.loadingFailed" => {
                    assert!(parameters["canceled"] == true, "a request failed: {event}");
                }
                "Runtime.exceptionThrown" | "Log.entryAdded" | "Runtime.consoleAPICalled" => {
                    panic!("the console says: {event}")
                }
                _ => {}
            }
        }
        assert!(requests > 3, "requests are seen");
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.child.kill().unwrap();
            self.child.wait().unwrap();
            return;
        }
        // It closes its windows and ends by itself, so that no process of it is left.
        let close = json!({"id": 0, "method": "Browser.close"});
        self.socket.send(Message::text(close.to_string())).unwrap();
        let ended = try_wait_for(PATIENCE, || self.child.try_wait().unwrap());
        assert!(ended.is_some(), "the browser does not end");
    }
}
