//! The contract of inputs is tried on three of a few lines, one for each meaning of a verdict: they keep it, and with a
//! deliberate bug they do not.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

use skidder_contract::{FarSideFuture, InputTrial, Meaning, keep_input, line};
use skidder_event::{Acknowledge, Acknowledgement, Batch, Map, Progress, SourcePart};
use skidder_input::{Input, InputError, InputFuture, Intake, Source};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;
use std::sync::{Arc, Mutex};
use tokio::sync::{Notify, mpsc};

/// A bug of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bug {
    None,
    /// It acknowledges what it has read.
    Early,
    /// It takes everything into memory, however full the queue is.
    Greedy,
    /// It ignores the request to stop.
    Deaf,
    /// It ends when it sees garbage.
    Touchy,
    /// Its cursor is further than what it has sent.
    Hasty,
}

/// Lines that a far side hands over at once; one that is not a number is garbage.
const LINES: usize = 10;

fn batch_of<'a>(source: &mut Source, lines: impl Iterator<Item = &'a String>) -> Batch {
    let mut batch = source.batch(Vec::new(), 0);
    for line in lines {
        let text = batch.append(line.as_bytes());
        source.push(&mut batch, text, line.len() as u32, 0);
    }
    batch
}

fn good(intake: &Intake, lines: Vec<String>, bug: Bug) -> Result<Vec<String>, InputError> {
    if lines.iter().all(|line| line.starts_with("line ")) {
        return Ok(lines);
    }
    intake.metrics().errors.add(1);
    if bug == Bug::Touchy { Err(InputError("garbage".to_owned())) } else { Ok(Vec::new()) }
}

fn in_pieces(lines: Range<usize>) -> Vec<Vec<String>> {
    let all: Vec<String> = lines.map(line).collect();
    all.chunks(LINES).map(<[String]>::to_vec).collect()
}

/// A connection: what was handed over is gone there.
struct Pipe {
    bug: Bug,
    send: mpsc::Sender<Vec<String>>,
    receive: Arc<tokio::sync::Mutex<mpsc::Receiver<Vec<String>>>>,
}

struct PipeInput(Bug, Arc<tokio::sync::Mutex<mpsc::Receiver<Vec<String>>>>);

impl Input for PipeInput {
    fn kind(&self) -> &'static str {
        "pipe"
    }

    fn run(self: Box<Self>, intake: Intake) -> InputFuture {
        Box::pin(async move {
            let mut receive = self.1.lock().await;
            let mut source = intake.open("peer", Map::new());
            let mut hoard: VecDeque<Vec<String>> = VecDeque::new();
            loop {
                let lines = tokio::select! {
                    biased;
                    () = intake.stopped(), if self.0 != Bug::Deaf => return Ok(()),
                    lines = receive.recv() => lines.unwrap(),
                };
                hoard.push_back(good(&intake, lines, self.0)?);
                while let Some(lines) = hoard.pop_front() {
                    let batch = batch_of(&mut source, lines.iter());
                    let progress = Progress::Nothing(lines.len() as u64);
                    let send = source.send(batch, progress);
                    if self.0 != Bug::Greedy {
                        if send.await.is_err() && self.0 != Bug::Deaf {
                            return Ok(());
                        }
                        continue;
                    }
                    tokio::pin!(send);
                    loop {
                        tokio::select! {
                            sent = &mut send => {
                                if sent.is_err() { return Ok(()) }
                                break;
                            }
                            lines = receive.recv() => hoard.push_back(lines.unwrap()),
                        }
                    }
                }
            }
        })
    }
}

impl InputTrial for Pipe {
    fn input(&self) -> Box<dyn Input> {
        Box::new(PipeInput(self.bug, Arc::clone(&self.receive)))
    }

    fn meaning(&self) -> Meaning {
        Meaning::Nothing
    }

    fn send(&self, lines: Range<usize>) -> FarSideFuture<'_> {
        Box::pin(async move {
            for lines in in_pieces(lines) {
                self.send.send(lines).await.unwrap();
            }
        })
    }

    fn send_garbage(&self) -> Option<FarSideFuture<'_>> {
        Some(Box::pin(async { self.send.send(vec!["\0".to_owned()]).await.unwrap() }))
    }
}

fn pipe(bug: Bug) -> Pipe {
    let (send, receive) = mpsc::channel(1);
    Pipe { bug, send, receive: Arc::new(tokio::sync::Mutex::new(receive)) }
}

/// A journal: it can be read again from every place.
#[derive(Clone)]
struct Journal {
    bug: Bug,
    records: Arc<Mutex<Vec<Vec<String>>>>,
    more: Arc<Notify>,
}

impl Input for Journal {
    fn kind(&self) -> &'static str {
        "journal"
    }

    fn run(self: Box<Self>, intake: Intake) -> InputFuture {
        Box::pin(async move {
            let mut source = intake.open_at_cursor("j", Map::new()).unwrap();
            let mut at: usize = source.saved().map_or(0, |saved| saved.text.parse().unwrap());
            loop {
                let next = self.records.lock().unwrap().get(at).cloned();
                let Some(lines) = next else {
                    tokio::select! {
                        biased;
                        () = intake.stopped() => return Ok(()),
                        () = self.more.notified() => continue,
                    }
                };
                if intake.is_stopped() {
                    return Ok(());
                }
                at += 1;
                let lines = good(&intake, lines, self.bug)?;
                let batch = batch_of(&mut source, lines.iter());
                let ahead = if self.bug == Bug::Hasty { 3 } else { 0 };
                let cursor = (at + ahead).to_string().into();
                let part = SourcePart { version: 1, cursor, bytes: lines.len() as u64 };
                if source.send(batch, Progress::Cursor(part)).await.is_err() {
                    return Ok(());
                }
            }
        })
    }
}

