//! Profiles of a running program, read by pprof's own library.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

mod common;

use common::Place;
use common::lines::lines;
use common::program::Program;
use std::collections::HashMap;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;

/// The endpoint's address in the log of the program.
fn address(program: &Program) -> String {
    let line = program.await_log("serving metrics over HTTP");
    let line: serde_json::Value = serde_json::from_str(&line).unwrap();
    line["address"].as_str().unwrap().strip_prefix("http://").unwrap().to_owned()
}

/// Status and body.
fn get(address: &str, target: &str) -> (u16, Vec<u8>) {
    let mut stream = TcpStream::connect(address).unwrap();
    let login = "Authorization: Bearer a-long-pass";
    write!(
        stream,
        "GET {target} HTTP/1.1\r\nHost: localhost\r\n{login}\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let end = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n").unwrap();
    let status = String::from_utf8_lossy(&answer[9..12]).parse().unwrap();
    (status, answer[end + 4..].to_vec())
}

/// What pprof finds in a profile.
struct Read {
    sums: HashMap<String, i64>,
    functions: Vec<String>,
    text: String,
}

impl Read {
    fn of(folder: &Path, name: &str, profile: &[u8]) -> Self {
        let file = folder.join(name);
        fs::write(&file, profile).unwrap();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/servers/profiles.sh");
        let said = Command::new(script).arg("start").arg(folder).arg(&file).output().unwrap();
        assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
        let text = String::from_utf8(said.stdout).unwrap();
        let sums = text.lines().filter_map(|line| {
            let mut words = line.strip_prefix("sum ")?.split(' ');
            let (name, _, value) = (words.next()?, words.next()?, words.next()?);
            Some((name.to_owned(), value.parse().ok()?))
        });
        let functions = text.lines().filter_map(|line| line.strip_prefix("function "));
        Self { sums: sums.collect(), functions: functions.map(str::to_owned).collect(), text }
    }

    fn has(&self, function: &str) -> bool {
        self.functions.iter().any(|name| name.contains(function))
    }
}

/// A program that is at work: it reads many lines into an output that throws them away.
fn start(place: &Place, pprof: &str) -> Program {
    place.configure(&format!(
        "filebeat.inputs: [{{type: filestream, id: a, paths: ['{}/*.log'], parsers: [{{ndjson: {{}}}}]}}]\n\
         output.discard: {{}}\nhttp: {{enabled: true, port: 0, auth.token: a-long-pass, pprof: {{{pprof}}}}}\n",
        place.logs().display()
    ));
    let line = b"{\"message\":\"some text of it\",\"a\":{\"b\":[1,2,3]}}\n";
    for file in 0..20 {
        let mut bytes = lines(&file.to_string(), 0..200);
        bytes.extend(line.repeat(100_000));
        place.write(&format!("{file}.log"), &bytes);
    }
    place.start(&[])
}

#[test]
#[ignore = "needs Go; `cargo xtask test` runs it"]
fn profiles_of_cpu_and_heap_have_our_functions_and_plausible_sums() {
    let place = Place::with_output("output.discard: {}\n");
    let program = start(&place, "enabled: true, mem_profile_rate: 65536");
    let address = address(&program);
    let (status, profile) = get(&address, "/debug/pprof/profile?seconds=2");
    assert_eq!(status, 200, "{}", String::from_utf8_lossy(&profile));
    let cpu = Read::of(place.path(), "cpu.pb.gz", &profile);
    let seconds = cpu.sums["cpu"] as f64 / 1e9;
    assert!(cpu.sums["samples"] > 0 && seconds > 0.1, "{}", cpu.text);
    // No more than all cores can give in this time, which a busy machine may stretch.
    assert!(seconds < 64.0, "{}", cpu.text);
    assert!(cpu.has("skidder_"), "{}", cpu.text);
    assert!(cpu.has("skidder_input_file::worker"), "callers are found: {}", cpu.text);

    let (status, profile) = get(&address, "/debug/pprof/heap");
    assert_eq!(status, 200);
    let heap = Read::of(place.path(), "heap.pb.gz", &profile);
    let (there, made) = (heap.sums["inuse_space"], heap.sums["alloc_space"]);
    // Readers have buffers of a quarter of a megabyte each.
    assert!(there > 256 << 10 && there < 1 << 30 && made >= there, "{}", heap.text);
    assert!(heap.has("skidder_read::"), "{}", heap.text);
    program.terminate().succeeded();
}

#[test]
fn profiles_are_not_there_unless_asked_for_and_bad_questions_are_told() {
    let place = Place::with_output("output.discard: {}\n");
    let program = start(&place, "enabled: false");
    assert_eq!(get(&address(&program), "/debug/pprof/heap").0, 404);
    program.terminate().succeeded();
    let program = start(&place, "enabled: true, mem_profile_rate: 0");
    let address = address(&program);
    let (status, page) = get(&address, "/debug/pprof/");
    assert!(status == 200 && String::from_utf8_lossy(&page).contains("profile?seconds=30"));
    for (target, expected, why) in [
        ("profile?seconds=0", 400, "expected 1 to 300"),
        ("profile?seconds=x", 400, "expected a number"),
        ("heap?debug=1", 400, "`debug` is not known here"),
        ("heap", 404, "`http.pprof.mem_profile_rate` is 0"),
        ("goroutine", 404, "there is no profile `goroutine` here"),
    ] {
        let (status, body) = get(&address, &format!("/debug/pprof/{target}"));
        let body = String::from_utf8_lossy(&body).into_owned();
        assert!(status == expected && body.contains(why), "{target}: {status} {body}");
    }
    program.terminate().succeeded();
}
