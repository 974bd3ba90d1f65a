//! Pods that come and go on a node: lost and repeated lines, the time to the first line, and what idle ones cost.

use super::{Goal, row, rows_or_why, spread};
use crate::cluster::{Cluster, Kubelet, NODE, Requests, Writer};
use crate::measure::{self, Memory, Running, pause};
use crate::sink::{Behaviour, Sink};
use crate::stage::{Home, Stage};
use crate::statistics::summarize;
use crate::table::Row;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use skidder_os::{Clock, Monotonic, SystemClock};
use skidder_workload::Random;
use std::collections::VecDeque;
use std::fs::OpenOptions;
use std::time::Duration;
use tempfile::TempDir;

const CHURN: [Goal; 2] = [
    (
        "y1",
        "lines lost, 500 pods of which 20 appear and vanish each second for a minute",
        0.0,
        0.0,
        "",
    ),
    ("y1t", "lines that come twice in it", 0.0, 0.0, ""),
];
const KILLED: [Goal; 2] = [
    ("y2", "the same with a kill -9 in between: lines lost", 0.0, 0.0, ""),
    ("y2t", "lines that come twice in it, beyond those that were in flight", 0.0, 0.0, ""),
];
const KNOWN: Goal = ("y3", "memory for each of 5,000 idle pods that are known", 4.0, 2.0, " KB");
const INPUT: Goal = ("y3i", "memory for each of 500 inputs with an idle file", 24.0, 12.0, " KB");
const REQUESTS: Goal = (
    "y4",
    "requests to the API server in 5 idle minutes, 5,000 pods in the cluster, 500 on the node",
    0.0,
    0.0,
    "",
);
const FIRST: Goal =
    ("y5", "from the start of a container to its first event at the sink", 2_000.0, 50.0, " ms");

/// Pods that run at once.
const PODS: u64 = 500;
/// Pods that are known and match nothing.
const KNOWN_PODS: u64 = 5_000;
/// Pods that begin, and end, each second.
const EACH_SECOND: u32 = 20;
const CHURN_SECONDS: u32 = 60;
/// Lines at the start and at the end of a pod. In between it writes one each second.
const FIRST_LINES: u64 = 5;
const LAST_LINES: u64 = 3;
/// A start takes at most so long until its cursor is in the registry: `registry.flush`, a delivery and a commit.
const UNCOMMITTED: Duration = Duration::from_secs(2);
/// How long nothing may come before an experiment is given up: a scan, and `queue.mem.flush.timeout`.
const PATIENCE: Duration = Duration::from_secs(30);
/// After which memory is measured.
const SETTLE: Duration = Duration::from_secs(15);
const IDLE: Duration = Duration::from_mins(5);
const STARTS: u32 = 10;
/// More than `queue.mem.flush.timeout`: each start is the first event for some time.
const BETWEEN_STARTS: Duration = Duration::from_millis(10_200);

/// The rows y1 to y5. The idle minutes pass while the other rows are measured.
pub fn containers(stage: &Stage) -> Vec<Row> {
    std::thread::scope(|scope| {
        let idle = scope.spawn(|| inputs(stage));
        let mut rows = rows_or_why(&CHURN, churn(stage, false));
        rows.extend(rows_or_why(&KILLED, churn(stage, true)));
        rows.extend(rows_or_why(&[KNOWN], known(stage)));
        rows.extend(rows_or_why(&[FIRST], first(stage)));
        let idle = idle.join().unwrap_or_else(|_| Err(anyhow::anyhow!("the experiment panicked")));
        rows.extend(rows_or_why(&[INPUT, REQUESTS], idle));
        rows.sort_by_key(|row| row.letter);
        rows
    })
}

/// The rows of the churn without a kill, to profile it alone.
pub fn churn_alone(stage: &Stage) -> Vec<Row> {
    rows_or_why(&CHURN, churn(stage, false))
}

/// The rows of idle inputs, to profile them alone. Their memory is a note before the idle minutes.
pub fn inputs_alone(stage: &Stage) -> Vec<Row> {
    rows_or_why(&[INPUT, REQUESTS], inputs(stage))
}

/// A cluster, its node, and where the events go.
struct World {
    folder: TempDir,
    cluster: Cluster,
    kubelet: Kubelet,
    sink: Sink,
}

impl World {
    fn new(stage: &Stage, check: bool) -> Result<Self> {
        crate::stage::allow_many_open_files()?;
        let folder = tempfile::Builder::new().prefix("node-").tempdir_in(&stage.work)?;
        let cluster = Cluster::start(folder.path())?;
        let kubelet = Kubelet::new(cluster.clone(), folder.path())?;
        Ok(Self {
            folder,
            cluster,
            kubelet,
            sink: Sink::start(Behaviour { check, ..Behaviour::default() })?,
        })
    }

