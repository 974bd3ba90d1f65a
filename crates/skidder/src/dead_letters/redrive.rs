//! Sending letters again: through the output that the configuration has now, as the documents that they are.
//!
//! It goes in rounds. Each letter of a round is a source of its own, so that the settle knows its outcome. Behind a
//! round the file is rewritten, in one step: delivered letters are gone, letters refused again have the new reason.
//! An interrupted round leaves its letters in the file, to be sent again.

use super::letter::{Letter, Origin};
use super::{for_each, hand_over, refuse_of_others, warn_of_torn, warn_of_unsendable};
use crate::agent::{self, Agent};
use crate::cli::{Global, WhichLetters};
use crate::load::{load_settings, read_parts};
use crate::outputs::{OutputParts, quoted};
use crate::run;
use crate::system::System;
use crate::terminal::print;
use anyhow::{Context as _, Result, bail};
use skidder_event::{Batch, SourceId};
use skidder_os::Fs;
use skidder_parse::json::Scanner;
use skidder_pipeline::{
    DeadLetters, DeadLettersLimits, Feed, KeptLetters, LetterFate, Output, Queue, QueueLimits,
    Settle,
};
use skidder_registry::{Cursor, Meta, SourceAbout};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

/// Maximum letters of a round, and their bytes: these may come twice after a crash, and are held in memory.
const ROUND_LETTERS: usize = 10_000;
const ROUND_BYTES: usize = 16 << 20;

/// How long a request waits to become full: there is nothing else to come.
const FLUSH_TIMEOUT: Duration = Duration::from_millis(100);

/// How often to check for a signal.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// How long an output may take to end when everything has its verdict.
const END_PATIENCE: Duration = Duration::from_secs(5);

/// Where letters go that are refused again, until the round is over.
const AGAIN_FILE: &str = "dead_letters.again.ndjson";

/// What became of the letters of an output.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    sent: u64,
    delivered: u64,
    refused: u64,
    /// They are no events, or have no verdict.
    left: u64,
}

/// Sends the selected letters again and reports the outcome. Succeeds only if all were delivered.
pub(super) fn redrive(
    which: &WhichLetters,
    dry_run: bool,
    global: &Global,
    system: &System,
) -> Result<ExitCode> {
    let settings = load_settings(global, system)?;
    let data = settings.paths().data.clone();
    let _lock = agent::lock_data(&*system.fs, &data)?;
    let parts = read_parts(&settings, system, |name| {
        Agent::load(&*system.fs, &*system.clock, &data, name)
    })?;
    let mut outputs = parts.outputs;
    if let Some(id) = &which.output {
        let ids: Vec<String> = outputs.iter().filter_map(|output| output.id.clone()).collect();
        outputs.retain(|output| output.id.as_ref() == Some(id));
        if outputs.is_empty() && ids.is_empty() {
            bail!("there is no output `{id}`: the configuration has no list of `outputs`");
        } else if outputs.is_empty() {
            bail!("there is no output `{id}` that is enabled; there is {}", quoted(&ids));
        }
    }
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop))
            .context("cannot listen to signals")?;
    }
    let mut good = true;
    for output in outputs {
        let kept = KeptLetters::new(&*system.fs, &output.place.data).with_prepared(&hand_over);
        let name = output.id.as_ref().map_or_else(String::new, |id| format!("output `{id}`: "));
        if stop.load(Ordering::Relaxed) {
            good = false;
            break;
        }
        if dry_run {
            let mut count = 0_u64;
            for_each(&kept, which, |_, _| count += 1)?;
            print(&format!("{name}would send {count} letters again\n"))?;
            continue;
        }
        refuse_of_others(&kept, system)?;
        warn_of_torn(&kept)?;
        let Count { sent, delivered, refused, left } =
            Redriving::start(output, system)?.all(&kept, which, &stop)?;
        print(&format!(
            "{name}{sent} letters sent again: {delivered} delivered, {refused} refused again, {left} left\n"
        ))?;
        good &= refused + left == 0;
    }
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A running output without inputs.
struct Redriving {
    system: System,
    runtime: Runtime,
    task: JoinHandle<()>,
    queue: Queue,
    settle: Arc<Settle>,
    /// The file for letters that are refused again.
    again: PathBuf,
    /// Letters in it that belong to rounds before.
    again_read: u64,
    scanner: Scanner,
    /// Names of sources that were given so far.
    sources: u64,
}

