//! Debian's Chromium, driven by fantoccini through its driver, with a profile of its own.
//!
//! Its proxy for all but the hosts under test is the counting one of `outside`, also for loopback. Names are never
//! looked up. The driver and all that it starts are one process group, which ends with the value.

use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use fantoccini::wd::TimeoutConfiguration;
use fantoccini::{Client, ClientBuilder, Locator};
use hyper_util::client::legacy::connect::HttpConnector;
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tools_testing::{PATIENCE, eventually_blocking};

use crate::support::outside::Outside;
use crate::support::tools::program;

/// The browser and its driver.
pub struct Programs {
    chromium: PathBuf,
    driver: PathBuf,
}

impl Programs {
    /// Finds both, or says what the test lacks.
    pub fn find() -> Option<Self> {
        let chromium = program("chromium");
        let driver = program("chromedriver");
        if chromium.is_none() || driver.is_none() {
            tools_testing::skipped(
                "chromium and chromedriver are not installed (chromium chromium-driver)",
            );
        }
        Some(Self {
            chromium: chromium?,
            driver: driver?,
        })
    }
}

/// The options of a browser beyond what all have.
#[derive(Clone, Copy, Debug, Default)]
pub struct BrowserOptions<'a> {
    /// The authorities that are asked without the proxy.
    pub hosts: &'a [&'a str],
    /// Whether pages run no scripts.
    pub is_scriptless: bool,
    /// The proxy that is asked for all hosts, with the switches that its control page names; `None`: the counting one.
    pub proxy: Option<&'a str>,
    /// The names of hosts that are on this machine.
    pub local_names: &'a [&'a str],
    /// The hashes of the public keys whose certificates are trusted, as if a visitor's authority had issued them.
    pub trusted_keys: &'a [&'a str],
}

/// A browser with one window, until it is dropped.
pub struct Browser {
    runtime: Runtime,
    client: Option<Client>,
    driver: Child,
    profile: tempfile::TempDir,
}

impl Browser {
    /// Starts a browser.
    pub fn start(programs: &Programs, outside: &Outside, options: &BrowserOptions<'_>) -> Self {
        let profile = tempfile::tempdir().expect("a directory");
        let (driver, port) = start_driver(programs, profile.path());
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        let mut browser = Self {
            runtime,
            client: None,
            driver,
            profile,
        };
        let capabilities = capabilities(programs, browser.profile.path(), outside, options);
        let connected = browser.runtime.block_on(async {
            ClientBuilder::new(HttpConnector::new())
                .capabilities(capabilities)
                .connect(&format!("http://127.0.0.1:{port}"))
                .await
        });
        let client = connected.expect("a session");
        let timeouts = TimeoutConfiguration::new(
            Some(Duration::from_secs(30)),
            Some(Duration::from_mins(1)),
            Some(Duration::ZERO),
        );
        let set = browser.runtime.block_on(client.update_timeouts(timeouts));
        set.expect("timeouts");
        browser.client = Some(client);
        browser
    }

    fn client(&self) -> &Client {
        self.client.as_ref().expect("a session")
    }

    /// Goes to a URL. A page that loads something for too long is no failure.
    pub fn open(&self, url: &str) {
        let opened = self.runtime.block_on(self.client().goto(url));
        if let Err(error) = opened {
            assert!(error.to_string().contains("timeout"), "{url}: {error}");
        }
    }

    /// Returns the address of the window.
    pub fn address(&self) -> String {
        let address = self.runtime.block_on(self.client().current_url());
        address.expect("an address").into()
    }

    /// Returns what a script returns in the page, or in the frame that was entered.
    #[track_caller]
    pub fn evaluate(&self, script: &str) -> Value {
        self.try_evaluate(script)
            .unwrap_or_else(|error| panic!("{script}: {error}"))
    }

    /// Runs a script like [`evaluate`](Self::evaluate), where the page may be on its way to another one.
    ///
    /// # Errors
    ///
    /// Says why the script was not run, or what it threw.
    pub fn try_evaluate(&self, script: &str) -> Result<Value, String> {
        let ran = self
            .runtime
            .block_on(self.client().execute(script, Vec::new()));
        ran.map_err(|error| error.to_string())
    }

    /// Waits until a script returns a value that is neither `false` nor `null`.
    #[track_caller]
    pub fn wait_for(&self, what: &str, script: &str) -> Value {
        eventually_blocking(what, PATIENCE, || match self.try_evaluate(script) {
            Ok(Value::Null | Value::Bool(false)) => Err("not yet".to_owned()),
            other => other,
        })
    }

    /// Enters the first frame of the page.
    #[track_caller]
    pub fn enter_frame(&self) {
        eventually_blocking("a frame", PATIENCE, || {
            self.leave_frame();
            self.runtime
                .block_on(self.client().enter_frame(0))
                .map_err(|error| error.to_string())
        });
    }

    /// Goes back to the page itself.
    pub fn leave_frame(&self) {
        let left = self.runtime.block_on(self.client().enter_parent_frame());
        left.unwrap_or_default();
    }

