//! The page in a real browser: numbers move, files are sorted and searched, events are watched, with the keyboard alone, in
//! light and in dark. The pictures are in `target/screenshots`.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

#[path = "../cluster/mod.rs"]
mod cluster;
#[path = "../common/mod.rs"]
mod common;
#[path = "../kubelet/mod.rs"]
mod kubelet;

mod browser;

use browser::Browser;
use cluster::Cluster;
use common::Place;
use common::lines::{gzip, line, lines};
use common::program::{Program, patiently};
use common::server::{Act, BulkServer};
use kubelet::Pod;
use serde_json::json;
use std::io::Write as _;
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::path::PathBuf;

/// A running program with a page, and what it ships.
struct Run {
    server: BulkServer,
    place: Place,
    program: Program,
    url: String,
    /// What opens the views with events.
    token: String,
    live: PathBuf,
    written: usize,
}

/// The endpoint's address in the log of the program.
fn address(program: &Program) -> String {
    let line = program.await_log("serving metrics over HTTP");
    let line: serde_json::Value = serde_json::from_str(&line).unwrap();
    line["address"].as_str().unwrap().to_owned()
}

impl Run {
    fn start(http: &str) -> Self {
        // What is poison is refused for good.
        let verdict = |message: &str| if message.contains("poison") { 400 } else { 201 };
        let server = BulkServer::scripted(move |_| Act::Items(verdict));
        let place = Place::new(&server);
        let text = place.configuration();
        place.configure(&format!("{text}http: {{enabled: true, port: 0{http}}}\nprocessors:\n\
            - dissect: {{tokenizer: '%{{log.level}} %{{rest}}', field: message, target_prefix: ''}}\n"));
        place.write("rotated.log.1.gz", &gzip(&lines("old", 0..2000)));
        for file in 0..12 {
            place
                .write(&format!("app-{file:02}.log"), &lines(&format!("app{file}"), 0..100 + file));
        }
        place.write(
            "poison.log",
            &b"ERROR poison that is never taken, with a long enough line\n".repeat(3),
        );
        let live = place.write("live.log", &lines("live", 0..50));
        let program = place.start(&[]);
        let url = address(&program);
        let token = std::fs::read_to_string(place.data().join("page.token")).unwrap();
        let token = token.trim_end().to_owned();
        Self { server, place, program, url, token, live, written: 0 }
    }

    /// Writes more lines, of which every tenth is an error.
    fn write(&mut self, count: usize) {
        let mut file = std::fs::OpenOptions::new().append(true).open(&self.live).unwrap();
        for _ in 0..count {
            self.written += 1;
            let level = if self.written.is_multiple_of(10) { "ERROR" } else { "INFO" };
            writeln!(file, "{level} request {} took {} ms", self.written, self.written % 97)
                .unwrap();
        }
    }
}

/// The number of a term of the ledger.
fn term(browser: &mut Browser, name: &str) -> u64 {
    let text = browser.text(&format!("[data-term='{name}'] b"));
    text.replace(',', "").parse().unwrap_or(0)
}

