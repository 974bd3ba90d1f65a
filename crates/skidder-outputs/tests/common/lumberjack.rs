//! A scripted Lumberjack server that checks what it receives to the last byte.

use super::number;
use skidder_contract::{listen, serve_all};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio_rustls::TlsAcceptor;

/// What to do with one window.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Act {
    /// Take everything and acknowledge it.
    Ok,
    /// Take so many, acknowledge them and close the connection.
    Part(u32),
    /// Take so many, acknowledge them, and go on with the rest after a keep-alive.
    InTwo(u32),
    /// Take everything, after keep-alives: so many, so many milliseconds apart.
    KeepAlive(u32, u64),
    /// Close the connection before the window is read.
    CloseBefore,
    /// Read the window, take nothing, close.
    CloseAfter,
    /// Send nothing until the other side gives up.
    Silence,
    /// Acknowledge one more than was sent.
    TooMuch,
    /// Take nothing, send this, and then nothing until the other side gives up.
    Reply(&'static [u8]),
    /// Answer in another language.
    Nonsense,
    /// Take everything, acknowledge it, and close when nothing is under way.
    OkAndClose,
    /// Take everything, but only when the next window is there too.
    AfterNext,
}

#[derive(Default)]
pub(crate) struct State {
    script: VecDeque<Act>,
    /// How often each line was taken.
    pub(crate) taken: BTreeMap<usize, usize>,
    /// Events of each window that was read.
    pub(crate) windows: Vec<usize>,
    /// Documents, as they came.
    pub(crate) documents: Vec<serde_json::Value>,
    pub(crate) connections: usize,
    /// Connections that were closed while nothing was under way, which the other side has noticed.
    pub(crate) closed: usize,
    /// Whether windows came compressed.
    pub(crate) compressed: bool,
}

#[derive(Clone)]
pub(crate) struct FakeLumberjack {
    pub(crate) address: String,
    pub(crate) state: Arc<Mutex<State>>,
}

/// A window as it came: the numbers of its lines.
struct Window(Vec<usize>);

impl FakeLumberjack {
    pub(crate) async fn start(script: impl IntoIterator<Item = Act>) -> Self {
        Self::start_with(script, None).await
    }

