//! What processors cost: the same file with and without them, in turn.

use super::allocations::total_in_log;
use super::cpu::gunzip;
use super::grok::grok;
use super::{Goal, row, rows_or_why, ship_with, spread};
use crate::measure;
use crate::stage::{Settings, Stage};
use crate::statistics::{Summary, summarize};
use crate::table::Row;
use anyhow::{Context, Result, ensure};
use skidder_workload::Kind;

/// What Filebeat's own `filebeat.yml` has.
const DEFAULT: &str = "[{add_host_metadata: {when.not.contains.tags: forwarded}}, \
                       {add_cloud_metadata: {}}, {add_docker_metadata: {}}, {add_kubernetes_metadata: {}}]";

/// Ten processors that look at every line of an access log.
pub const TEN_PROCESSORS: &str = concat!(
    "[{dissect: {target_prefix: '', tokenizer: '%{source.ip} %{} %{user.name} [%{time}] ",
    "\"%{http.request.method} %{url.original} HTTP/%{http.version}\" %{http.response.status_code} ",
    "%{http.response.body.bytes} \"%{http.request.referrer}\" \"%{user_agent.original}\"'}}, ",
    "{timestamp: {field: time, layouts: ['02/Jan/2006:15:04:05 -0700']}}, ",
    "{convert: {fields: [{from: http.response.status_code, type: long}, ",
    "{from: http.response.body.bytes, type: long}]}}, ",
    "{rename: {fields: [{from: url.original, to: url.path}]}}, ",
    "{drop_fields: {fields: [time]}}, ",
    "{add_fields: {target: '', fields: {source.port: 51000, destination: {ip: 10.0.0.1, port: 443}, ",
    "network.transport: tcp, team: shop}}}, ",
    "{add_tags: {tags: [error], when.regexp.message: '\" 5[0-9]{2} '}}, ",
    "{community_id: {}}, ",
    "{urldecode: {fields: [{from: url.path, to: url.path}]}}, ",
    "{truncate_fields: {fields: [user_agent.original], max_bytes: 32}}]"
);

const JSON: &str = "[{decode_json_fields: {fields: [message], target: '', overwrite_keys: true}}]";

/// The input of our own module for access logs of nginx.
const NGINX: &str = include_str!("../../../skidder-modules/own/nginx/access/config/access.yml");

/// Expressions for user agents, if `SKIDDER_REGEXES` names no file of uap-core.
const REGEXES: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../skidder-processors/tests/data/regexes.yaml");

const MODULE: Goal = (
    "p6",
    "CPU of access logs parsed by our own module nginx, user agents too, over none",
    6.0,
    3.0,
    "",
);

const CASES: [Case; 4] = [
    Case {
        goal: (
            "p1",
            "CPU with Filebeat's default processors, over none, uncompressed bodies",
            1.1,
            1.02,
            "",
        ),
        kind: Kind::Mixed,
        processors: DEFAULT,
        gzip_bodies: false,
    },
    Case {
        goal: ("p1g", "the same with gzip level 1 bodies in both", 1.1, 1.02, ""),
        kind: Kind::Mixed,
        processors: DEFAULT,
        gzip_bodies: true,
    },
    Case {
        goal: ("p2", "CPU of access logs with ten processors, over none", 4.0, 2.5, ""),
        kind: Kind::Apache,
        processors: TEN_PROCESSORS,
        gzip_bodies: false,
    },
    Case {
        goal: ("p3", "CPU of JSON lines with `decode_json_fields`, over none", 2.2, 1.6, ""),
        kind: Kind::Json,
        processors: JSON,
        gzip_bodies: false,
    },
];

const ALLOCATIONS: Goal =
    ("p4", "heap allocations per line of access logs with ten processors", 2.0, 0.2, "");

const KUBERNETES: Goal = (
    "p5",
    "CPU of container lines with `decode_json_fields` and gzip bodies, over `gzip -dc`",
    2.0,
    1.2,
    "",
);

/// Processors on lines that are made for them.
struct Case {
    goal: Goal,
    kind: Kind,
    processors: &'static str,
    /// In both runs.
    gzip_bodies: bool,
}

/// The rows p1 to p7.
pub fn processors(stage: &Stage) -> Vec<Row> {
    let mut rows: Vec<Row> =
        CASES.iter().flat_map(|case| rows_or_why(&[case.goal], over_none(stage, case))).collect();
    rows.extend(rows_or_why(&[ALLOCATIONS], allocations(stage)));
    rows.extend(rows_or_why(&[KUBERNETES], kubernetes(stage)));
    rows.extend(module_alone(stage));
    rows
}

/// The rows p6 and p7.
pub fn module_alone(stage: &Stage) -> Vec<Row> {
    let mut rows = rows_or_why(&[MODULE], module(stage));
    rows.extend(grok(stage));
    rows
}