    /// Clicks on what a selector finds.
    #[track_caller]
    pub fn click(&self, selector: &str) {
        let clicked = self.runtime.block_on(async {
            let found = self.client().find(Locator::Css(selector)).await?;
            found.click().await
        });
        clicked.unwrap_or_else(|error| panic!("{selector}: {error}"));
    }

    /// Returns the visible text of what a selector finds.
    #[track_caller]
    pub fn text_of(&self, selector: &str) -> String {
        let text = self.runtime.block_on(async {
            let found = self.client().find(Locator::Css(selector)).await?;
            found.text().await
        });
        text.unwrap_or_else(|error| panic!("{selector}: {error}"))
    }

    /// Returns the number of open windows.
    pub fn windows(&self) -> usize {
        let windows = self.runtime.block_on(self.client().windows());
        windows.expect("windows").len()
    }

    /// Saves a picture of the window, where `HOLDFAST_SCREENSHOTS` names a folder.
    pub fn picture(&self, name: &str) {
        if let Some(folder) = std::env::var_os("HOLDFAST_SCREENSHOTS").map(PathBuf::from) {
            let picture = self.runtime.block_on(self.client().screenshot());
            std::fs::create_dir_all(&folder).expect("a folder");
            std::fs::write(
                folder.join(format!("{name}.png")),
                picture.expect("a picture"),
            )
            .expect("write");
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        if let Some(client) = self.client.take() {
            // A browser that does not end by itself is ended below.
            self.runtime.block_on(async {
                let closing = tokio::time::timeout(Duration::from_secs(10), client.close());
                closing.await.map(drop).unwrap_or_default();
            });
        }
        kill_process_group(Pid::from_child(&self.driver), Signal::KILL).unwrap_or_default();
        self.driver.wait().expect("an end");
    }
}

/// Starts the driver on a free port, which it says.
fn start_driver(programs: &Programs, home: &Path) -> (Child, u16) {
    let mut driver = Command::new(&programs.driver)
        .arg("--port=0")
        .env("HOME", home)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .expect("chromedriver");
    let mut lines = BufReader::new(driver.stdout.take().expect("a pipe")).lines();
    let port = lines.by_ref().map_while(Result::ok).find_map(|line| {
        let (_, rest) = line.split_once("started successfully on port ")?;
        rest.trim_end_matches('.').parse().ok()
    });
    // The pipe stays open, or the driver could not say any more.
    std::thread::spawn(move || lines.for_each(drop));
    (driver, port.expect("the port of chromedriver"))
}

fn capabilities(
    programs: &Programs,
    profile: &Path,
    outside: &Outside,
    options: &BrowserOptions<'_>,
) -> serde_json::Map<String, Value> {
    let mut arguments: Vec<String> = [
        "--headless=new",
        "--disable-dev-shm-usage",
        "--disable-gpu",
        "--window-size=1000,800",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--disable-extensions",
        "--disable-features=AutofillServerCommunication,OptimizationHints,Translate",
    ]
    .map(str::to_owned)
    .into();
    // Other names of the tests belong to no host. What is asked past the proxy finds none either.
    let local_names = options.local_names.iter();
    let mut rules: Vec<String> = local_names
        .map(|name| format!("MAP {name} 127.0.0.1"))
        .collect();
    let others = ["MAP * ~NOTFOUND", "EXCLUDE 127.0.0.1", "EXCLUDE localhost"];
    rules.extend(others.map(str::to_owned));
    arguments.push(format!("--host-resolver-rules={}", rules.join(" , ")));
    if !options.trusted_keys.is_empty() {
        let keys = options.trusted_keys.join(",");
        arguments.push(format!("--ignore-certificate-errors-spki-list={keys}"));
    }
    if rustix::process::getuid().is_root() {
        arguments.push("--no-sandbox".to_owned());
    }
    arguments.push(format!(
        "--user-data-dir={}",
        profile.join("profile").display()
    ));
    let counting = outside.proxy.to_string();
    let proxy = options.proxy.unwrap_or(&counting);
    arguments.push(format!("--proxy-server=http://{proxy}"));
    // Without the first word it would ask loopback past the proxy.
    let hosts = options.hosts.join(";");
    arguments.push(format!("--proxy-bypass-list=<-loopback>;{hosts}"));
    if options.proxy.is_some() {
        arguments.push("--webrtc-ip-handling-policy=disable_non_proxied_udp".to_owned());
        // A visitor installs the authority of the proxy.
        arguments.push("--ignore-certificate-errors".to_owned());
    }
    let scripts = if options.is_scriptless { 2 } else { 1 };
    let capabilities = json!({
        "browserName": "chrome",
        "goog:chromeOptions": {
            "binary": programs.chromium,
            "args": arguments,
            "prefs": {
                // Debian's browser connects early only if it is told to; a visitor's may.
                "net.network_prediction_options": 0,
                "profile.default_content_setting_values.javascript": scripts,
                "profile.default_content_setting_values.popups": 1,
            },
        },
    });
    let Value::Object(capabilities) = capabilities else {
        panic!("{capabilities}");
    };
    capabilities
}
