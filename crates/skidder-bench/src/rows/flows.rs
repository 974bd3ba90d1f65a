//! What a flow of NetFlow costs: ours, and the collectors of others that are there.

use super::encoded::delivered;
use super::{Goal, row, rows_or_why, spread};
use crate::measure::{self, Running, pause};
use crate::stage::Stage;
use crate::statistics::summarize;
use crate::table::Row;
use anyhow::{Context, Result, ensure};
use skidder_os::{Clock, SystemClock};
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const GOFLOW2: Goal = (
    "x14",
    "CPU of a flow of NetFlow 9 as an event to `output.discard`, over `goflow2` that writes Protocol Buffers to `/dev/null`",
    1.0,
    0.5,
    "",
);

const NFCAPD: Goal = (
    "x15",
    "the same over `nfcapd` (nfdump), which copies numbers of a flow to a binary file and makes no event",
    1.0,
    0.5,
    "",
);

const NFDUMP: Goal = (
    "x15j",
    "CPU of a flow of NetFlow 9 as JSON to `/dev/null`, over `nfcapd` and `nfdump -o json`",
    1.0,
    0.5,
    "",
);

/// Flows of a packet, as many as fit into one of Ethernet.
const FLOWS_OF_PACKET: u32 = 25;

/// Packets a second: so few that no receive buffer is too small on a busy machine.
const RATE: u32 = 2_000;

/// Packets of a run.
const PACKETS: u32 = 20_000;

/// Packets before it is measured: connections, threads and caches are there then.
const FIRST: u32 = 500;

/// Packets that differ; more of them repeat these, with other numbers.
const DIFFERENT: u32 = 256;

/// How long nothing may happen before a run is given up.
const PATIENCE: Duration = Duration::from_secs(20);

/// Where `nfcapd` writes.
const FILES: &str = "flows";

const LOOK: Duration = Duration::from_millis(20);

/// Part of the flows that must have come; what is lost costs nothing and is not counted.
const CAME_MIN: f64 = 0.95;

/// Fields of a flow and their lengths: those of version 5, which most routers send.
const FIELDS: [(u16, u16); 18] = [
    (8, 4),
    (12, 4),
    (15, 4),
    (10, 4),
    (14, 4),
    (2, 4),
    (1, 4),
    (22, 4),
    (21, 4),
    (7, 2),
    (11, 2),
    (6, 1),
    (4, 1),
    (5, 1),
    (16, 4),
    (17, 4),
    (9, 1),
    (13, 1),
];

/// Milliseconds that the exporter has been running.
const UPTIME: u32 = 600_000;

/// A packet with the template and flows, without its sequence number.
fn packet(number: u32) -> Vec<u8> {
    let mut template = [256_u16.to_be_bytes(), (FIELDS.len() as u16).to_be_bytes()].concat();
    for (id, len) in FIELDS {
        template.extend([id.to_be_bytes(), len.to_be_bytes()].concat());
    }
    let mut flows = Vec::new();
    for at in 0..FLOWS_OF_PACKET {
        let flow = number * FLOWS_OF_PACKET + at;
        let is_tcp = !flow.is_multiple_of(3);
        // Clients of a network, servers outside.
        let numbers: [u32; 9] = [
            0x0a00_0000 | (flow.wrapping_mul(2_654_435_761) >> 14),
            0xcb00_7100 | (flow % 200),
            0xc000_02fe,
            3,
            4,
            1 + flow % 50,
            64 + flow * 37 % 60_000,
            UPTIME - 9_000 - flow % 1_000,
            UPTIME - flow % 1_000,
        ];
        flows.extend(numbers.map(u32::to_be_bytes).concat());
        let port = 32_768 + (flow.wrapping_mul(40_503) % 28_000) as u16;
        flows.extend(
            [port.to_be_bytes(), [443_u16, 53][usize::from(!is_tcp)].to_be_bytes()].concat(),
        );
        flows.extend([if is_tcp { 0x1b } else { 0 }, if is_tcp { 6 } else { 17 }, 0]);
        flows.extend([64_496_u32.to_be_bytes(), (64_500 + flow % 90).to_be_bytes()].concat());
        flows.extend([24, 16]);
    }
    flows.resize(flows.len().next_multiple_of(4), 0);
    let mut packet = [9_u16.to_be_bytes(), (1 + FLOWS_OF_PACKET as u16).to_be_bytes()].concat();
    let now = SystemClock::new().wall().seconds() as u32;
    packet.extend([UPTIME, now, 0, 7].map(u32::to_be_bytes).concat());
    for (id, body) in [(0_u16, template), (256, flows)] {
        packet.extend([id.to_be_bytes(), (4 + body.len() as u16).to_be_bytes()].concat());
        packet.extend(body);
    }
    packet
}

