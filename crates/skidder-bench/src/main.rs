//! `skidder-bench`: generate a workload, count in a sink, measure the built program.

use anyhow::{Context, Result, ensure};
use clap::{Parser, Subcommand};
use skidder_bench::drain::drain;
use skidder_bench::peers;
use skidder_bench::rows;
use skidder_bench::sink::{Behaviour, Sink};
use skidder_bench::stage::Stage;
use skidder_bench::table::{self, Row};
use skidder_os::{Clock, SystemClock};
use skidder_workload::{self as workload, Kind, Plan};
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

/// Lines that are compressed to measure the ratio of a plain file.
const RATIO_LINES_MAX: u64 = 50_000;

/// Lines of the main workload, if none are said.
const LINES: u64 = 2_000_000;

/// The same for `page`: in runs of less than some seconds the page sends too few requests to measure their cost.
const PAGE_LINES: u64 = 12_000_000;

/// The end-to-end benchmark of skidder.
#[derive(Debug, Parser)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Write numbered log lines: a third Apache combined, a third JSON, a third Kubernetes CRI.
    Generate(Generate),
    /// Look like Elasticsearch on the loopback interface and count what comes.
    Sink(SinkArguments),
    /// All rows of the table.
    Run(RunArguments),
    /// CPU against `gzip -dc`, plain and compressed, and the memory of one file.
    Cpu(RunArguments),
    /// Heap allocations per line.
    Allocations(RunArguments),
    /// Memory with 1,000 compressed files at once.
    Memory(RunArguments),
    /// Resuming inside a large compressed file after a kill.
    Resume(RunArguments),
    /// Lost and repeated lines in a burst of rotations.
    Rotations(RunArguments),
    /// 100,000 files: the start, and CPU and memory while they are idle.
    Idle(RunArguments),
    /// Time from a write to its event at the sink.
    Latency(RunArguments),
    /// CPU of parsers, over the same lines without them.
    Parsers(RunArguments),
    /// CPU and allocations of processors, over the same lines without them.
    Processors(RunArguments),
    /// Of these, our own module nginx and `grok` alone.
    #[command(hide = true)]
    Module(RunArguments),
    /// CPU of compressed bodies over uncompressed ones, and their size against Go's.
    Bodies(RunArguments),
    /// Thousands of files, compressed over plain.
    Many(RunArguments),
    /// Sizes of requests that find themselves, over the best of a grid.
    Tuned(RunArguments),
    /// CPU of Logstash, Redis and Kafka outputs, over encoding alone.
    Encoded(RunArguments),
    /// Bytes allocated for the answer to a bulk request.
    Answers(RunArguments),
    /// Two outputs of which one is stuck: what the other one takes, over what it takes alone.
    Outputs(RunArguments),
    /// CPU of the page while nobody looks, and while somebody watches events.
    Page(RunArguments),
    /// CPU of compressed files over plain ones: every codec, lines of all lengths, two queues.
    Codecs(RunArguments),
    /// CPU, loss and memory of inputs from the network.
    Network(RunArguments),
    /// Of these, requests of HTTP alone.
    #[command(hide = true)]
    Http(RunArguments),
    /// Of these, the journal and Kafka alone.
    #[command(hide = true)]
    Sources(RunArguments),
    /// Of these, the memory of idle inputs alone.
    #[command(hide = true)]
    IdleInputs(RunArguments),
    /// Of these, Redis and MQTT alone.
    #[command(hide = true)]
    Brokers(RunArguments),
    /// Of these, NetFlow alone, beside the collectors that are in `PATH`.
    #[command(hide = true)]
    Flows(RunArguments),
    /// Objects of a store: CPU over files from the disk, memory of many at once, kills.
    Clouds(RunArguments),
    /// Of these, the queue with small objects alone.
    #[command(hide = true)]
    Queue(RunArguments),
    /// Pods that come and go: loss, memory, requests to the API server, time to the first line.
    Containers(RunArguments),
    /// Of these, pods that come and go alone, to profile them.
    #[command(hide = true)]
    Churn(RunArguments),
    /// Of these, 500 idle inputs alone. Their memory is printed before the idle minutes.
    #[command(hide = true)]
    Inputs(RunArguments),
    /// CPU of a log with the metadata of its pod from a real API server.
    Kubernetes(RunArguments),
    /// Receive datagrams into a buffer until killed: what the CPU of `udp` is compared with.
    #[command(hide = true)]
    Drain {
        /// Port on 127.0.0.1.
        port: u16,
    },
    /// Race log shippers over the same work, and judge what they lose when something goes wrong.
    Peers(Box<peers::Arguments>),
}

