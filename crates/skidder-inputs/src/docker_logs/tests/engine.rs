//! Docker's API with one container, on a unix socket: its description and its log. Answers can be cut.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;

/// The id of the container.
pub(crate) const ID: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

/// The first second of the log.
const EPOCH: i64 = 1_700_000_000;

#[derive(Default)]
struct State {
    id: Option<String>,
    /// Time in nanoseconds, stream, text.
    log: Vec<(i64, u8, String)>,
    is_over: bool,
    is_terminal: bool,
    is_refused: bool,
    starts: u32,
    /// After how many bytes the next answers break off.
    cuts: VecDeque<usize>,
    /// After how many messages of the log the next answers hang.
    hangs: VecDeque<usize>,
    /// Answers that hang now.
    hanging: usize,
    /// Sent instead of the next message.
    garbage: Option<Vec<u8>>,
    looks: usize,
    requests: usize,
}

/// The engine. It ends with the test.
pub(crate) struct Engine {
    state: Arc<Mutex<State>>,
    changed: Arc<watch::Sender<u64>>,
    directory: tempfile::TempDir,
}

impl Engine {
    /// With a container that runs and has written nothing.
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(directory.path().join("docker.sock")).unwrap();
        let state = Arc::new(Mutex::new(State { id: Some(ID.to_owned()), ..State::default() }));
        let changed = Arc::new(watch::Sender::new(0));
        let (of_task, told) = (Arc::clone(&state), Arc::clone(&changed));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (state, changed) = (Arc::clone(&of_task), told.subscribe());
                tokio::spawn(serve(stream, state, changed));
            }
        });
        Self { state, changed, directory }
    }

    pub(crate) fn host(&self) -> String {
        format!("unix://{}/docker.sock", self.directory.path().display())
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock().unwrap());
        self.changed.send_modify(|number| *number += 1);
    }

    pub(crate) fn log(&self, time: i64, stream: u8, text: &str) {
        let time = EPOCH * 1_000_000_000 + time;
        self.change(|state| state.log.push((time, stream, text.to_owned())));
    }

    pub(crate) fn log_now(&self, stream: u8, text: &str) {
        let time = jiff::Timestamp::now().as_nanosecond() as i64;
        self.change(|state| state.log.push((time, stream, text.to_owned())));
    }

    pub(crate) fn use_terminal(&self) {
        self.change(|state| state.is_terminal = true);
    }

    pub(crate) fn refuse(&self) {
        self.change(|state| state.is_refused = true);
    }

    /// The container ends.
    pub(crate) fn end(&self) {
        self.change(|state| state.is_over = true);
    }

    /// It is started again.
    pub(crate) fn start(&self) {
        self.change(|state| {
            state.is_over = false;
            state.starts += 1;
        });
    }

    pub(crate) fn remove(&self) {
        self.change(|state| state.id = None);
    }

    /// The container is another one, whose id is this letter, 64 times.
    pub(crate) fn create(&self, letter: char) {
        let id = Some(letter.to_string().repeat(64));
        self.change(|state| *state = State { id, looks: state.looks, ..State::default() });
    }

    pub(crate) fn cut_answers(&self, cuts: Vec<usize>) {
        self.change(|state| state.cuts = cuts.into());
    }

    /// The next answers send no more than so many messages of the log, and do not end.
    pub(crate) fn hang_answers(&self, hangs: Vec<usize>) {
        self.change(|state| state.hangs = hangs.into());
    }

    /// How many answers hang, and still have their connection.
    pub(crate) fn hanging(&self) -> usize {
        self.state.lock().unwrap().hanging
    }

    /// Sends these bytes in an answer, once, and what was to be sent not in this answer.
    pub(crate) fn break_with(&self, garbage: &[u8]) {
        self.change(|state| state.garbage = Some(garbage.to_owned()));
    }

    /// How often the container was looked at.
    pub(crate) fn looks(&self) -> usize {
        self.state.lock().unwrap().looks
    }

    /// How often its log was requested.
    pub(crate) fn requests(&self) -> usize {
        self.state.lock().unwrap().requests
    }
}