    fn pods(&mut self, count: u64) -> Result<VecDeque<Writer>> {
        (0..count).map(|_| self.kubelet.start(FIRST_LINES)).collect()
    }

    /// The input of Filebeat's manifest for Kubernetes. `settings` are further ones of the provider, `more` of the file.
    fn home(&self, stage: &Stage, settings: &str, more: &str) -> Result<Home> {
        let folder = self.folder.path();
        let config = Value::from(folder.join("kubeconfig").to_string_lossy());
        let logs = folder.join("containers/*-${data.kubernetes.container.id}.log");
        let logs = Value::from(logs.to_string_lossy());
        let url = Value::from(self.sink.url());
        let input = format!(
            "{{type: filestream, id: 'container-${{data.kubernetes.container.id}}', paths: [{logs}], \
             parsers: [{{container: ~}}], prospector: {{scanner: {{symlinks: true}}}}}}"
        );
        let settings = settings.replace("INPUT", &input);
        stage.home_of(&format!(
            "filebeat.autodiscover.providers:\n  - {{type: kubernetes, node: {NODE}, kube_config: {config}, \
             {settings}}}\noutput.elasticsearch:\n  hosts: [{url}]\n  compression_level: 0\n{more}"
        ))
    }

    /// All lines that were written so far have come, or nothing comes any more.
    fn await_all(&self) -> u64 {
        self.sink.wait_for(self.kubelet.lines(), PATIENCE).documents
    }
}

/// An input for each container.
const HINTS: &str = "hints: {enabled: true, default_config: INPUT}";
/// None for any container.
const NO_MATCH: &str =
    "templates: [{condition.equals: {kubernetes.labels.app: nothing}, config: [INPUT]}]";

/// The program is read before, so that its pages are in memory: the kernel maps those around a page that is used
/// only if they are, which were 2.5 MB more or less in a program with one input.
fn start(stage: &Stage, home: &Home) -> Result<Running> {
    std::fs::read(&stage.skidder)?;
    let log = OpenOptions::new().create(true).append(true).open(home.log())?;
    Running::start(home.command(&stage.skidder).stderr(log))
}

fn churn(stage: &Stage, with_kill: bool) -> Result<Vec<Row>> {
    let mut world = World::new(stage, true)?;
    let mut alive = world.pods(PODS)?;
    let home = world.home(stage, HINTS, "")?;
    let mut program = start(stage, &home)?;
    let came = world.await_all();
    ensure!(came == world.kubelet.lines(), "only {came} lines of the first pods came");
    let clock = SystemClock::new();
    let (mut random, before) = (Random::new(1), program.cpu()?);
    let ticks = EACH_SECOND * CHURN_SECONDS;
    let mut came = VecDeque::new();
    let mut in_flight = 0;
    // The time that the program's CPU is of: since the restart, if there is one.
    let mut measured_from = Duration::ZERO;
    for tick in 0..ticks {
        let due = Duration::from_secs(1) / EACH_SECOND * tick;
        pause(due.saturating_sub(clock.monotonic().0));
        let place = random.below(alive.len() as u32) as usize;
        let ending = alive.swap_remove_back(place).context("pods run")?;
        world.kubelet.end(ending, LAST_LINES)?;
        alive.push_back(world.kubelet.start(FIRST_LINES)?);
        for writer in
            alive.iter_mut().skip((tick % EACH_SECOND) as usize).step_by(EACH_SECOND as usize)
        {
            world.kubelet.write(writer, 1)?;
        }
        world.kubelet.clean()?;
        remember(&mut came, &world.sink, clock.monotonic());
        if with_kill && tick == ticks / 2 {
            program.kill()?;
            let old = came.front().map_or(0, |(_, documents)| *documents);
            in_flight = world.sink.count().documents - old;
            program = start(stage, &home)?;
            measured_from = clock.monotonic().0;
        }
    }
    let took = clock.monotonic().0.saturating_sub(measured_from);
    let cpu = program.cpu()?.saturating_sub(if with_kill { Duration::ZERO } else { before });
    let written = world.kubelet.lines();
    world.await_all();
    // What comes twice may come late.
    pause(SETTLE);
    let memory = program.end(PATIENCE)?.memory_peak_bytes as f64 / 1e6;
    let count = world.sink.count();
    let (lost, twice) = (count.missing(written), count.repeated);
    measure::note(&format!(
        "churn, kill {with_kill}: {written} written, {lost} lost, {twice} twice"
    ));
    let cost = format!(
        "{written} lines; CPU {:.1} s of {:.0} s{}; peak {memory:.0} MB",
        cpu.as_secs_f64(),
        took.as_secs_f64(),
        if with_kill { " after the restart" } else { "" }
    );
    if with_kill {
        let beyond = twice.saturating_sub(in_flight);
        let detail = format!("{twice} twice, {in_flight} in flight");
        return Ok(vec![
            row(&KILLED[0], lost as f64, cost),
            row(&KILLED[1], beyond as f64, detail),
        ]);
    }
    Ok(vec![row(&CHURN[0], lost as f64, cost), row(&CHURN[1], twice as f64, String::new())])
}