#[derive(Debug, clap::Args)]
struct Generate {
    /// Number of lines.
    #[arg(long, default_value_t = 1_000_000)]
    lines: u64,
    /// The same seed gives the same bytes.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of the first line.
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// Compress as `gzip -6` does.
    #[arg(long)]
    gzip: bool,
    /// Members of the gzip file.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..), requires = "gzip")]
    members: u64,
    /// The file to write.
    out: PathBuf,
}

#[derive(Debug, clap::Args)]
struct SinkArguments {
    /// Port on 127.0.0.1.
    #[arg(long, default_value_t = 9200)]
    port: u16,
    /// Milliseconds before each answer to a bulk request.
    #[arg(long, default_value_t = 0)]
    delay: u64,
    /// Read the numbers of the lines and report missing and repeated ones.
    #[arg(long)]
    check: bool,
    /// Answer 429 to bulk requests beyond so many at once.
    #[arg(long)]
    limit: Option<usize>,
    /// Stop answering once this many documents came, until `POST /__release`.
    #[arg(long)]
    stall_after: Option<u64>,
}

#[derive(Debug, clap::Args)]
struct RunArguments {
    /// Runs of which the median is taken.
    #[arg(long, default_value_t = 5)]
    runs: u32,
    /// Lines of the main workload: 2,000,000, and of `page` 12,000,000, so that its runs are seconds long.
    #[arg(long)]
    lines: Option<u64>,
    /// Rotations of the burst, about 16 a second.
    #[arg(long, default_value_t = 1_000)]
    rotations: u32,
    /// Also write the table to this file.
    #[arg(long)]
    table: Option<PathBuf>,
    /// The program to measure, a release build.
    #[arg(long, default_value = "target/release/skidder")]
    skidder: PathBuf,
    /// The program built with `--features count-allocations`.
    #[arg(long, default_value = "target/bench/skidder-counting")]
    counting: PathBuf,
    /// Folder for workloads, which are kept for the next run (about 2 GB), but for 11 GB of `tuned`.
    #[arg(long, default_value = "target/bench")]
    work: PathBuf,
    /// Elasticsearch without encryption, `HOST:PORT`, for the row that needs one. `tests/servers/elasticsearch.sh start
    /// DIR PORT` starts one, `stop DIR` stops it.
    #[arg(long)]
    elasticsearch: Option<String>,
    /// Kafka without encryption, `HOST:PORT`, for the row that needs one.
    #[arg(long)]
    kafka: Option<String>,
    /// Filebeat with the inputs of clouds, for the row that runs beside it.
    #[arg(long)]
    filebeat: Option<PathBuf>,
    /// Folder of an API server of Kubernetes, for the row that needs one: DIR of `tests/servers/kube-apiserver.sh start
    /// DIR 0`.
    #[arg(long)]
    kube_apiserver: Option<PathBuf>,
}

fn main() -> Result<()> {
    match Arguments::parse().verb {
        Verb::Generate(arguments) => generate(&arguments),
        Verb::Sink(arguments) => serve(&arguments),
        Verb::Run(arguments) => measure(&arguments, rows::all),
        Verb::Cpu(arguments) => measure(&arguments, rows::cpu),
        Verb::Allocations(arguments) => measure(&arguments, rows::allocations),
        Verb::Memory(arguments) => measure(&arguments, rows::memory),
        Verb::Resume(arguments) => measure(&arguments, rows::resume),
        Verb::Rotations(arguments) => measure(&arguments, rows::rotations),
        Verb::Idle(arguments) => measure(&arguments, rows::idle),
        Verb::Latency(arguments) => measure(&arguments, rows::latency),
        Verb::Parsers(arguments) => measure(&arguments, rows::parsers),
        Verb::Processors(arguments) => measure(&arguments, rows::processors),
        Verb::Module(arguments) => measure(&arguments, rows::module_alone),
        Verb::Bodies(arguments) => measure(&arguments, rows::bodies),
        Verb::Many(arguments) => measure(&arguments, rows::many),
        Verb::Tuned(arguments) => measure(&arguments, rows::tuned),
        Verb::Encoded(arguments) => measure(&arguments, rows::encoded),
        Verb::Answers(arguments) => measure(&arguments, rows::answers),
        Verb::Outputs(arguments) => measure(&arguments, rows::outputs),
        Verb::Page(arguments) => measure_lines(&arguments, rows::page, PAGE_LINES),
        Verb::Codecs(arguments) => measure(&arguments, rows::codecs),
        Verb::Network(arguments) => measure(&arguments, rows::network),
        Verb::Http(arguments) => measure(&arguments, rows::requests_of_http),
        Verb::Sources(arguments) => measure(&arguments, rows::sources),
        Verb::IdleInputs(arguments) => measure(&arguments, rows::idle_inputs),
        Verb::Brokers(arguments) => measure(&arguments, rows::brokers),
        Verb::Flows(arguments) => measure(&arguments, rows::flows_alone),
        Verb::Clouds(arguments) => measure(&arguments, rows::clouds),
        Verb::Queue(arguments) => measure(&arguments, rows::queue_alone),
        Verb::Containers(arguments) => measure(&arguments, rows::containers),
        Verb::Churn(arguments) => measure(&arguments, rows::churn_alone),
        Verb::Inputs(arguments) => measure(&arguments, rows::inputs_alone),
        Verb::Kubernetes(arguments) => measure(&arguments, rows::kubernetes),
        Verb::Drain { port } => drain(port),
        Verb::Peers(arguments) => {
            let (tables, verdict) = peers::run(&arguments)?;
            say(&tables)?;
            verdict
        }
    }
}