#[test]
fn a_person_sees_numbers_move_files_and_events_and_nobody_else_is_asked() {
    let mut run = Run::start("");
    let mut browser = Browser::start();
    browser.size(1400, 900);
    // A browser that asks for `/` is led to the page.
    browser.open(&format!("{}/#token={}", run.url, run.token));
    // The refused events are trouble, and it is said why and what to do.
    browser.await_that("document.querySelector('#pulse')?.innerText === '1 problem'");
    let problems = browser.text("#problems");
    assert!(problems.contains("refused") && problems.contains("skidder deadletters"), "{problems}");
    assert_eq!(browser.value("location.pathname"), "/ui/");
    let address = browser.value("location.href");
    assert!(!address.as_str().unwrap().contains(&run.token), "the token is in no history");
    let before = patiently("the ledger is shown", || {
        Some(term(&mut browser, "read")).filter(|read| *read > 3000)
    });
    for _ in 0..5 {
        run.write(200);
        let wanted = before + run.written as u64;
        patiently("the numbers move", || (term(&mut browser, "read") >= wanted).then_some(()));
    }
    browser.await_that("document.querySelector('#sum').innerText.startsWith('✓ adds up')");
    patiently("the dead letters are counted", || {
        (term(&mut browser, "dead-lettered") == 3).then_some(())
    });
    browser.await_that("document.querySelector('#outputs .pill').innerText.length > 0");
    browser.await_that("document.querySelector('#inputs td')?.innerText.includes('filestream')");
    browser.picture("overview-light");
    // The program keeps points of the time without viewers.
    browser.value("document.querySelector('[data-range=\"86400000\"]').click()");
    let points = "fetch('history').then((answer) => answer.json()).then((it) => it.points.length > 0 && it.points.some((point) => point.read > 0 || point.in_flight >= 0))";
    browser.await_that(points);
    browser.picture("day-light");
    browser.value("document.querySelector('[data-range=\"600000\"]').click()");

    // Files: sorted by a button, searched, filtered.
    browser.value("document.getElementById('tab-files').click()");
    browser.await_that("document.querySelectorAll('#files-rows tr').length === 15");
    browser.value("document.querySelector('[data-sort=path]').click()");
    browser.await_that(
        "document.querySelector('#files-rows td.path')?.innerText.endsWith('app-00.log')",
    );
    browser.value("document.querySelector('[data-sort=path]').click()");
    browser.await_that(
        "document.querySelector('#files-rows td.path').innerText.includes('rotated.log.1.gz')",
    );
    assert_eq!(
        browser.value("document.querySelector('[data-sort=path]').parentElement.ariaSort"),
        "descending"
    );
    // A file leads to its error, its ledger, and to what is in it.
    browser.value("document.querySelector('#files-rows .more').click()");
    browser.await_that(
        "document.querySelector('#files-rows .open')?.innerText.includes('read 2,000 lines')",
    );
    browser.picture("files-light");
    let search = "[...document.querySelectorAll('.open a')].find((link) => link.innerText === 'Search in it')";
    browser.value(&format!("{search}.click()"));
    browser.await_that("document.querySelector('#search-file').value.endsWith('rotated.log.1.gz')");
    browser.value("document.querySelector('#search-file').value = ''");
    browser.value("document.getElementById('tab-files').click()");
    browser.value("document.querySelector('#files-rows .more').click()");
    browser.await_that("document.querySelector('#files-rows .open') === null");
    browser.value("document.getElementById('files-text').focus()");
    browser.write("finished");
    browser.await_that("document.querySelectorAll('#files-rows tr').length === 1");
    assert!(browser.text("#files-rows").contains("rotated.log.1.gz"));

    // Tail with a filter.
    browser.value("document.getElementById('tab-tail').click()");
    browser.await_that("document.querySelector('#tail-where').innerText.length > 0");
    browser.value("document.getElementById('tail-text').focus()");
    browser.write("log.level:error request");
    patiently("errors are shown, and nothing else", || {
        run.write(20);
        let shown = browser.value("document.querySelectorAll('#tail-log summary').length");
        (shown.as_u64().unwrap() > 5).then_some(())
    });
    let rows = browser.text("#tail-log");
    assert!(rows.contains("ERROR") && !rows.contains("INFO"), "{rows}");
    browser.value("document.querySelector('#tail-log summary').click()");
    browser.await_that("document.querySelector('#tail-log pre')?.innerText.includes('log')");
    browser.picture("tail-light");

    // Search in the files, the compressed one included.
    browser.value("document.getElementById('tab-search').click()");
    browser.press("/");
    browser.write(&format!("\"{}\"", line("old", 1234).trim_end()));
    browser.press("Enter");
    browser.await_that("document.querySelector('#search-where').innerText.startsWith('1 line found in 15 of 15 files')");
    let ready = "document.querySelector('#search-go').innerText === 'Search'";
    browser.await_that(ready);
    assert!(browser.text("#search-log").contains("rotated.log.1.gz"));
    browser.value("(field => { field.value = 'live app'; field.form.requestSubmit() })(document.getElementById('search-text'))");
    browser.await_that(
        "document.querySelector('#search-where').innerText.startsWith('0 lines found')",
    );
    browser.await_that(ready);
    browser.value("(field => { field.value = 'request -INFO'; field.form.requestSubmit() })(document.getElementById('search-text'))");
    browser.await_that("document.querySelectorAll('#search-log mark').length > 50");
    browser.await_that("document.querySelector('#search-go').innerText === 'Search'");
    browser.picture("search-light");

    // The plan, and the dead letters with their reason.
    browser.value("document.getElementById('tab-plan').click()");
    browser.await_that("document.querySelector('#view-plan').innerText.includes('dissect')");
    // Each step shows its cost on live lines.
    patiently("steps are timed", || {
        run.write(50);
        let timed = "[...document.querySelectorAll('#view-plan td.number')].some((cell) => /[1-9]/.test(cell.innerText))";
        (browser.value(timed) == true).then_some(())
    });
    browser.picture("plan-light");
    browser.value("document.getElementById('tab-overview').click()");
    browser.value("document.querySelector('[data-term=dead-lettered] a').click()");
    browser.await_that("!document.querySelector('#view-letters').hidden");
    browser.await_that("document.querySelectorAll('#letters-rows tr').length === 3");
    assert!(browser.text("#letters-rows").contains("poison.log"));
    let groups = browser.text("#letters-groups");
    assert!(
        groups.contains('3') && groups.contains("400") && groups.contains("poison.log"),
        "{groups}"
    );
    let remedy = browser.text("#letters-remedy");
    assert!(remedy.contains("skidder deadletters redrive --status 400 --reason "), "{remedy}");
    browser.value("document.querySelector('#letters-groups .more').click()");
    browser.await_that("!document.querySelector('#letters-all').hidden");
    browser.await_that("document.querySelectorAll('#letters-rows tr').length === 3");
    browser.value("document.querySelector('#letters-rows summary').click()");
    browser.picture("letters-light");
    browser.assert_quiet(&run.url);
    // A stop reads nothing more.
    let all = run.written + 3316;
    patiently("all lines are delivered", || (run.server.count() >= all).then_some(()));
    run.program.terminate().succeeded();
    let letters = std::fs::read_to_string(run.place.data().join("dead_letters.ndjson")).unwrap();
    assert_eq!((letters.lines().count(), run.server.count()), (3, all));
}