fn module(stage: &Stage) -> Result<Vec<Row>> {
    let regexes = std::env::var("SKIDDER_REGEXES").unwrap_or_else(|_| REGEXES.to_owned());
    // The settings of a stage live as long as the program.
    let processors: &'static str = Box::leak(nginx(&regexes)?.into_boxed_str());
    let case = Case { goal: MODULE, kind: Kind::Apache, processors, gzip_bodies: false };
    over_none(stage, &case)
}

/// The processors of the module, with a file of expressions and without databases of places.
fn nginx(regexes: &str) -> Result<String> {
    let (_, list) = NGINX.split_once("\nprocessors:\n").context("the module has processors")?;
    let mut kept = String::from("\n");
    let mut is_kept = true;
    for line in list.lines() {
        match line.trim() {
            "{{ if .regex_file }}" => {}
            line if line.starts_with("{{ if ") => is_kept = false,
            "{{ end }}" => is_kept = true,
            _ if is_kept => {
                let regexes = serde_json::Value::from(regexes).to_string();
                kept.push_str(&line.replace("{{ tojson .regex_file }}", &regexes));
                kept.push('\n');
            }
            _ => {}
        }
    }
    ensure!(!kept.contains("{{"), "the module has an action that this row does not know");
    Ok(kept)
}

fn over_none(stage: &Stage, case: &Case) -> Result<Vec<Row>> {
    let (file, lines) = stage.of_kind(case.kind, stage.lines)?;
    let paths = file.to_string_lossy();
    let (mut none, mut some) = (Vec::new(), Vec::new());
    for run in 0..stage.runs {
        for (processors, costs) in [("", &mut none), (case.processors, &mut some)] {
            let settings =
                Settings { processors, gzip_bodies: case.gzip_bodies, ..Settings::default() };
            let (cost, _) = ship_with(stage, &stage.skidder, &paths, settings, lines)?;
            costs.push(cost.cpu.as_secs_f64());
        }
        measure::note(&format!("{} {}: {none:?} {some:?}", case.goal.0, run + 1));
    }
    let (none, some) = (median(&none)?, median(&some)?);
    let each = some.median / lines as f64 * 1e6;
    let detail = format!(
        "{lines} lines, {each:.2} µs a line; {}; {}",
        spread("s:", some),
        spread("without s:", none)
    );
    Ok(vec![row(&case.goal, some.median / none.median, detail)])
}

fn median(values: &[f64]) -> Result<Summary> {
    summarize(values).context("no run was made")
}

/// Two sizes of file, so that start and end cancel out.
fn allocations(stage: &Stage) -> Result<Vec<Row>> {
    ensure!(
        stage.counting.is_file(),
        "`{}` is not there; build it with `--features count-allocations`",
        stage.counting.display()
    );
    let mut counts = Vec::new();
    for records in [stage.lines / 2, stage.lines] {
        let (file, lines) = stage.of_kind(Kind::Apache, records)?;
        let settings = Settings { processors: TEN_PROCESSORS, ..Settings::default() };
        let paths = file.to_string_lossy();
        let (_, home) = ship_with(stage, &stage.counting, &paths, settings, lines)?;
        counts.push((total_in_log(&home)?, lines));
    }
    let [(less, fewer), (most, more)] = counts[..] else { return Ok(Vec::new()) };
    let each = most.saturating_sub(less) as f64 / (more - fewer).max(1) as f64;
    let detail = format!("{less} for {fewer} lines, {most} for {more}");
    Ok(vec![row(&ALLOCATIONS, each, detail)])
}

/// What runs on a node of Kubernetes: records of containers, JSON in them, and bodies that are compressed.
fn kubernetes(stage: &Stage) -> Result<Vec<Row>> {
    let (file, lines) = stage.of_kind(Kind::ContainerJson, stage.lines)?;
    let packed = stage.packed(&file)?;
    let paths = file.to_string_lossy();
    let (mut gzip, mut shipped) = (Vec::new(), Vec::new());
    for run in 0..stage.runs {
        gzip.push(gunzip(&packed, &stage.work)?.cpu.as_secs_f64());
        let settings = Settings {
            parsers: "[{container: {format: cri}}]",
            processors: JSON,
            gzip_bodies: true,
            ..Settings::default()
        };
        let (cost, _) = ship_with(stage, &stage.skidder, &paths, settings, lines)?;
        shipped.push(cost.cpu.as_secs_f64());
        measure::note(&format!("p5 {}: {gzip:?} {shipped:?}", run + 1));
    }
    let (gzip, shipped) = (median(&gzip)?, median(&shipped)?);
    let each = shipped.median / lines as f64 * 1e6;
    let detail = format!(
        "{lines} lines, {each:.2} µs a line; {}; {}",
        spread("s:", shipped),
        spread("`gzip -dc` s:", gzip)
    );
    Ok(vec![row(&KUBERNETES, shipped.median / gzip.median, detail)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_processors_of_the_module_are_found_with_their_expressions() {
        let list = nginx("/srv/r.yaml").unwrap();
        assert!(list.contains("regex_file: \"/srv/r.yaml\""), "{list}");
        assert!(list.contains("- grok:") && !list.contains("geoip"), "{list}");
    }
}