/// Keeps how many events had come in the time in which a cursor may be uncommitted.
fn remember(came: &mut VecDeque<(Monotonic, u64)>, sink: &Sink, now: Monotonic) {
    came.push_back((now, sink.count().documents));
    while came.front().is_some_and(|(then, _)| now.since(*then) > UNCOMMITTED) {
        came.pop_front();
    }
}

/// Resident bytes of a program whose pods match nothing.
fn known(stage: &Stage) -> Result<Vec<Row>> {
    let mut memory = Vec::new();
    for pods in [0, KNOWN_PODS] {
        let mut world = World::new(stage, false)?;
        (0..pods).for_each(|_| world.kubelet.silent());
        let home = world.home(stage, NO_MATCH, "")?;
        let program = start(stage, &home)?;
        pause(SETTLE);
        memory.push(program.resident()?);
        ensure!(world.cluster.requests().watches > 0, "the program watches no pods");
        program.end(PATIENCE)?;
    }
    let (each, detail) = each_of(memory[0], memory[1], KNOWN_PODS, "none");
    Ok(vec![row(&KNOWN, each, detail)])
}

/// Kilobytes that each of `count` takes, and what that is of.
fn each_of(few: Memory, all: Memory, count: u64, few_are: &str) -> (f64, String) {
    let each = |all: u64, few: u64| all.saturating_sub(few) as f64 / count as f64 / 1e3;
    let detail = format!(
        "{:.1} MB with {few_are}, {:.1} MB with all; of it no page of a file: {:.1} and {:.1}, that is {:.1} KB each",
        few.all as f64 / 1e6,
        all.all as f64 / 1e6,
        few.own as f64 / 1e6,
        all.own as f64 / 1e6,
        each(all.own, few.own)
    );
    (each(all.all, few.all), detail)
}

/// What 500 inputs take, and how often a program that has nothing to do talks to the server.
fn inputs(stage: &Stage) -> Result<Vec<Row>> {
    let mut world = World::new(stage, false)?;
    let kept = world.pods(1)?;
    let home = world.home(stage, HINTS, "")?;
    let program = start(stage, &home)?;
    world.await_all();
    pause(SETTLE);
    let one = program.resident()?;
    program.end(PATIENCE)?;
    let more = world.pods(PODS)?;
    (PODS..KNOWN_PODS).for_each(|_| world.kubelet.elsewhere());
    let home = world.home(stage, HINTS, "")?;
    world.sink.reset();
    let program = start(stage, &home)?;
    let came = world.await_all();
    ensure!(came == world.kubelet.lines(), "only {came} lines came");
    pause(SETTLE);
    let (all, before, cpu) = (program.resident()?, world.cluster.requests(), program.cpu()?);
    let (each, memory) = each_of(one, all, PODS, "one");
    measure::note(&format!("each of {PODS} inputs takes {each:.1} KB: {memory}"));
    pause(IDLE);
    let after = world.cluster.requests();
    let percent = program.cpu()?.saturating_sub(cpu).as_secs_f64() / IDLE.as_secs_f64() * 100.0;
    drop((program, kept, more));
    let memory = format!("{memory}; idle they take {percent:.2} % of a core");
    let requests = |count: Requests| count.reads + count.watches;
    let detail = format!(
        "at the start {} reads, {} watches; each watch lasts an hour and has a bookmark a minute, so an hour has one \
         request for each",
        before.reads, before.watches
    );
    let rows = [
        row(&INPUT, each, memory),
        row(&REQUESTS, (requests(after) - requests(before)) as f64, detail),
    ];
    Ok(rows.into())
}

/// With 500 pods that are there already, at the default settings.
fn first(stage: &Stage) -> Result<Vec<Row>> {
    let mut world = World::new(stage, false)?;
    let mut alive = world.pods(PODS)?;
    let home = world.home(stage, HINTS, "")?;
    let program = start(stage, &home)?;
    let clock = SystemClock::new();
    let mut times = Vec::new();
    for _ in 0..STARTS {
        let before = world.await_all();
        ensure!(before == world.kubelet.lines(), "only {before} lines came");
        pause(BETWEEN_STARTS);
        let began = clock.monotonic();
        alive.push_back(world.kubelet.start(FIRST_LINES)?);
        ensure!(
            world.sink.wait_for(before + 1, PATIENCE).documents > before,
            "no line of a new pod came"
        );
        times.push(clock.monotonic().since(began).as_secs_f64() * 1e3);
    }
    program.end(PATIENCE)?;
    let summary = summarize(&times).context("no pod was started")?;
    Ok(vec![row(&FIRST, summary.median, spread("ms:", summary))])
}
