//! Modules: from a module folder and their settings to events, pipelines and files in `modules.d`.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

mod common;

use common::Place;
use common::lines::lines;
use common::program::{Ended, Program, command};
use common::server::BulkServer;
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};

const MANIFEST: &str = "
var:
- {name: paths, default: [/none/*.log]}
- {name: label, default: plain}
ingest_pipeline: [ingest/entry.yml, ingest/rest.json]
input: config/log.yml
requires.processors: [{name: geoip, plugin: ingest-geoip}]
";
const INPUT: &str = "
type: filestream
id: '{{.builtin.module}}-{{.builtin.fileset}}'
allow_other_things: true
prospector.scanner.check_interval: 20ms
paths:
{{ range $i, $path := .paths }}
 - {{$path}}
{{ end }}
processors:
- add_fields: {target: '', fields: {label: '{{.label}}'}}
";
const ENTRY: &str = "
description: '{< .label >} {{kept}}'
processors:
- pipeline: {name: '{< IngestPipeline \"rest\" >}'}
";
const REST: &str = r#"{"processors": [{"set": {"field": "a", "value": "b"}}]}"#;

/// A place with a module `web` (filesets `access` and `error`), nothing else to read, and `more` settings.
struct Modular {
    place: Place,
}

impl Modular {
    fn new(place: Place, more: &str) -> Self {
        let text = place.configuration();
        let (_, rest) = text.split_once("filebeat.registry.flush").unwrap();
        let home = place.path().display().to_string();
        let modules = place.path().join("modules.d");
        fs::create_dir(&modules).unwrap();
        place.configure(&format!(
            "path.home: '{home}'\nfilebeat.config.modules: {{path: '{}/*.yml', reload: {{enabled: true, \
             period: 20ms}}}}\nfilebeat.registry.flush{rest}{more}",
            modules.display()
        ));
        let it = Self { place };
        for fileset in ["access", "error"] {
            for (file, text) in [
                ("manifest.yml", MANIFEST),
                ("config/log.yml", INPUT),
                ("ingest/entry.yml", ENTRY),
                ("ingest/rest.json", REST),
            ] {
                let path = it.folder().join("web").join(fileset).join(file);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
        }
        it
    }

    fn folder(&self) -> PathBuf {
        self.place.path().join("module")
    }

    fn logs(&self, name: &str) -> String {
        format!("{}/{name}", self.place.logs().display())
    }

    /// Writes a file in `modules.d` as a careful program does.
    fn put(&self, name: &str, text: &str) {
        let draft = self.place.path().join("draft");
        fs::write(&draft, text).unwrap();
        fs::rename(&draft, self.place.path().join("modules.d").join(name)).unwrap();
    }
}

fn one_console(more: &str) -> Modular {
    Modular::new(Place::with_output("output.console: {}\n"), more)
}

fn id(fileset: &str, pipeline: &str) -> String {
    format!("filebeat-9.5.3-web-{fileset}-{pipeline}")
}

/// Runs `skidder` with this configuration, and returns the standard error of a failure.
fn refused(place: &Place, arguments: &[&str]) -> String {
    let ended = place.run(&[&["test", "config"], arguments].concat());
    assert_eq!(ended.code(), Some(1), "{ended:?}");
    ended.log
}

#[test]
fn a_generated_module_runs_when_it_is_enabled() {
    let it = one_console("");
    let place = &it.place;
    let early = place.run(&["generate", "fileset", "shop", "orders"]);
    assert!(early.code() == Some(1) && early.log.contains("generate module shop"), "{early:?}");
    place.run(&["generate", "module", "shop"]).succeeded();
    let ended = place.run(&["generate", "fileset", "shop", "orders"]).succeeded();
    assert!(ended.out.contains("skidder modules enable shop"), "{}", ended.out);
    for (arguments, part) in [
        (&["module", "shop"][..], "is there already"),
        (&["fileset", "shop", "orders"], "is there already"),
        (&["module", "../etc"], "cannot be a name"),
        (&["fields", "shop", "returns"], "pipeline.json"),
    ] {
        let ended = place.run(&[&["generate"], arguments].concat());
        assert!(
            ended.code() == Some(1) && ended.log.contains(part),
            "{arguments:?}: {}",
            ended.log
        );
    }
    place.run(&["generate", "fields", "shop", "orders"]).succeeded();
    let fields = fs::read_to_string(it.folder().join("shop/orders/_meta/fields.yml")).unwrap();
    assert!(fields.contains("- name: shop\n") && fields.contains("- name: level\n"), "{fields}");

    place.run(&["modules", "enable", "shop"]).succeeded();
    let file = place.path().join("modules.d/shop.yml");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(place.logs().join("orders.log"), lines("order", 0..3)).unwrap();
    let paths = format!("var.paths: ['{}']\n", it.logs("orders.log"));
    let (before, _) = text.split_once("# var.paths").unwrap();
    fs::write(&file, format!("{before}{paths}")).unwrap();
    let events = place.once(&[]).succeeded().out;
    let events: Vec<serde_json::Value> =
        events.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(events.len(), 3, "{events:?}");
    assert_eq!(events[0]["event"]["dataset"], "shop.orders");
    assert_eq!(events[0]["fileset"]["name"], "orders");
}

#[test]
fn a_fileset_is_an_input_and_its_events_say_so() {
    let it = one_console("");
    let configuration = it.place.configuration();
    let modules = format!(
        "setup: {{template.settings.index.number_of_shards: 1, kibana: {{}}}}\n\
         filebeat.modules:\n- module: web\n  access:\n    var.paths: ['{}']\n    input.tags: [mine]\n  error: {{enabled: \
         false}}\n",
        it.logs("a.log")
    );
    it.place.configure(&format!("{modules}{configuration}"));
    it.place.write("a.log", b"hello\n");
    let ended = it.place.once(&[]).succeeded();
    let event: serde_json::Value = serde_json::from_str(ended.out.lines().next().unwrap()).unwrap();
    assert_eq!(event["event"], json!({ "module": "web", "dataset": "web.access" }));
    assert_eq!(event["fileset"], json!({ "name": "access" }));
    assert_eq!(event["service"], json!({ "type": "web" }));
    assert_eq!(event["@metadata"]["pipeline"], id("access", "entry"));
    assert_eq!((&event["label"], &event["tags"]), (&json!("plain"), &json!(["mine"])));
    assert_eq!(event["message"], "hello");
    // What is not known in a template is not the user's mistake; that pipelines are not loaded matters.
    assert!(
        ended.log.contains("warning: ") && ended.log.contains("allow_other_things"),
        "{}",
        ended.log
    );
    assert!(ended.log.contains("pipelines of modules are not loaded"), "{}", ended.log);
}

#[test]
fn the_command_line_adds_modules_and_overrides_their_settings() {
    let it = one_console("");
    it.place.write("a.log", b"one\n");
    it.put(
        "web.yml",
        &format!("- module: web\n  error: {{var.paths: ['{}']}}\n", it.logs("b.log")),
    );
    it.place.write("b.log", b"two\n");
    let paths = format!("web.access.var.paths=[{}]", it.logs("a.log"));
    let arguments = ["--modules", "web", "-M", &paths, "-M", "*.*.var.label=x"];
    let ended = it.place.once(&arguments).succeeded();
    let mut found: Vec<_> = ended
        .out
        .lines()
        .map(|line| {
            let event: serde_json::Value = serde_json::from_str(line).unwrap();
            (event["event"]["dataset"].clone(), event["label"].clone())
        })
        .collect();
    found.sort_by_key(|(dataset, _)| dataset.to_string());
    // `-M` is not for files in `modules.d`.
    let expected = [("web.access", "x"), ("web.error", "plain")];
    assert_eq!(found, expected.map(|(one, other)| (json!(one), json!(other))));
    let ended = it.place.run(&["test", "config", "-M", "web.error.var.label=x"]).succeeded();
    assert!(ended.log.contains("`-M web.…` has no effect"), "{}", ended.log);
}

#[test]
fn an_override_for_no_fileset_is_a_warning_with_the_names_that_run() {
    let it =
        one_console("filebeat.modules: [{module: web, access: {}, error: {enabled: false}}]\n");
    for (over, of, hint) in [
        ("*.access.var.label=x", "*.access", "name the module: those that run: `web.access`"),
        ("*.axess.var.label=x", "*.axess", "name the module: those that run: `web.access`"),
        ("wob.access.var.label=x", "wob", "the module does not run"),
        ("web.error.var.label=x", "web.error", "is turned off; those that run: `web.access`"),
    ] {
        let log = it.place.run(&["test", "config", "-M", over]).succeeded().log;
        let expected = format!("`-M {of}.…` has no effect\nhint: ");
        assert!(log.contains(&expected) && log.contains(hint), "{over}: {log}");
    }
    for over in ["web", "web.access", "web=access", "*=x"] {
        let log = refused(&it.place, &["-M", over]);
        let name = over.split_once('=').map_or(over, |(name, _)| name);
        let expected = format!("-M {name}: the name of a fileset or of its setting is missing");
        assert!(log.contains(&expected), "{over}: {log}");
    }
    for over in
        ["*.*.var.label=x", "web.*.var.label=x", "web.error.enabled=true", "web.error.enabled"]
    {
        let log = it.place.run(&["test", "config", "-M", over]).succeeded().log;
        assert!(!log.contains("-M"), "{over}: {log}");
    }
}

#[test]
fn mistakes_name_module_fileset_template_and_line() {
    for (modules, says) in [
        (
            "{module: web, acces: {}}",
            &["the module `web` has no fileset `acces`", "it has `access`, `error`"][..],
        ),
        ("{module: wob, access: {}}", &["there is no module `wob` in `", "filebeat.modules_path"]),
        ("{module: '', access: {}}", &["a module has a name", "such as `nginx`"]),
        ("{module: web/, access: {}}", &["there is no module `web/` in `"]),
        ("{module: web}", &["on, but none of its filesets", "set `enabled: true`"]),
        (
            "{module: web, access: {var.paths: 7}}",
            &["module `web`, fileset `access`: the template `", "log.yml (rendered"],
        ),
        ("{module: web, access: {var.label: \"'\"}}", &["log.yml (rendered for web/access):"]),
        (
            "{module: web, access: {vra.label: x}}",
            &["unknown setting `filebeat.modules[0].access.vra"],
        ),
        ("{module: web, access: {input.type: nonsense}}", &["input type `nonsense`"]),
        (
            "{module: web, access: {input: {messag_max_bytes: 1}}}",
            &[
                "error: ",
                "unknown setting `",
                "messag_max_bytes`",
                "did you mean `message_max_bytes`",
            ],
        ),
        (
            "{module: web, access: {input: {prospector.scanner.symlink: true}}}",
            &["error: ", "prospector.scanner.symlink`", "did you mean `symlinks`"],
        ),
        ("{access: {}}", &["filebeat.modules[0].module"]),
        ("web", &["a module is a map"]),
    ] {
        let it = one_console("");
        it.place.configure(&format!("filebeat.modules: [{modules}]\n{}", it.place.configuration()));
        let log = refused(&it.place, &[]);
        for text in says {
            assert!(log.contains(text), "{modules}: `{text}` is missing in:\n{log}");
        }
    }
    let it = one_console("filebeat.modules: [{module: web, access: {var.labl: x}}]\n");
    let ended = it.place.run(&["test", "config"]).succeeded();
    assert!(ended.log.contains("`var.labl` has no effect"), "{}", ended.log);
    fs::rename(it.folder(), it.place.path().join("elsewhere")).unwrap();
    assert!(refused(&it.place, &[]).contains("modules are on, but none of"));
    it.place.run(&["test", "config", "-E", "filebeat.modules_path=elsewhere"]).succeeded();
    assert!(
        refused(&it.place, &["-E", "filebeat.modules_path=none"])
            .contains("names no folder that can be read")
    );
}

#[test]
fn pipelines_are_there_before_the_first_event_and_before_those_of_a_reload() {
    let server = BulkServer::start();
    let it = Modular::new(Place::new(&server), "");
    let text = |fileset: &str, more: &str| {
        format!("- module: web\n  {fileset}: {{var.paths: ['{}']{more}}}\n", it.logs(fileset))
    };
    it.put("a.yml", &text("access", ", var.label: one"));
    it.place.write("access", &lines("a", 0..500));
    it.place.write("error", &lines("b", 0..300));
    let mut program = it.place.start(&[]);
    program.await_that("the first file is delivered", || server.count() == 500);
    it.put("b.yml", &text("error", ""));
    program.await_that("the second file is delivered", || server.count() == 800);
    program.terminate().succeeded();
    let puts: Vec<_> =
        server.puts().into_iter().filter(|put| put.path.contains("pipeline")).collect();
    let found: Vec<_> = puts.iter().map(|put| (put.path.clone(), put.behind)).collect();
    let path = |fileset: &str, name: &str| format!("/_ingest/pipeline/{}", id(fileset, name));
    let expected = [
        (path("access", "entry"), 0),
        (path("access", "rest"), 0),
        (path("error", "entry"), 500),
        (path("error", "rest"), 500),
    ];
    assert_eq!(found, expected);
    assert_eq!(puts[0].body["description"], "one {{kept}}");
    assert_eq!(puts[0].body["processors"][0]["pipeline"]["name"], id("access", "rest"));
    let pipelines: Vec<_> =
        server.sent().into_iter().filter_map(|document| document.pipeline).collect();
    assert_eq!(pipelines.iter().filter(|name| **name == id("access", "entry")).count(), 500);
    assert_eq!(pipelines.iter().filter(|name| **name == id("error", "entry")).count(), 300);
    // They are there: only the setting puts them again, and another one not at all.
    it.place.once(&[]).succeeded();
    assert_eq!(server.puts().iter().filter(|put| put.path.contains("pipeline")).count(), 4);
    it.place.write("more", b"");
    fs::write(it.place.logs().join("access"), lines("a", 0..501)).unwrap();
    it.place.once(&["-E", "filebeat.overwrite_pipelines=true"]).succeeded();
    assert_eq!(server.puts().iter().filter(|put| put.path.contains("pipeline")).count(), 8);
}

#[test]
fn a_refused_pipeline_of_a_reload_holds_no_others_up_but_one_of_the_start_does() {
    let server = BulkServer::start();
    let it = Modular::new(Place::new(&server), "");
    it.place.open_endpoint();
    let text = |fileset: &str| {
        format!("- module: web\n  {fileset}: {{var.paths: ['{}']}}\n", it.logs(fileset))
    };
    let letters = || {
        let text = fs::read_to_string(it.place.data().join("dead_letters.ndjson"));
        text.map_or(0, |text| text.lines().count())
    };
    it.put("a.yml", &text("access"));
    it.place.write("access", &lines("a", 0..100));
    it.place.write("error", &lines("b", 0..30));
    server.refuse_pipelines(Some(("web-error", 403)));
    let mut program = it.place.start(&[]);
    program.await_that("the first file is delivered", || server.count() == 100);
    it.put("b.yml", &text("error"));
    program.await_that("the other one is refused", || letters() == 30);
    it.place.write("access", &lines("a", 0..150));
    program.await_that("the first file goes on", || server.count() == 150);
    let status = it.place.run(&["status"]).out;
    assert!(
        status.contains("`web/error`, and refuses the events of the configuration that was read"),
        "{status}"
    );
    program.terminate().succeeded();

    // With the next start it is of the configuration: all wait.
    it.place.write("access", &lines("a", 0..160));
    let mut program = it.place.start(&[]);
    program.await_log("cannot send events");
    assert_eq!((server.count(), letters()), (150, 30));
    server.refuse_pipelines(None);
    program.await_that("the rest is delivered", || server.count() == 160);
    program.terminate().succeeded();
}

#[test]
fn setup_loads_the_pipelines_of_modules() {
    let server = BulkServer::start();
    let it = Modular::new(Place::new(&server), "setup.pipelines.enabled: false\n");
    it.put("web.yml", "- module: web\n  error: {enabled: false}\n  access: {}\n");
    let ended = it.place.run(&["setup", "--pipelines"]).succeeded();
    let put = || -> Vec<String> { server.puts().into_iter().map(|put| put.path).collect() };
    let path = |fileset: &str, name: &str| format!("/_ingest/pipeline/{}", id(fileset, name));
    assert_eq!(put(), [path("access", "entry"), path("access", "rest")]);
    assert!(ended.out.contains(&format!("`{}`: loaded", id("access", "entry"))), "{}", ended.out);
    // The user asked for them: they replace those that are there.
    it.place.run(&["setup", "--pipelines", "--enable-all-filesets"]).succeeded();
    assert_eq!(put().len(), 6);
    assert_eq!(put()[2..4], [path("error", "entry"), path("error", "rest")]);
    it.place.run(&["setup", "--index-management"]).succeeded();
    assert!(put()[6].contains("_index_template"));
    // A run does not load them.
    it.place.write("a.log", b"hello\n");
    it.put(
        "web.yml",
        &format!("- module: web\n  access: {{var.paths: ['{}']}}\n", it.logs("a.log")),
    );
    it.place.once(&[]).succeeded();
    assert_eq!(server.count(), 1);
    assert!(!put()[6..].iter().any(|path| path.contains("pipeline")), "{:?}", put());
}

#[test]
fn a_module_can_be_begun_without_a_configuration_and_the_lines_that_it_needs_are_printed() {
    let place = tempfile::tempdir().unwrap();
    let home = place.path();
    let run = |arguments: &str| {
        let all: Vec<&str> = arguments.split(' ').collect();
        Program::run(command(&all).current_dir(home))
    };
    run("generate module shop").succeeded();
    let out = run("generate fileset shop orders").succeeded().out;
    run("generate fields shop orders").succeeded();
    fs::write(home.join("filebeat.yml"), "output.console: {}\npath.data: data\n").unwrap();
    let ended = run("modules enable shop");
    let lines = "hint: add it to `filebeat.yml`:\nfilebeat.config.modules:\n  path: ${path.config}/modules.d/*.yml";
    assert!(ended.code() == Some(1) && ended.log.contains(lines), "{ended:?}");
    let (_, lines) = out.split_once("add these lines to `filebeat.yml`:\n").unwrap();
    let (lines, next) = lines.split_once("the next step: skidder ").unwrap();
    fs::write(home.join("filebeat.yml"), format!("{lines}output.console: {{}}\n")).unwrap();
    run(&format!("{} -c filebeat.yml", next.trim())).succeeded();
    let file = home.join("modules.d/shop.yml");
    let text = fs::read_to_string(&file).unwrap();
    let (before, _) = text.split_once("# var.paths").unwrap();
    let log = home.join("orders.log");
    fs::write(&file, format!("{before}var.paths: ['{}']\n", log.display())).unwrap();
    fs::write(&log, common::lines::lines("order", 0..3)).unwrap();
    let events = run("-c filebeat.yml --path.data data --once").succeeded().out;
    assert_eq!(events.matches("\"dataset\":\"shop.orders\"").count(), 3, "{events}");
    let missing = run("generate module other -c none.yml");
    assert!(
        missing.code() == Some(1) && missing.log.contains("there is no such file"),
        "{missing:?}"
    );
}

#[test]
fn a_module_is_generated_beside_a_configuration_only_where_its_folder_is_known() {
    let place = tempfile::tempdir().unwrap();
    let home = place.path();
    let run = |arguments: &str| {
        let all: Vec<&str> = arguments.split(' ').collect();
        Program::run(command(&all).current_dir(home))
    };
    let configure = |text: &str| fs::write(home.join("filebeat.yml"), text).unwrap();
    configure("output.console: {}\n");
    for arguments in ["module rest7", "fileset rest7 log", "fields rest7 log"] {
        let ended = run(&format!("generate {arguments}"));
        let is_refused = ended.code() == Some(1) && ended.log.contains("--modules-path DIR");
        assert!(is_refused, "{ended:?}");
    }
    configure("filebeat.modules_path: module\n");
    assert_eq!(run("generate module rest7").code(), Some(1));

    run("generate module a --modules-path .").succeeded();
    let out = run("generate fileset a log --modules-path .").succeeded().out;
    let line = format!("filebeat.modules_path: {}\n", home.join("module").display());
    assert!(home.join("module/a/log/manifest.yml").is_file() && out.contains(&line), "{out}");
    run("generate module b --path.home home").succeeded();
    assert!(home.join("home/module/b/module.yml").is_file());
    configure(&format!("path.home: '{}'\n", home.join("other").display()));
    run("generate module c").succeeded();
    assert!(home.join("other/module/c/module.yml").is_file());
    configure(&format!("filebeat.modules_path: '{}'\n", home.join("mine").display()));
    run("generate module d").succeeded();
    let file = home.join("modules.d/d.yml.disabled");
    assert!(home.join("mine/d/module.yml").is_file() && file.is_file());
}

#[test]
fn a_module_is_looked_for_in_all_folders_the_persons_own_first() {
    let it = one_console("");
    let mine = it.place.path().join("mine");
    let own = mine.join("web/access");
    fs::create_dir_all(own.join("config")).unwrap();
    fs::write(own.join("manifest.yml"), "input: config/log.yml\n").unwrap();
    let input = INPUT.split_once("paths:").unwrap().0;
    fs::write(own.join("config/log.yml"), format!("{input}paths: [/none]\n")).unwrap();
    let packaged = it.folder().join("db/log");
    fs::create_dir_all(packaged.parent().unwrap()).unwrap();
    fs::rename(it.folder().join("web/error"), &packaged).unwrap();
    it.put("extra.yml.disabled", "- module: extra\n");
    let configuration = it.place.configuration();
    it.place.configure(&format!(
        "{configuration}filebeat.modules_path: mine\nfilebeat.modules: [{{module: web, access: {{}}}}, \
         {{module: db, log: {{}}}}]\n"
    ));
    it.place.run(&["test", "config"]).succeeded();
    let explained = it.place.run(&["explain"]).succeeded().out;
    assert!(explained.contains("web-access") && explained.contains("db-log"), "{explained}");
    let listed = it.place.run(&["modules", "list"]).succeeded().out;
    let expected = format!(
        "Enabled:\n\nDisabled:\ndb     {}\nextra\nweb    {}\n",
        it.folder().display(),
        mine.display()
    );
    assert_eq!(listed, expected);

    // A module of the person's own is not replaced by another one because of a mistake in it.
    fs::create_dir_all(mine.join("db/log")).unwrap();
    fs::write(mine.join("db/log/manifest.yaml"), "input: config/log.yml\n").unwrap();
    let error = refused(&it.place, &[]);
    let expected = format!("`{}`: it has no fileset", mine.join("db").display());
    assert!(error.contains(&expected), "{error}");
    let listed = it.place.run(&["modules", "list"]).succeeded().out;
    assert!(!listed.contains("db "), "{listed}");
}

/// `skidder modules` with arguments in separate words.
fn modules(home: &Path, arguments: &str) -> Ended {
    let mut all = vec!["modules"];
    all.extend(arguments.split(' '));
    Program::run(command(&all).args(["-c", "filebeat.yml"]).current_dir(home))
}

#[test]
fn modules_are_listed_and_turned_on_and_off() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let folder = home.join("modules.d");
    fs::create_dir(&folder).unwrap();
    for name in ["nginx.yml", "system.yml.disabled", "mysql.yml.disabled"] {
        fs::write(folder.join(name), "- module: x\n").unwrap();
    }
    let pattern = folder.join("*.yml");
    let text =
        format!("filebeat.config.modules.path: '{}'\noutput.discard: {{}}\n", pattern.display());
    fs::write(home.join("filebeat.yml"), text).unwrap();
    let listed = modules(home, "list").succeeded().out;
    assert_eq!(listed, "Enabled:\nnginx\n\nDisabled:\nmysql\nsystem\n");
    let out = modules(home, "enable system nginx").succeeded().out;
    assert_eq!(out, "Enabled system\nModule nginx is already enabled\n");
    let ended = modules(home, "disable nginx mysql").succeeded();
    assert_eq!(ended.out, "Disabled nginx\n");
    assert!(ended.log.contains("Module mysql is already disabled\n"), "{}", ended.log);
    assert!(folder.join("system.yml").is_file() && folder.join("nginx.yml.disabled").is_file());
    let ended = modules(home, "enable none system");
    assert_eq!((ended.code(), &*ended.out), (Some(1), "Module none doesn't exist!\n"));
    let ended = modules(home, "disable none");
    assert_eq!((ended.code(), &*ended.out), (Some(1), ""));
    assert!(ended.log.contains("Module none doesn't exist!\n"), "{}", ended.log);
    fs::write(home.join("filebeat.yml"), "output.discard: {}\n").unwrap();
    let ended = modules(home, "list");
    assert!(
        ended.code() == Some(1) && ended.log.contains("filebeat.config.modules.path"),
        "{ended:?}"
    );
}