/// Sends packets with the numbers from `first` on, at a steady rate.
fn send(port: u16, packets: &mut [Vec<u8>], first: u32, count: u32) -> Result<()> {
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    socket.connect(("127.0.0.1", port))?;
    let clock = SystemClock::new();
    for at in 0..count {
        let number = first + at;
        let packet = &mut packets[(number % DIFFERENT) as usize];
        packet[12..16].copy_from_slice(&number.to_be_bytes());
        let due = f64::from(at) / f64::from(RATE);
        while clock.monotonic().0.as_secs_f64() < due {
            pause(Duration::from_micros(300));
        }
        socket.send(packet)?;
    }
    Ok(())
}

/// A program that receives flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Collector {
    Ours,
    /// Ours, with events as JSON.
    OursAsJson,
    /// <https://github.com/netsampler/goflow2>: decodes a flow to its own form, and writes that as Protocol Buffers.
    Goflow2,
    /// Of nfdump: decodes a flow to its own form, and writes that as its own binary.
    Nfcapd,
    /// `nfcapd`, and `nfdump`, which makes JSON of its binary.
    Nfdump,
}

impl Collector {
    fn name(self) -> &'static str {
        match self {
            Self::Ours | Self::OursAsJson => "skidder",
            Self::Goflow2 => "goflow2",
            Self::Nfcapd => "nfcapd",
            Self::Nfdump => "nfdump",
        }
    }

    /// What its log has when it receives.
    fn ready(self) -> &'static str {
        match self {
            Self::Ours | Self::OursAsJson => "receives datagrams",
            Self::Goflow2 => "starting collection",
            Self::Nfcapd | Self::Nfdump => "Startup nfcapd",
        }
    }

    /// The output of ours.
    fn output(self) -> &'static str {
        match self {
            Self::OursAsJson => "output.console: {}",
            _ => "output.discard: {}",
        }
    }

    fn is_ours(self) -> bool {
        matches!(self, Self::Ours | Self::OursAsJson)
    }

    fn command(self, stage: &Stage, home: &crate::stage::Home, port: u16, other: u16) -> Command {
        if self.is_ours() {
            return home.command(&stage.skidder);
        }
        let name = if self == Self::Nfdump { "nfcapd" } else { self.name() };
        let mut command = Command::new(name);
        let folder = home.log().with_file_name(FILES);
        match self {
            Self::Goflow2 => command
                .args(["-listen", &format!("netflow://127.0.0.1:{port}"), "-format", "bin"])
                .args(["-transport", "file", "-transport.file", "/dev/null"])
                .args(["-addr", &format!("127.0.0.1:{other}")]),
            _ => command
                .args(["-b", "127.0.0.1", "-p", &port.to_string(), "-t", "3600", "-B", "8388608"])
                .arg("-w")
                .arg(folder),
        };
        command
    }

    /// How many flows came, once it has ended, or before.
    fn came(self, log: &Path, other: u16) -> Result<u64> {
        let said = std::fs::read_to_string(log)?;
        let flows = match self {
            Self::Ours | Self::OursAsJson => delivered(&said),
            Self::Goflow2 => goflow2_flows(&get(other)?),
            Self::Nfcapd | Self::Nfdump => nfcapd_flows(&said),
        };
        flows.with_context(|| format!("`{}` does not say how many flows came", self.name()))
    }

    /// Microseconds of CPU for a flow.
    fn cost(self, stage: &Stage, packets: &mut [Vec<u8>]) -> Result<f64> {
        let port = UdpSocket::bind("127.0.0.1:0")?.local_addr()?.port();
        let other = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let home = stage.home_of(&format!(
            "filebeat.inputs: [{{type: netflow, id: bench, host: '127.0.0.1:{port}'}}]\n{}\n",
            self.output()
        ))?;
        let log = File::create(home.log())?;
        std::fs::create_dir(home.log().with_file_name(FILES))?;
        let mut command = self.command(stage, &home, port, other);
        let stdout = match self {
            Self::OursAsJson => File::create("/dev/null")?,
            _ => log.try_clone()?,
        };
        let program = Running::start(command.stdout(stdout).stderr(log))?;
        let clock = SystemClock::new();
        while !std::fs::read_to_string(home.log())?.contains(self.ready()) {
            ensure!(clock.monotonic().0 < PATIENCE, "`{}` does not receive", self.name());
            pause(LOOK);
        }
        send(port, packets, 0, FIRST)?;
        pause(Duration::from_secs(1));
        let before = program.cpu()?;
        send(port, packets, FIRST, PACKETS)?;
        pause(Duration::from_secs(2));
        let cpu = program.cpu()?.saturating_sub(before);
        let mut came = None;
        if self == Self::Goflow2 {
            came = Some(self.came(&home.log(), other)?);
        }
        program.end(PATIENCE)?;
        let came = came.map_or_else(|| self.came(&home.log(), other), Ok)?;
        let sent = u64::from((FIRST + PACKETS) * FLOWS_OF_PACKET);
        // The receive buffer of goflow2 is that of the system, which a busy machine fills.
        ensure!(
            came <= sent && came as f64 >= sent as f64 * CAME_MIN,
            "{came} of {sent} flows came to `{}`",
            self.name()
        );
        let lost = (sent - came) as f64;
        let cost = cpu.as_secs_f64() / (f64::from(PACKETS * FLOWS_OF_PACKET) - lost) * 1e6;
        if self == Self::Nfdump {
            return Ok(cost + nfdump_cost(&home.log().with_file_name(FILES), came)?);
        }
        Ok(cost)
    }
}