#[test]
fn the_keyboard_is_enough_and_the_dark_is_dark() {
    let mut run = Run::start("");
    let mut browser = Browser::start();
    browser.size(1400, 900);
    browser.prefer("dark");
    browser.open(&format!("{}/ui/#token={}", run.url, run.token));
    browser.await_that("document.querySelector('#pulse')?.innerText === '1 problem'");
    run.write(500);
    browser.await_that("document.querySelector('#sum')?.innerText.startsWith('✓ adds up')");
    // Light letters on a dark ground.
    let lightness =
        "(color => color.match(/\\d+/g).slice(0, 3).reduce((sum, part) => sum + Number(part), 0))";
    let ground =
        browser.value(&format!("{lightness}(getComputedStyle(document.body).backgroundColor)"));
    let letters = browser.value(&format!("{lightness}(getComputedStyle(document.body).color)"));
    assert!(ground.as_u64() < Some(150) && letters.as_u64() > Some(600), "{ground} {letters}");
    for _ in 0..3 {
        run.write(300);
        let wanted = term(&mut browser, "read") + 300;
        patiently("the numbers move", || (term(&mut browser, "read") >= wanted).then_some(()));
    }
    browser.picture("overview-dark");
    // To the tabs, to the next one, to its search field, to a button that sorts.
    browser.press("1");
    browser.press("ArrowRight");
    browser.await_that("document.activeElement.id === 'tab-files' && !document.querySelector('#view-files').hidden");
    browser.press("/");
    browser.await_that("document.activeElement.id === 'files-text'");
    browser.write("app-0");
    browser.await_that("document.querySelectorAll('#files-rows tr').length === 10");
    browser.press("Escape");
    browser.await_that("document.activeElement === document.body");
    browser.value("document.getElementById('files-text').focus()");
    let sorted = "document.activeElement.dataset.sort === 'path'";
    patiently("the button is reached", || {
        browser.press("Tab");
        (browser.value(sorted) == true).then_some(())
    });
    let outline = browser.value("getComputedStyle(document.activeElement).outlineStyle");
    assert_eq!(outline, "solid", "the focus is seen");
    browser.press("Enter");
    browser.await_that("document.activeElement.parentElement.ariaSort === 'ascending'");
    browser.await_that(
        "document.querySelector('#files-rows td.path').innerText.endsWith('app-00.log')",
    );
    browser.picture("files-dark");
    browser.press("3");
    browser.await_that("document.querySelector('#tail-where').innerText.length > 0");
    browser.press("/");
    browser.write("request");
    patiently("events are shown", || {
        run.write(10);
        let shown = browser.value("document.querySelectorAll('#tail-log mark').length");
        (shown.as_u64().unwrap() > 5).then_some(())
    });
    browser.press("Escape");
    browser.press("p");
    browser.await_that("document.querySelector('#tail-where').innerText.startsWith('paused')");
    browser.picture("tail-dark");
    browser.assert_quiet(&run.url);
    run.program.terminate().succeeded();
}