/// The letters of a round that were sent, by their place in the file.
type Round = BTreeMap<u64, (SourceId, Letter)>;

impl Redriving {
    fn start(parts: OutputParts, system: &System) -> Result<Self> {
        let again = parts.place.data.join(AGAIN_FILE);
        let settle = Settle::new();
        let flush_timeout = parts.queue.flush_timeout.min(FLUSH_TIMEOUT);
        let limits = QueueLimits { flush_timeout, ..parts.queue };
        let queue = Queue::new(limits, Arc::clone(&settle));
        // A round waits for its verdicts: no output should wait for more events.
        queue.drain();
        let (fs, clock) = (Arc::clone(&system.fs), Arc::clone(&system.clock));
        let limits = DeadLettersLimits { bytes: u64::MAX };
        let letters = DeadLetters::in_file(fs, clock, again.clone(), limits);
        let feed = Feed {
            queue: queue.clone(),
            dead_letters: Some(Arc::new(letters)),
            metrics: Arc::default(),
            clock: Arc::clone(&system.clock),
        };
        let output: Box<dyn Output> = parts.output;
        let runtime =
            crate::runtime::runtime("sockets", run::socket_threads(output.parallelism(), system))?;
        // Letters in the file of a killed command are still dead letters.
        forget(&*system.fs, &again)?;
        Ok(Self {
            system: system.clone(),
            task: runtime.spawn(output.run(feed)),
            runtime,
            queue,
            settle,
            again,
            again_read: 0,
            scanner: Scanner::new(true),
            sources: 0,
        })
    }

    /// All rounds.
    fn all(
        mut self,
        kept: &KeptLetters<'_>,
        which: &WhichLetters,
        stop: &AtomicBool,
    ) -> Result<Count> {
        let mut count = Count::default();
        let mut from = 0;
        let mut goes_on = true;
        while goes_on {
            let (round, end) = self.read_round(kept, which, from, &mut count)?;
            goes_on = end.is_some();
            if round.is_empty() {
                break;
            }
            let done = self.send(kept, &round, stop);
            if !done {
                // Letters without a verdict by now never get one.
                self.queue.abort();
                self.task.abort();
                goes_on = false;
            }
            let before = count.delivered;
            self.write_round(kept, &round, &mut count)?;
            let gone = count.delivered - before;
            from = end.map_or(0, |end| end - gone);
        }
        self.end()?;
        Ok(count)
    }

    /// The letters of the next round, from the letter with this number on, and where the one after it begins; `None`
    /// if there is none.
    fn read_round(
        &mut self,
        kept: &KeptLetters<'_>,
        which: &WhichLetters,
        from: u64,
        count: &mut Count,
    ) -> Result<(Round, Option<u64>)> {
        let mut round = Round::new();
        let mut bytes = 0;
        let mut end = None;
        let read = kept.each(&mut |number, line| {
            if number < from {
                return true;
            }
            if round.len() == ROUND_LETTERS || bytes > ROUND_BYTES {
                end = Some(number);
                return false;
            }
            match Letter::read(line) {
                Ok(letter) if letter.is_in(which) => {
                    bytes += line.len();
                    self.sources += 1;
                    round.insert(number, (SourceId(self.sources), letter));
                }
                Ok(_) => {}
                Err(why) => {
                    warn_of_unsendable(kept, number + 1, &why);
                    count.left += 1;
                }
            }
            true
        });
        read.with_context(|| format!("cannot read `{}`", kept.path().display()))?;
        count.sent += round.len() as u64;
        Ok((round, end))
    }

    /// Sends a round; returns whether every letter has its verdict.
    fn send(&mut self, kept: &KeptLetters<'_>, round: &Round, stop: &AtomicBool) -> bool {
        for (number, (source, letter)) in round {
            let mut batch = match letter.batch(*source, &mut self.scanner) {
                Ok(batch) => batch,
                Err(error) => {
                    warn_of_unsendable(kept, *number + 1, &error);
                    continue;
                }
            };
            self.begin(*source, letter);
            while let Err(back) = self.queue.try_push(batch) {
                if self.is_over(stop) {
                    return false;
                }
                batch = self.wait(back);
            }
        }
        while !self.settle.wait_until_settled(LOOK_EVERY) {
            if self.is_over(stop) {
                return false;
            }
        }
        !stop.load(Ordering::Relaxed)
    }