    pub(crate) async fn start_with(
        script: impl IntoIterator<Item = Act>,
        tls: Option<TlsAcceptor>,
    ) -> Self {
        let (listener, address) = listen().await;
        let state = State { script: script.into_iter().collect(), ..State::default() };
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

    fn take(&self, lines: &[usize]) {
        let mut state = self.state.lock().unwrap();
        for &line in lines {
            *state.taken.entry(line).or_default() += 1;
        }
    }

    /// Serves a connection until it ends.
    async fn serve(&self, mut stream: impl AsyncRead + AsyncWrite + Unpin) -> std::io::Result<()> {
        loop {
            let mut first = [0];
            stream.read_exact(&mut first).await?;
            let act = self.state.lock().unwrap().script.pop_front().unwrap_or(Act::Ok);
            if matches!(act, Act::CloseBefore) {
                return Ok(());
            }
            let Window(lines) = self.read_window(&mut stream, first[0]).await?;
            let count = lines.len() as u32;
            match act {
                Act::CloseBefore | Act::CloseAfter => return Ok(()),
                Act::Ok | Act::OkAndClose => {}
                Act::Part(most) => {
                    // Never all of it: what is acknowledged behind that is taken to be of the next window.
                    let part = most.min(count.saturating_sub(1));
                    self.take(&lines[..part as usize]);
                    ack(&mut stream, part).await?;
                    return Ok(());
                }
                Act::InTwo(most) => {
                    // Never all of it: what is acknowledged behind that is taken to be of the next window.
                    let part = most.min(count.saturating_sub(1));
                    self.take(&lines[..part as usize]);
                    for number in [part, 0, part] {
                        ack(&mut stream, number).await?;
                    }
                    self.take(&lines[part as usize..]);
                    ack(&mut stream, count).await?;
                    continue;
                }
                Act::KeepAlive(times, pause) => {
                    for _ in 0..times {
                        tokio::time::sleep(std::time::Duration::from_millis(pause)).await;
                        ack(&mut stream, 0).await?;
                    }
                }
                Act::Silence => {
                    let mut rest = Vec::new();
                    stream.read_to_end(&mut rest).await?;
                    return Ok(());
                }
                Act::TooMuch => {
                    ack(&mut stream, count + 1).await?;
                    // The other side hangs up.
                    let mut rest = Vec::new();
                    stream.read_to_end(&mut rest).await?;
                    return Ok(());
                }
                Act::Reply(bytes) => {
                    stream.write_all(bytes).await?;
                    stream.flush().await?;
                    let mut rest = Vec::new();
                    stream.read_to_end(&mut rest).await?;
                    return Ok(());
                }
                Act::Nonsense => {
                    stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await?;
                    stream.flush().await?;
                    let mut rest = Vec::new();
                    stream.read_to_end(&mut rest).await?;
                    return Ok(());
                }
                Act::AfterNext => {
                    let mut first = [0];
                    stream.read_exact(&mut first).await?;
                    let Window(next) = self.read_window(&mut stream, first[0]).await?;
                    for lines in [lines, next] {
                        self.take(&lines);
                        ack(&mut stream, lines.len() as u32).await?;
                    }
                    continue;
                }
            }
            self.take(&lines);
            ack(&mut stream, count).await?;
            if matches!(act, Act::OkAndClose) {
                stream.shutdown().await?;
                // The other side has noticed when it closes its own.
                stream.read_to_end(&mut Vec::new()).await?;
                self.state.lock().unwrap().closed += 1;
                return Ok(());
            }
        }
    }

    /// Reads a window whose first byte is read.
    async fn read_window(
        &self,
        stream: &mut (impl AsyncRead + Unpin),
        first: u8,
    ) -> std::io::Result<Window> {
        assert_eq!((first, stream.read_u8().await?), (b'2', b'W'), "a window begins");
        let count = stream.read_u32().await?;
        assert!(count > 0, "a window has events");
        let mut lines = Vec::new();
        for sequence in 1..=count {
            let mut kind = [0; 2];
            stream.read_exact(&mut kind).await?;
            if kind == *b"2C" {
                assert_eq!(sequence, 1, "all of a window is compressed");
                self.state.lock().unwrap().compressed = true;
                let mut packed = vec![0; stream.read_u32().await? as usize];
                stream.read_exact(&mut packed).await?;
                let mut plain = Vec::new();
                let mut unpacking = flate2::read::ZlibDecoder::new(&packed[..]);
                std::io::Read::read_to_end(&mut unpacking, &mut plain).unwrap();
                let mut rest = &plain[..];
                for sequence in 1..=count {
                    let mut kind = [0; 2];
                    rest.read_exact(&mut kind).await?;
                    assert_eq!(kind, *b"2J");
                    lines.push(self.read_event(&mut rest, sequence).await?);
                }
                assert!(rest.is_empty(), "nothing is behind the last frame");
                break;
            }
            assert_eq!(kind, *b"2J", "{}", String::from_utf8_lossy(&kind));
            lines.push(self.read_event(stream, sequence).await?);
        }
        self.state.lock().unwrap().windows.push(lines.len());
        Ok(Window(lines))
    }

    /// Reads a data frame behind its kind; gives the number of its line.
    async fn read_event(
        &self,
        stream: &mut (impl tokio::io::AsyncRead + Unpin),
        sequence: u32,
    ) -> std::io::Result<usize> {
        assert_eq!(stream.read_u32().await?, sequence);
        let mut document = vec![0; stream.read_u32().await? as usize];
        stream.read_exact(&mut document).await?;
        let document: serde_json::Value = serde_json::from_slice(&document).unwrap();
        let line = number(document["message"].as_str().unwrap());
        self.state.lock().unwrap().documents.push(document);
        Ok(line)
    }
}

async fn ack(stream: &mut (impl AsyncWrite + Unpin), number: u32) -> std::io::Result<()> {
    // In one piece: two would wait for each other (Nagle).
    let mut frame = *b"2A\0\0\0\0";
    frame[2..].copy_from_slice(&number.to_be_bytes());
    stream.write_all(&frame).await?;
    stream.flush().await
}
