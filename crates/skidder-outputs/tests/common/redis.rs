//! A Redis with a script for each request of events.

use super::number;
use skidder_contract::{listen, serve_all};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio_rustls::TlsAcceptor;

/// What to do with one command that brings events.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Act {
    /// Take it.
    Ok,
    /// Answer with this error and take nothing.
    Error(&'static str),
    /// Answer with this and take nothing.
    Reply(&'static str),
    /// If it has more values than this, report that one is too long and close the connection. Stays in the script.
    AtMost(usize),
    /// If it has this line, report that it is too long and close the connection. Stays in the script.
    NeverLine(usize),
    /// Close the connection without an answer.
    Close,
    /// Take it, and close the connection without an answer.
    TakeAndClose,
    /// Take it, answer, and close.
    OkAndClose,
    /// Answer in another language.
    Nonsense,
    /// Answer a part of a line and close.
    Half,
    /// Send nothing until the other side gives up.
    Silence,
}

#[derive(Default)]
pub(crate) struct State {
    script: VecDeque<Act>,
    /// How often each line was taken.
    pub(crate) taken: BTreeMap<usize, usize>,
    /// Lines of each list or channel, in order.
    pub(crate) lists: BTreeMap<String, Vec<usize>>,
    /// Names of the commands that brought events, with the number of their values.
    pub(crate) commands: Vec<(String, usize)>,
    /// Other commands, joined by spaces.
    pub(crate) other_commands: Vec<String>,
    pub(crate) connections: usize,
    /// Connections that were closed, which the other side has noticed.
    pub(crate) closed: usize,
    /// The password that it requires.
    password: Option<String>,
}

#[derive(Clone)]
pub(crate) struct FakeRedis {
    pub(crate) address: String,
    pub(crate) state: Arc<Mutex<State>>,
}

impl FakeRedis {
    pub(crate) async fn start(script: impl IntoIterator<Item = Act>) -> Self {
        Self::start_with(script, None, None).await
    }

    pub(crate) async fn start_with(
        script: impl IntoIterator<Item = Act>,
        password: Option<&str>,
        tls: Option<TlsAcceptor>,
    ) -> Self {
        let (listener, address) = listen().await;
        let state = State {
            script: script.into_iter().collect(),
            password: password.map(str::to_owned),
            ..State::default()
        };
        let server = Self { address: address.to_string(), state: Arc::new(Mutex::new(state)) };
        let serving = server.clone();
        let counting = server.clone();
        let accepted = move || counting.state.lock().unwrap().connections += 1;
        serve_all(listener, tls, accepted, move |stream| {
            let server = serving.clone();
            async move { drop(server.serve(stream).await) }
        });
        server
    }

    pub(crate) fn taken(&self) -> BTreeMap<usize, usize> {
        self.state.lock().unwrap().taken.clone()
    }

    /// Serves a connection until it ends.
    async fn serve(&self, stream: impl AsyncRead + AsyncWrite + Unpin) -> std::io::Result<()> {
        let mut stream = BufReader::new(stream);
        let mut known = self.state.lock().unwrap().password.is_none();
        loop {
            let command = read_command(&mut stream).await?;
            let name = String::from_utf8_lossy(&command[0]).into_owned();
            if name != "RPUSH" && name != "PUBLISH" {
                let answer = self.answer(&command, &mut known);
                stream.write_all(answer.as_bytes()).await?;
                stream.flush().await?;
                continue;
            }
            if !known {
                stream.write_all(b"-NOAUTH Authentication required.\r\n").await?;
                continue;
            }
            if !self.events(&mut stream, &name, &command).await? {
                stream.shutdown().await?;
                // The other side has noticed when it closes its own.
                stream.read_to_end(&mut Vec::new()).await?;
                self.state.lock().unwrap().closed += 1;
                return Ok(());
            }
        }
    }

    /// The answer to what brings no events.
    fn answer(&self, command: &[Vec<u8>], known: &mut bool) -> String {
        let text = String::from_utf8_lossy(&command.join(&b' ')).into_owned();
        let mut state = self.state.lock().unwrap();
        state.other_commands.push(text.clone());
        if text.starts_with("AUTH ") {
            *known =
                state.password.as_deref() == command.last().map(|p| str::from_utf8(p).unwrap());
            let refused = "-WRONGPASS invalid username-password pair or user is disabled.\r\n";
            return if *known { "+OK\r\n" } else { refused }.to_owned();
        }
        if !*known {
            return "-NOAUTH Authentication required.\r\n".to_owned();
        }
        match text.split(' ').next().unwrap() {
            "INFO" => {
                let info = "# Server\r\nredis_version:7.0.15\r\n";
                format!("${}\r\n{info}\r\n", info.len())
            }
            "TYPE" => "+none\r\n".to_owned(),
            "PING" => "+PONG\r\n".to_owned(),
            "ACL" if text == "ACL WHOAMI" => "$7\r\ndefault\r\n".to_owned(),
            _ => "+OK\r\n".to_owned(),
        }
    }

    /// The answer to a command whose values are taken: the length of the list, or the number of subscribers.
    fn length_with(&self, name: &str, key: &[u8], values: usize) -> String {
        if name == "PUBLISH" {
            return ":0\r\n".to_owned();
        }
        let key = String::from_utf8_lossy(key).into_owned();
        let before = self.state.lock().unwrap().lists.get(&key).map_or(0, Vec::len);
        format!(":{}\r\n", before + values)
    }

    /// Handles a command that brings events; returns whether the connection lives on.
    async fn events(
        &self,
        stream: &mut (impl AsyncWrite + Unpin),
        name: &str,
        command: &[Vec<u8>],
    ) -> std::io::Result<bool> {
        let lines: Vec<usize> = command[2..].iter().map(|value| line_of(value)).collect();
        let act = {
            let mut state = self.state.lock().unwrap();
            match state.script.front().copied() {
                Some(act @ (Act::AtMost(_) | Act::NeverLine(_))) => act,
                _ => state.script.pop_front().unwrap_or(Act::Ok),
            }
        };
        let too_large = match act {
            Act::AtMost(most) => lines.len() > most,
            Act::NeverLine(line) => lines.contains(&line),
            _ => false,
        };
        let taken = self.length_with(name, &command[1], lines.len());
        let (take, answer, lives): (bool, &str, bool) = match act {
            _ if too_large => (false, "-ERR Protocol error: invalid bulk length\r\n", false),
            Act::Ok | Act::AtMost(_) | Act::NeverLine(_) => (true, &taken, true),
            Act::Error(answer) | Act::Reply(answer) => (false, answer, true),
            Act::Close => (false, "", false),
            Act::TakeAndClose => (true, "", false),
            Act::OkAndClose => (true, &taken, false),
            Act::Nonsense => (false, "HTTP/1.1 400 Bad Request\r\n", false),
            Act::Half => (false, ":1", false),
            Act::Silence => {
                std::future::pending::<()>().await;
                return Ok(false);
            }
        };
        if take {
            let mut state = self.state.lock().unwrap();
            state.commands.push((name.to_owned(), lines.len()));
            let key = String::from_utf8_lossy(&command[1]).into_owned();
            state.lists.entry(key).or_default().extend(&lines);
            for line in lines {
                *state.taken.entry(line).or_default() += 1;
            }
        }
        stream.write_all(answer.as_bytes()).await?;
        stream.flush().await?;
        Ok(lives)
    }
}

fn line_of(value: &[u8]) -> usize {
    match serde_json::from_slice::<serde_json::Value>(value) {
        Ok(document) => number(document["message"].as_str().unwrap()),
        Err(_) => number(std::str::from_utf8(value).unwrap()),
    }
}

async fn read_command(
    stream: &mut (impl AsyncBufReadExt + AsyncReadExt + Unpin),
) -> std::io::Result<Vec<Vec<u8>>> {
    let count = read_number(stream, b'*').await?;
    let mut command = Vec::new();
    for _ in 0..count {
        let mut argument = vec![0; read_number(stream, b'$').await? + 2];
        stream.read_exact(&mut argument).await?;
        assert!(argument.ends_with(b"\r\n"));
        argument.truncate(argument.len() - 2);
        command.push(argument);
    }
    Ok(command)
}

async fn read_number(
    stream: &mut (impl AsyncBufReadExt + Unpin),
    kind: u8,
) -> std::io::Result<usize> {
    let mut line = Vec::new();
    if stream.read_until(b'\n', &mut line).await? == 0 {
        return Err(std::io::ErrorKind::UnexpectedEof.into());
    }
    if !line.ends_with(b"\r\n") {
        return Err(std::io::ErrorKind::UnexpectedEof.into());
    }
    assert_eq!(line[0], kind, "{}", String::from_utf8_lossy(&line));
    Ok(str::from_utf8(&line[1..line.len() - 2]).unwrap().parse().unwrap())
}
