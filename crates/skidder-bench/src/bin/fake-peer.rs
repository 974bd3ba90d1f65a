//! A log shipper with the behaviour of its name: `honest`, `forgetful` (leaves out a line) or `repeating` (sends one
//! twice). It proves in tests that `skidder-bench peers` detects faults of a peer. It reads as much of a
//! `filebeat.yml` as the benchmark writes, ships all plain files once, and then waits to be ended.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};

/// What does something wrong does it with the line of this number.
const WRONG: usize = 17;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let name = Path::new(&arguments[0]).file_name().ok_or("no name")?.to_string_lossy();
    if arguments.get(1).is_some_and(|argument| argument == "version") {
        return Ok(writeln!(std::io::stdout(), "{name} 0.0.1")?);
    }
    let at = arguments.iter().position(|argument| argument == "-c").ok_or("no `-c`")?;
    let config = std::fs::read_to_string(arguments.get(at + 1).ok_or("no file behind `-c`")?)?;
    let pattern = quoted_behind(&config, "paths: [").ok_or("no `paths`")?;
    let url = quoted_behind(&config, "hosts: [").ok_or("no `hosts`")?;
    let mut lines = lines_of(Path::new(pattern))?;
    match &*name {
        "forgetful" => drop(lines.remove(WRONG)),
        "repeating" => lines.push(lines[WRONG].clone()),
        _ => {}
    }
    send(url.strip_prefix("http://").ok_or("no `http://`")?, &lines)?;
    loop {
        std::thread::park();
    }
}

fn quoted_behind<'a>(text: &'a str, mark: &str) -> Option<&'a str> {
    text.split_once(mark)?.1.split('"').nth(1)
}

/// All lines of the plain files that begin as the pattern does.
fn lines_of(pattern: &Path) -> Outcome<Vec<String>> {
    let name = pattern.file_name().ok_or("no name in the pattern")?.to_string_lossy();
    let prefix = name.split('*').next().unwrap_or_default();
    let folder = pattern.parent().ok_or("no folder in the pattern")?;
    let mut paths: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(prefix) {
            paths.push(entry.path());
        }
    }
    paths.sort();
    let mut lines = Vec::new();
    for path in paths {
        lines.extend(std::fs::read_to_string(path)?.lines().map(str::to_owned));
    }
    Ok(lines)
}

fn send(address: &str, lines: &[String]) -> Outcome<()> {
    let mut body = String::new();
    for line in lines {
        let text = line.replace('\\', "\\\\").replace('"', "\\\"");
        body.push_str("{\"create\":{}}\n{\"message\":\"");
        body.push_str(&text);
        body.push_str("\"}\n");
    }
    let mut stream = TcpStream::connect(address)?;
    write!(
        stream,
        "POST /_bulk HTTP/1.1\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )?;
    stream.read_to_end(&mut Vec::new())?;
    Ok(())
}