/// What stands out of the window, or is too narrow to be read, in words; nothing if all is right.
const OVERFLOW: &str = "(() => {
  const bad = [];
  const name = (element) => `${element.tagName.toLowerCase()}#${element.id}.${element.className} ${(element.innerText || '').slice(0, 30)}`;
  if (document.scrollingElement.scrollWidth > innerWidth) bad.push(`the page is ${document.scrollingElement.scrollWidth} wide`);
  for (const element of document.querySelectorAll('body *')) {
    if (!element.checkVisibility() || element.closest('nav, .scroll table, .skip, thead')) continue;
    const { left, right, width } = element.getBoundingClientRect();
    if (width > 0 && (right > innerWidth + 1 || left < -1)) bad.push(`${name(element)} from ${left} to ${right}`);
  }
  for (const element of document.querySelectorAll('.log .message, td.text, td.path, td.step')) {
    const { width } = element.getBoundingClientRect();
    if (element.checkVisibility() && width < Math.min(250, innerWidth * 0.6) && element.innerText.length > 40) bad.push(`${name(element)} is ${width} wide`);
  }
  const tabs = document.getElementById('tabs');
  if (tabs.clientHeight > 60) bad.push(`the tabs are ${tabs.clientHeight} high`);
  if (innerWidth < 500) {
    for (const element of document.querySelectorAll('.scroll')) {
      if (element.checkVisibility() && element.scrollWidth > element.clientWidth + 1) bad.push(`${name(element)} has to be scrolled`);
    }
  }
  return bad.join('\\n');
})()";

/// Gives each file a reason, which they have only now and then.
const REASONS: &str = "for (const reason of document.querySelectorAll('#files-rows td.text')) \
  reason.innerText = 'read to its end; some lines are waiting for their output';\n";