/// Microseconds of CPU for a flow that `nfdump` makes JSON of, from the files of `nfcapd` in a folder.
fn nfdump_cost(folder: &Path, flows: u64) -> Result<f64> {
    let mut command = Command::new("nfdump");
    command.arg("-R").arg(folder).args(["-o", "json"]).stdout(File::create("/dev/null")?);
    let cost = measure::run(&mut command, &folder.with_extension("stderr"))?;
    Ok(cost.cpu.as_secs_f64() / flows as f64 * 1e6)
}

/// The answer of a port to a request for `/metrics`.
fn get(port: u16) -> Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

fn goflow2_flows(metrics: &str) -> Option<u64> {
    let mut lines = metrics.lines().filter(|line| {
        line.starts_with("goflow2_flow_process_nf_flowset_records_total")
            && line.contains("\"DataFlowSet\"")
    });
    let number: f64 = lines.next()?.rsplit(' ').next()?.parse().ok()?;
    Some(number as u64)
}

/// The last of its lines `Ident: 'none' Flows: 25000, Packets: …`.
fn nfcapd_flows(said: &str) -> Option<u64> {
    let (_, rest) = said.rsplit_once("Flows: ")?;
    rest.split(',').next()?.trim().parse().ok()
}

/// Whether a program is in one of the folders of `PATH`.
fn is_there(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(name).is_file())
}

/// The rows x14, x15 and x15j.
pub fn flows_alone(stage: &Stage) -> Vec<Row> {
    let goals = [
        (GOFLOW2, Collector::Goflow2, Collector::Ours),
        (NFCAPD, Collector::Nfcapd, Collector::Ours),
        (NFDUMP, Collector::Nfdump, Collector::OursAsJson),
    ];
    goals
        .into_iter()
        .flat_map(|(goal, theirs, ours)| rows_or_why(&[goal], flows(stage, &goal, theirs, ours)))
        .collect()
}

fn flows(stage: &Stage, goal: &Goal, collector: Collector, own: Collector) -> Result<Vec<Row>> {
    let name = collector.name();
    ensure!(
        is_there(name),
        "`{name}` is not in `PATH`: install the package nfdump, or `go install \
         github.com/netsampler/goflow2/v2/cmd/goflow2@latest`"
    );
    let mut packets: Vec<Vec<u8>> = (0..DIFFERENT).map(packet).collect();
    let (mut theirs, mut ours) = (Vec::new(), Vec::new());
    for run in 0..stage.runs {
        theirs.push(collector.cost(stage, &mut packets)?);
        ours.push(own.cost(stage, &mut packets)?);
        measure::note(&format!("flows {}: {ours:?} over {name} {theirs:?} µs", run + 1));
    }
    let ours = summarize(&ours).context("no run was made")?;
    let theirs = summarize(&theirs).context("no run was made")?;
    let detail = format!(
        "{} flows, {:.0} a second on one core over {:.0}; {}; {}",
        PACKETS * FLOWS_OF_PACKET,
        1e6 / ours.median,
        1e6 / theirs.median,
        spread("µs:", ours),
        spread(&format!("{name} µs:"), theirs)
    );
    Ok(vec![row(goal, ours.median / theirs.median, detail)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_is_a_whole_one_of_version_9() {
        let packet = packet(3);
        let number = |at: usize| u16::from_be_bytes([packet[at], packet[at + 1]]);
        assert_eq!((number(0), number(2), number(20)), (9, 26, 0));
        let data = 20 + usize::from(number(22));
        assert_eq!((number(data), data + usize::from(number(data + 2))), (256, packet.len()));
        let of_flow: u16 = FIELDS.iter().map(|(_, len)| len).sum();
        let padding = usize::from(number(data + 2)) - 4 - usize::from(of_flow) * 25;
        assert!(padding < 4 && packet.len() < 1472, "{padding} {}", packet.len());
    }

    #[test]
    fn collectors_say_how_many_flows_came() {
        let metrics = "x_total 1\ngoflow2_flow_process_nf_flowset_records_total{type=\"DataFlowSet\",version=\"9\"} 2.5e+04\n";
        assert_eq!(goflow2_flows(metrics), Some(25_000));
        assert_eq!(goflow2_flows(""), None);
        let said =
            "Ident: 'none' Flows: 7, Packets: 1\nIdent: 'none' Flows: 25000, Packets: 5\nbye";
        assert_eq!(nfcapd_flows(said), Some(25_000));
    }
}