/// Runs an experiment and prints its rows. A goal that is not reached is no error of the benchmark.
fn measure(arguments: &RunArguments, experiment: fn(&Stage) -> Vec<Row>) -> Result<()> {
    measure_lines(arguments, experiment, LINES)
}

/// The same, with another number of lines if none is said.
fn measure_lines(
    arguments: &RunArguments,
    experiment: fn(&Stage) -> Vec<Row>,
    lines: u64,
) -> Result<()> {
    let absolute = |path: &PathBuf| {
        std::path::absolute(path).with_context(|| format!("no such place: `{}`", path.display()))
    };
    let stage = Stage {
        skidder: absolute(&arguments.skidder)?,
        counting: absolute(&arguments.counting)?,
        work: absolute(&arguments.work)?,
        elasticsearch: arguments.elasticsearch.clone(),
        kafka: arguments.kafka.clone(),
        filebeat: arguments.filebeat.as_ref().map(absolute).transpose()?,
        kube_apiserver: arguments.kube_apiserver.as_ref().map(absolute).transpose()?,
        runs: arguments.runs,
        lines: arguments.lines.unwrap_or(lines),
        rotations: arguments.rotations,
    };
    stage.prepare()?;
    let rows = experiment(&stage);
    let text = table::render(&rows, stage.lines, stage.runs)?;
    if let Some(path) = &arguments.table {
        std::fs::write(path, &text)
            .with_context(|| format!("cannot write `{}`", path.display()))?;
    }
    say(&text)?;
    ensure!(rows.iter().all(|row| row.measured.is_ok()), "some rows could not be measured");
    Ok(())
}

fn generate(arguments: &Generate) -> Result<()> {
    let plan = Plan {
        kind: Kind::Mixed,
        lines: arguments.lines,
        seed: arguments.seed,
        first: arguments.first,
        members: if arguments.gzip { arguments.members } else { 0 },
    };
    ensure!(plan.lines > 0, "`--lines` must be at least 1");
    let clock = SystemClock::new();
    let generated = workload::generate(&plan, &arguments.out)?;
    let took = clock.monotonic().0;
    let ratio = if arguments.gzip {
        generated.text_bytes as f64 / generated.file_bytes as f64
    } else {
        workload::sample_ratio(plan.seed, plan.first, plan.lines.min(RATIO_LINES_MAX))?
    };
    let mean = generated.text_bytes as f64 / plan.lines as f64;
    let speed = generated.text_bytes as f64 / 1e6 / took.as_secs_f64();
    say(&format!(
        "{} lines, {} bytes of text, {} bytes written to {}\n\
         {mean:.1} bytes a line, gzip -6 shrinks it {ratio:.2} times, {speed:.0} MB/s",
        plan.lines,
        generated.text_bytes,
        generated.file_bytes,
        arguments.out.display()
    ))
}

fn serve(arguments: &SinkArguments) -> Result<()> {
    let sink = Sink::start(Behaviour {
        port: arguments.port,
        delay: Duration::from_millis(arguments.delay),
        check: arguments.check,
        keep_bodies: 0,
        stall_after: arguments.stall_after,
        limit: arguments.limit,
        trouble: None,
    })?;
    say(&format!("counting on {}; the counts are at {}/__count", sink.url(), sink.url()))?;
    loop {
        std::thread::park();
    }
}

fn say(text: &str) -> Result<()> {
    writeln!(std::io::stdout(), "{text}").context("cannot write to the terminal")
}