#[test]
fn nothing_stands_out_of_a_telephone_a_tablet_or_a_screen_in_light_and_dark() {
    let mut run = Run::start("");
    let mut browser = Browser::start();
    browser.open(&format!("{}/ui/#token={}", run.url, run.token));
    browser.await_that("document.querySelector('#pulse')?.innerText === '1 problem'");
    run.write(300);
    browser.value("document.getElementById('tab-search').click()");
    browser.value("(field => { field.value = 'request'; field.form.requestSubmit() })(document.getElementById('search-text'))");
    browser.await_that("document.querySelectorAll('#search-log summary').length > 50");
    browser.await_that("document.querySelector('#search-go').innerText === 'Search'");
    browser.value("document.querySelector('#search-log summary').click()");
    for (width, height) in [(390, 844), (768, 1024), (1400, 900)] {
        browser.size(width, height);
        for scheme in ["light", "dark"] {
            browser.prefer(scheme);
            for (view, shows) in [
                ("overview", "#outputs td"),
                ("files", "#files-rows td"),
                ("tail", "#tail-log summary"),
                ("search", "#search-log summary"),
                ("plan", "#view-plan td"),
                ("letters", "#letters-groups td"),
            ] {
                browser.value(&format!("document.getElementById('tab-{view}').click()"));
                patiently("the view shows something", || {
                    run.write(5);
                    let shown = format!("document.querySelector('{shows}') !== null");
                    (browser.value(&shown) == true).then_some(())
                });
                // The tab that is shown can be seen.
                let tab = format!(
                    "(tab => tab.left >= 0 && tab.right <= innerWidth)(document.getElementById('tab-{view}').getBoundingClientRect())"
                );
                browser.await_that(&tab);
                browser.picture(&format!("{view}-{width}-{scheme}"));
                let bad = browser.value(OVERFLOW);
                assert_eq!(bad, "", "{view} at {width}, {scheme}");
                let bad = browser.value(&format!("{REASONS}{OVERFLOW}"));
                assert_eq!(bad, "", "{view} with reasons at {width}, {scheme}");
            }
        }
    }
    browser.assert_quiet(&run.url);
    run.program.terminate().succeeded();
}

#[test]
fn without_the_token_numbers_are_shown_and_events_are_not_until_it_is_entered() {
    let run = Run::start("");
    let mut browser = Browser::start();
    browser.size(390, 844);
    browser.open(&format!("{}/ui/", run.url));
    browser.await_that("document.querySelector('#pulse')?.innerText === '1 problem'");
    patiently("the ledger is shown", || (term(&mut browser, "read") > 3000).then_some(()));
    browser.await_that("document.querySelector('#lock').hidden");
    browser.value("document.getElementById('tab-letters').click()");
    browser.await_that("!document.querySelector('#lock').hidden");
    assert!(browser.text("#lock").contains("skidder page"));
    assert_eq!(browser.value("document.querySelectorAll('#letters-rows tr').length"), 0);
    browser.picture("locked-390");
    assert_eq!(browser.value(OVERFLOW), "");
    let enter = |browser: &mut Browser, token: &str| {
        browser.value("document.getElementById('token').focus()");
        browser.write(token);
        browser.press("Enter");
    };
    enter(&mut browser, "wrong");
    browser
        .await_that("document.querySelector('#unlock-said').innerText === 'this is not the token'");
    browser.value("document.getElementById('token').value = ''");
    enter(&mut browser, &run.token);
    browser.await_that("document.querySelectorAll('#letters-rows tr').length === 3");
    browser.await_that("document.querySelector('#lock').hidden");
    // It is kept, also over a restart of the program at the same place, and no script can read the cookie.
    assert_eq!(browser.value("document.cookie"), "");
    browser.open(&format!("{}/ui/#letters", run.url));
    browser.value("window.isBefore = true");
    browser.value("location.reload()");
    browser.await_that(
        "!window.isBefore && document.querySelectorAll('#letters-rows tr').length === 3",
    );
    // Without an answer the page shows since when.
    run.program.kill();
    browser.await_that(
        "/^no answer since \\d\\d:\\d\\d:\\d\\d/.test(document.querySelector('#alarm').innerText)",
    );
    browser.await_that("document.querySelector('#pulse').innerText === 'no answer'");
}