async fn serve(
    mut stream: UnixStream,
    state: Arc<Mutex<State>>,
    changed: watch::Receiver<u64>,
) -> Option<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8(head).unwrap();
    let target = head.split(' ').nth(1)?.to_owned();
    if target.ends_with("/json") {
        let answer = inspect(&mut state.lock().unwrap());
        let (status, body) = answer.map_or((404, "no such container".to_owned()), |it| (200, it));
        let head = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n\r\n", body.len());
        return stream.write_all(format!("{head}{body}").as_bytes()).await.ok();
    }
    if state.lock().unwrap().is_refused {
        let answer = "HTTP/1.1 501 X\r\ncontent-length: 0\r\n\r\n";
        return stream.write_all(answer.as_bytes()).await.ok();
    }
    send_log(stream, &target, &state, changed).await
}

fn inspect(state: &mut State) -> Option<String> {
    state.looks += 1;
    let body = serde_json::json!({
        "Id": state.id.as_ref()?,
        "Name": "/web",
        "Config": {"Image": "image:1", "Tty": state.is_terminal},
        "State": {"Running": !state.is_over, "StartedAt": format!("start {}", state.starts)},
    });
    Some(body.to_string())
}

async fn send_log(
    mut stream: UnixStream,
    target: &str,
    state: &Mutex<State>,
    mut changed: watch::Receiver<u64>,
) -> Option<()> {
    let parameter = |name: &str| {
        let query = target.split_once('?')?.1;
        query.split('&').find_map(|part| part.strip_prefix(name)?.strip_prefix('='))
    };
    assert_eq!(parameter("timestamps"), Some("1"));
    let follow = parameter("follow") == Some("1");
    let wants = [parameter("stdout") == Some("1"), parameter("stderr") == Some("1")];
    let since: i64 = parameter("since").map_or(0, |text| text.replace('.', "").parse().unwrap());
    let (id, cut, hang) = {
        let mut state = state.lock().unwrap();
        state.requests += 1;
        (
            state.id.clone(),
            state.cuts.pop_front(),
            follow.then(|| state.hangs.pop_front()).flatten(),
        )
    };
    let mut left = cut.unwrap_or(usize::MAX);
    stream.write_all(b"HTTP/1.1 200 X\r\ntransfer-encoding: chunked\r\n\r\n").await.ok()?;
    let (mut at, mut has_begun) = (0, false);
    loop {
        let (bytes, is_last) = {
            let mut state = state.lock().unwrap();
            let mut bytes = Vec::new();
            let mut is_last = !follow || state.is_over || state.id != id;
            let end = hang.map_or(state.log.len(), |hang| hang.min(state.log.len()));
            for (time, from, text) in state.log.get(at..end).unwrap_or_default() {
                has_begun |= *time >= since;
                if has_begun && wants[usize::from(*from) - 1] {
                    append(&mut bytes, state.is_terminal, *time, *from, text);
                }
            }
            at = end;
            if let Some(garbage) = state.garbage.take() {
                bytes = garbage;
                is_last = true;
            }
            (bytes, is_last)
        };
        // As an engine: a chunk for each part.
        for part in bytes.chunks(1000) {
            let sent = part.len().min(left);
            let chunk = [format!("{sent:x}\r\n").as_bytes(), &part[..sent], b"\r\n"].concat();
            if sent > 0 {
                stream.write_all(&chunk).await.ok()?;
            }
            left -= sent;
            if left == 0 {
                return None;
            }
        }
        if hang == Some(at) {
            state.lock().unwrap().hanging += 1;
            // Until it is closed.
            let closed = stream.read_u8().await;
            state.lock().unwrap().hanging -= 1;
            closed.ok()?;
        }
        if is_last {
            return stream.write_all(b"0\r\n\r\n").await.ok();
        }
        changed.changed().await.ok()?;
    }
}

fn append(bytes: &mut Vec<u8>, is_terminal: bool, time: i64, stream: u8, text: &str) {
    let at = jiff::Timestamp::from_nanosecond(i128::from(time)).unwrap();
    let body = format!("{} {text}", at.strftime("%Y-%m-%dT%H:%M:%S.%9fZ"));
    if !is_terminal {
        bytes.extend([stream, 0, 0, 0]);
        bytes.extend((body.len() as u32).to_be_bytes());
    }
    bytes.extend(body.as_bytes());
}