    /// Waits a little for room.
    fn wait(&self, batch: Batch) -> Batch {
        self.settle.wait_until_settled(LOOK_EVERY);
        batch
    }

    fn is_over(&self, stop: &AtomicBool) -> bool {
        stop.load(Ordering::Relaxed) || self.task.is_finished()
    }

    /// The settle learns of a letter as of a source: for its verdict, and so that it keeps its origin.
    fn begin(&self, source: SourceId, letter: &Letter) {
        let key: Arc<str> = letter.identity.clone().unwrap_or_default().into();
        let name = letter.source.as_deref().unwrap_or_default();
        if let Some(input) = &letter.input {
            let about = SourceAbout { input: input.as_str().into(), name: name.into() };
            self.settle.begin_unsaved(source, key, about);
            return;
        }
        let meta = Meta { source: PathBuf::from(name).into(), ..Meta::default() };
        let generation = letter.generation.unwrap_or_default();
        let cursor = Cursor { offset: letter.place(), generation, ..Cursor::default() };
        self.settle.begin(source, key, meta, cursor, false);
    }

    /// Removes delivered letters from the file, and gives refused ones their new reason.
    fn write_round(
        &mut self,
        kept: &KeptLetters<'_>,
        round: &Round,
        count: &mut Count,
    ) -> Result<()> {
        let mut refused = self.read_again()?;
        let written = kept.rewrite(&mut |number, _| {
            let Some((source, letter)) = round.get(&number) else { return LetterFate::Keep };
            let ledger = self.settle.status(*source).map(|status| status.ledger);
            let (delivered, dead) =
                ledger.map_or((0, 0), |ledger| (ledger.delivered(), ledger.dead_lettered()));
            if delivered > 0 {
                count.delivered += 1;
                return LetterFate::Remove;
            }
            if dead == 0 {
                count.left += 1;
                return LetterFate::Keep;
            }
            let new = refused.get_mut(&letter.origin()).and_then(VecDeque::pop_front);
            let Some(new) = new else {
                // It went to the dead letter index of the server.
                count.delivered += 1;
                return LetterFate::Remove;
            };
            count.refused += 1;
            let Letter { time, status, reason, .. } = new;
            LetterFate::Replace(Letter { time, status, reason, ..letter.clone() }.line())
        });
        written.with_context(|| format!("cannot write `{}`", kept.path().display()))?;
        for (source, _) in round.values() {
            self.settle.remove(*source);
        }
        // These sources are not saved.
        drop(self.settle.take_changes(self.system.clock.wall()));
        Ok(())
    }

    /// The letters refused in this round, by origin.
    fn read_again(&mut self) -> Result<HashMap<Origin, VecDeque<Letter>>> {
        let again = KeptLetters::in_file(&*self.system.fs, self.again.clone());
        let mut refused: HashMap<Origin, VecDeque<Letter>> = HashMap::new();
        let mut count = 0;
        let read = again.each(&mut |number, line| {
            count = number + 1;
            if number >= self.again_read
                && let Ok(letter) = Letter::read(line)
            {
                refused.entry(letter.origin()).or_default().push_back(letter);
            }
            true
        });
        read.with_context(|| format!("cannot read `{}`", self.again.display()))?;
        self.again_read = count;
        Ok(refused)
    }

    /// Lets the output end.
    fn end(mut self) -> Result<()> {
        self.queue.close();
        let ended = self
            .runtime
            .block_on(async { tokio::time::timeout(END_PATIENCE, &mut self.task).await });
        if let Ok(Err(error)) = ended
            && error.is_panic()
        {
            std::panic::resume_unwind(error.into_panic());
        }
        forget(&*self.system.fs, &self.again)
    }
}

/// Removes a file, if it is there.
fn forget(fs: &dyn Fs, path: &Path) -> Result<()> {
    match fs.remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove `{}`", path.display()))
        }
        _ => Ok(()),
    }
}