#[test]
fn inputs_without_files_show_their_sources_on_every_screen() {
    let server = BulkServer::start();
    let place = Place::new(&server);
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let in_use = taken.local_addr().unwrap().port();
    let text = place.configuration();
    let (_, rest) = text.split_once("filebeat.registry.flush").unwrap();
    place.configure(&format!(
        "filebeat.inputs:\n- {{type: tcp, id: apps, host: '127.0.0.1:{port}'}}\n\
         - {{type: udp, host: '127.0.0.1:{in_use}'}}\n\
         filebeat.registry.flush{rest}http: {{enabled: true, port: 0}}\n"
    ));
    let program = place.start(&[]);
    let url = address(&program);
    let mut clients: Vec<TcpStream> = (0..3)
        .map(|_| patiently("a listener", || TcpStream::connect(("127.0.0.1", port)).ok()))
        .collect();
    for (at, client) in clients.iter_mut().enumerate() {
        client.write_all(&lines("a", 0..100 * (at + 1))).unwrap();
    }
    let names: Vec<String> =
        clients.iter().map(|client| client.local_addr().unwrap().to_string()).collect();
    let mut browser = Browser::start();
    browser.size(1400, 900);
    browser.open(&format!("{url}/ui/"));
    // The input that cannot listen is a problem, and its row has the reason.
    browser.await_that("document.querySelector('#problems')?.innerText.includes('its sources')");
    browser.await_that("document.querySelectorAll('#receiving tr').length === 2");
    browser.await_that("document.querySelector('#receiving tr')?.innerText.includes('600')");
    let receiving = browser.text("#receiving");
    for part in
        ["apps tcp", "reading", &format!("udp 127.0.0.1:{in_use}"), "waiting", "another process"]
    {
        assert!(receiving.contains(part), "{part} is not in {receiving}");
    }
    // Rates are of two looks.
    let rate = "document.querySelector('#receiving td[data-head=\"events/s\"]').innerText";
    patiently("a rate", || {
        clients[0].write_all(&lines("a", 0..50)).unwrap();
        let shown = browser.value(rate);
        shown.as_str().unwrap().replace('k', "").parse::<f64>().ok().filter(|rate| *rate > 0.0)
    });
    let overview = browser.text("#view-overview");
    assert!(overview.contains("open sources 3") && !overview.contains("oldest line"), "{overview}");

    // The tab is called by what it has; no table of files.
    browser.await_that("document.getElementById('tab-files').innerText === 'Sources'");
    browser.value("document.getElementById('tab-files').click()");
    browser.await_that("document.querySelectorAll('#sources-rows tr').length === 3");
    browser.await_that("document.getElementById('files-card').hidden");
    browser.value("document.querySelector('#sources [data-sort=name]').click()");
    let first = names.iter().min().unwrap();
    browser.await_that(&format!(
        "document.querySelector('#sources-rows td.path').innerText === '{first}'"
    ));
    browser.value("document.querySelector('#sources [data-sort=events]').click()");
    browser.await_that("document.querySelector('#sources [data-sort=events]').parentElement.ariaSort === 'descending'");
    browser.value("document.getElementById('files-text').focus()");
    browser.write(&names[1]);
    browser.await_that("document.querySelectorAll('#sources-rows tr').length === 1");
    browser.await_that("document.querySelector('#sources-rows').innerText.includes('200')");
    browser.value("(field => { field.value = ''; field.dispatchEvent(new Event('input')) })(document.getElementById('files-text'))");
    for (width, height) in [(390, 844), (768, 1024), (1400, 900)] {
        browser.size(width, height);
        for scheme in ["light", "dark"] {
            browser.prefer(scheme);
            for (view, shows) in [("overview", "#receiving tr"), ("files", "#sources-rows tr + tr")]
            {
                browser.value(&format!("document.getElementById('tab-{view}').click()"));
                browser
                    .await_that(&format!("document.querySelector('{shows}')?.checkVisibility()"));
                let scroll =
                    "document.querySelector('#receiving').scrollIntoView({block: 'center'})";
                browser.value(scroll);
                browser.picture(&format!("sources-{view}-{width}-{scheme}"));
                assert_eq!(browser.value(OVERFLOW), "", "{view} at {width}, {scheme}");
            }
        }
    }
    browser.assert_quiet(&url);
    program.terminate().succeeded();
}