impl InputTrial for Journal {
    fn input(&self) -> Box<dyn Input> {
        Box::new(self.clone())
    }

    fn meaning(&self) -> Meaning {
        Meaning::Cursor
    }

    fn send(&self, lines: Range<usize>) -> FarSideFuture<'_> {
        Box::pin(async move {
            self.records.lock().unwrap().extend(in_pieces(lines));
            self.more.notify_one();
        })
    }

    fn send_garbage(&self) -> Option<FarSideFuture<'_>> {
        Some(Box::pin(async {
            self.records.lock().unwrap().push(vec!["\0".to_owned()]);
            self.more.notify_one();
        }))
    }
}

/// A queue of messages: it keeps them until they are acknowledged, and sends the others again.
#[derive(Clone)]
struct Messages {
    bug: Bug,
    state: Arc<Mutex<MessagesState>>,
    more: Arc<Notify>,
}

#[derive(Default)]
struct MessagesState {
    next: usize,
    waiting: VecDeque<(usize, Vec<String>)>,
    given: BTreeMap<usize, Vec<String>>,
    acknowledged: BTreeSet<usize>,
}

impl Messages {
    fn accept(&self, message: usize) {
        let mut state = self.state.lock().unwrap();
        for text in state.given.remove(&message).unwrap_or_default() {
            if text.starts_with("line ") {
                state.acknowledged.insert(skidder_contract::number(&text));
            }
        }
    }

    fn push(&self, messages: Vec<Vec<String>>) {
        let mut state = self.state.lock().unwrap();
        for lines in messages {
            state.next += 1;
            let number = state.next;
            state.waiting.push_back((number, lines));
        }
        drop(state);
        self.more.notify_one();
    }
}

struct Receipt(Messages, usize);

impl std::fmt::Debug for Receipt {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_tuple("Receipt").field(&self.1).finish()
    }
}

impl Acknowledge for Receipt {
    fn accept(self: Box<Self>) {
        self.0.accept(self.1);
    }

    fn reject(self: Box<Self>) {
        let mut state = self.0.state.lock().unwrap();
        if let Some(lines) = state.given.remove(&self.1) {
            state.waiting.push_front((self.1, lines));
        }
        drop(state);
        self.0.more.notify_one();
    }
}

impl Input for Messages {
    fn kind(&self) -> &'static str {
        "messages"
    }

    fn run(self: Box<Self>, intake: Intake) -> InputFuture {
        Box::pin(async move {
            let mut source = intake.open("queue", Map::new());
            loop {
                if intake.is_stopped() {
                    return Ok(());
                }
                let next = {
                    let mut state = self.state.lock().unwrap();
                    let next = state.waiting.pop_front();
                    if let Some((number, lines)) = &next {
                        state.given.insert(*number, lines.clone());
                    }
                    next
                };
                let Some((number, lines)) = next else {
                    tokio::select! {
                        biased;
                        () = intake.stopped() => return Ok(()),
                        () = self.more.notified() => continue,
                    }
                };
                let owed = Acknowledgement::new(Receipt((*self).clone(), number));
                let lines = good(&intake, lines, self.bug)?;
                let batch = batch_of(&mut source, lines.iter());
                if self.bug == Bug::Early {
                    self.accept(number);
                }
                let progress = Progress::Acknowledge(owed, lines.len() as u64);
                if source.send(batch, progress).await.is_err() {
                    return Ok(());
                }
            }
        })
    }
}

impl InputTrial for Messages {
    fn input(&self) -> Box<dyn Input> {
        Box::new(self.clone())
    }

    fn meaning(&self) -> Meaning {
        Meaning::Acknowledgement
    }

    fn send(&self, lines: Range<usize>) -> FarSideFuture<'_> {
        Box::pin(async move { self.push(in_pieces(lines)) })
    }

    fn send_garbage(&self) -> Option<FarSideFuture<'_>> {
        Some(Box::pin(async { self.push(vec![vec!["\0".to_owned()]]) }))
    }

    fn acknowledged(&self) -> BTreeSet<usize> {
        self.state.lock().unwrap().acknowledged.clone()
    }
}

fn journal(bug: Bug) -> Journal {
    Journal { bug, records: Arc::default(), more: Arc::default() }
}

fn messages(bug: Bug) -> Messages {
    Messages { bug, state: Arc::default(), more: Arc::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_input_for_each_meaning_of_a_verdict_keeps_the_contract() {
    keep_input(|| pipe(Bug::None)).await;
    keep_input(|| journal(Bug::None)).await;
    keep_input(|| messages(Bug::None)).await;
}

/// Tries the contract on a broken input, in a thread of its own.
fn broken<T: InputTrial>(fresh: impl Fn() -> T + Send + 'static) -> std::thread::JoinHandle<()> {
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        runtime.block_on(keep_input(fresh));
    })
}

#[test]
fn each_deliberate_bug_is_found_by_its_case() {
    let cases = [
        (broken(|| messages(Bug::Early)), "nothing is acknowledged before its verdict"),
        (broken(|| pipe(Bug::Greedy)), "a full queue makes the far side wait"),
        (broken(|| pipe(Bug::Deaf)), "every line comes once"),
        (broken(|| journal(Bug::Hasty)), "a stop in the middle loses nothing"),
        (broken(|| messages(Bug::Touchy)), "garbage costs nothing else"),
    ];
    for (thread, case) in cases {
        let panic = thread.join().expect_err("the contract finds it");
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or_default();
        assert!(text.contains(case), "{case}: {text}");
    }
}