/// A provider of Kubernetes with hints and a template that no pod of the test meets.
fn provider(folder: &std::path::Path) -> String {
    let folder = folder.display();
    format!(
        "filebeat.autodiscover.providers:\n- type: kubernetes\n  node: node-1\n  \
         kube_config: {folder}/kubeconfig\n  templates:\n  \
         - condition.equals.kubernetes.labels.app: database\n    config:\n    - {{type: filestream, id: x, paths: [/x]}}\n  \
         hints.enabled: true\n  hints.default_config:\n    type: filestream\n    \
         id: container-${{data.kubernetes.container.id}}\n    fields.password: hunter2\n    \
         prospector.scanner: {{symlinks: true, check_interval: 50ms}}\n    parsers: [{{container: ~}}]\n    \
         paths: ['{folder}/containers/*-${{data.kubernetes.container.id}}.log']\n"
    )
}

#[test]
fn containers_show_the_rules_that_matched_the_configuration_and_why_one_is_not_read() {
    let server = BulkServer::start();
    let folder = tempfile::tempdir().unwrap();
    let cluster = Cluster::start(folder.path());
    let place = Place::new(&server);
    let text = place.configuration();
    let (_, rest) = text.split_once("filebeat.registry.flush").unwrap();
    place.configure(&format!(
        "{}filebeat.registry.flush{rest}http: {{enabled: true, port: 0}}\n",
        provider(folder.path())
    ));
    let mut program = place.start(&[]);
    let url = address(&program);
    let token = std::fs::read_to_string(place.data().join("page.token")).unwrap();
    let annotations = [
        ("web", json!({})),
        ("off", json!({"co.elastic.logs/enabled": "false"})),
        ("bad", json!({"co.elastic.logs/multiline.pattern": "(("})),
    ];
    for (number, (name, annotations)) in annotations.into_iter().enumerate() {
        let mut pod = Pod::create(&cluster, name, number as u64, annotations);
        pod.write(3);
        pod.run(&cluster);
    }
    program.await_that("the pod is read", || server.count() >= 3);
    let mut browser = Browser::start();
    browser.size(1400, 900);
    browser.open(&format!("{url}/#token={}", token.trim_end()));
    browser.await_that("document.getElementById('tab-containers')?.hidden === false");
    browser.press("7");
    browser.await_that("document.querySelectorAll('#containers-rows tr').length === 3");
    let rows = browser.text("#containers-rows");
    for part in ["pod shop/web", "the hint `co.elastic.logs/enabled` is `false`", "not read"] {
        assert!(rows.contains(part), "{part} is not in {rows}");
    }
    // The reason of one that an annotation broke, also found by the search.
    browser.press("/");
    browser.write("multiline pattern");
    browser.await_that("document.querySelectorAll('#containers-rows tr').length === 1");
    // It is known before it is read, and refused.
    browser.await_that("document.querySelector('#containers-rows').innerText.includes('((')");
    let broken = browser.text("#containers-rows");
    assert!(broken.contains("pod shop/bad") && broken.contains("not read"), "{broken}");
    browser.press("Escape");
    browser.value("(field => { field.value = ''; field.dispatchEvent(new Event('input')) })(document.getElementById('containers-text'))");
    browser.await_that("document.querySelectorAll('#containers-rows tr').length === 3");
    browser.value("(field => { field.value = 'read'; field.dispatchEvent(new Event('change')) })(document.getElementById('containers-state'))");
    browser.await_that("document.querySelectorAll('#containers-rows tr').length === 1");
    browser.value("document.querySelector('#containers-rows .more').click()");
    browser.await_that(
        "document.querySelector('#containers-rows pre')?.innerText.includes('type: filestream')",
    );
    let open = browser.text("#containers-rows .open");
    for part in ["hints are used", "does not match", "runs", "containers/*-0000", "xxxxx"] {
        assert!(open.contains(part), "{part} is not in {open}");
    }
    assert!(!open.contains("hunter2"), "{open}");
    for (width, height) in [(390, 844), (768, 1024), (1400, 900)] {
        browser.size(width, height);
        for scheme in ["light", "dark"] {
            browser.prefer(scheme);
            browser.picture(&format!("containers-{width}-{scheme}"));
            assert_eq!(browser.value(OVERFLOW), "", "containers at {width}, {scheme}");
        }
    }
    browser.assert_quiet(&url);
    program.terminate().succeeded();
}
