//! CPU: which functions the threads were in, a hundred times in each second of CPU time.
//!
//! A [`Recorder`] is drained by its owner every now and then ([`DRAIN_EVERY`]), which finds the
//! callers of each sample in the copy of its stack, by the tables for panics that every program
//! has. It costs about 4 MiB while it records, and the tables of the program.

mod signal;

use crate::Period;
use crate::encode::{Profile, Stack};
use crate::objects::{Objects, Unwinding};
use signal::{Sample, Sampling};
use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Samples in a second of CPU time.
pub const RATE: u32 = 100;
/// How often a recorder must be drained, or samples are lost.
pub const DRAIN_EVERY: Duration = Duration::from_millis(20);
/// Callers that are kept of a sample.
const FRAMES_MAX: usize = 128;
/// Different stacks; of more only the innermost function is kept.
const STACKS_MAX: usize = 65_536;

/// There is one recorder at a time.
static IS_RECORDING: AtomicBool = AtomicBool::new(false);

/// Why no profile is made.
#[derive(Debug, thiserror::Error)]
pub enum CpuError {
    /// Wait for the other.
    #[error("a CPU profile is being recorded already; wait for its end")]
    Busy,
    /// The system does not let it.
    #[error("the system gives no timer for samples ({0})")]
    Timer(io::Error),
    /// What the program consists of cannot be found out.
    #[error("the program's own files cannot be read ({0})")]
    Objects(io::Error),
}

/// Records until it is finished or dropped.
pub struct Recorder {
    // Before `_turn`, so that the timer is off before another begins.
    sampling: Sampling,
    unwinding: Unwinding,
    objects: Objects,
    stacks: HashMap<(i32, Vec<u64>), u64>,
    threads: HashMap<i32, String>,
    _turn: Turn,
}

struct Turn;

impl Drop for Turn {
    fn drop(&mut self) {
        IS_RECORDING.store(false, Ordering::Release);
    }
}

impl Recorder {
    /// Begins to record all threads.
    pub fn start() -> Result<Self, CpuError> {
        if IS_RECORDING.swap(true, Ordering::Acquire) {
            return Err(CpuError::Busy);
        }
        let turn = Turn;
        let objects = Objects::of_this_process().map_err(CpuError::Objects)?;
        let unwinding = objects.unwinding();
        let sampling = Sampling::start(RATE).map_err(CpuError::Timer)?;
        Ok(Self {
            sampling,
            unwinding,
            objects,
            stacks: HashMap::new(),
            threads: HashMap::new(),
            _turn: turn,
        })
    }

    /// Processes the samples.
    pub fn drain(&mut self) {
        let Self { sampling, unwinding, stacks, threads, .. } = self;
        sampling.drain(&mut |sample: &Sample| {
            let mut frames = Vec::new();
            let mut read = |address| sample.word(address).ok_or(());
            unwinding.walk(
                sample.instruction,
                (sample.link, sample.stack, sample.frame),
                &mut read,
                &mut |address| {
                    frames.push(address);
                    frames.len() < FRAMES_MAX
                },
            );
            if stacks.len() >= STACKS_MAX && !stacks.contains_key(&(sample.thread, frames.clone()))
            {
                frames.truncate(1);
            }
            *stacks.entry((sample.thread, frames)).or_default() += 1;
            threads.entry(sample.thread).or_insert_with(|| name_of(sample.thread));
        });
    }

    /// The profile of `span`, compressed, as pprof reads it. `now` is in nanoseconds since 1970.
    pub fn finish(mut self, now: i64, span: Duration) -> Vec<u8> {
        self.drain();
        let lost = self.sampling.lost();
        let nanoseconds = 1_000_000_000 / u64::from(RATE);
        let mut profile = Profile::new(
            &[("samples", "count"), ("cpu", "nanoseconds")],
            Period { kind: "cpu", unit: "nanoseconds", value: nanoseconds },
        );
        profile.time(now, span);
        if lost > 0 {
            profile.comment(&format!("{lost} samples were lost: they came too fast"));
        }
        for ((thread, frames), count) in &self.stacks {
            let label = self.threads.get(thread).map(|name| ("thread", name.as_str()));
            let values = [*count, count * nanoseconds];
            profile.add(&Stack { frames, values: &values, label });
        }
        profile.encode(&self.objects)
    }
}

/// The name of one of our threads, or its number if it is gone.
fn name_of(thread: i32) -> String {
    let name = std::fs::read_to_string(format!("/proc/self/task/{thread}/comm"));
    name.map_or_else(|_| thread.to_string(), |name| name.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::read::GzDecoder;
    use std::hint::black_box;
    use std::io::Read as _;
    use std::sync::atomic::AtomicUsize;

    #[inline(never)]
    fn this_function_works_hard(rounds: u64) -> u64 {
        (0..rounds).fold(1_u64, |sum, round| black_box(sum.wrapping_mul(31) ^ round))
    }

    #[inline(never)]
    fn whoever_calls_it(until: &AtomicBool) -> u64 {
        let mut sum = 0_u64;
        while !until.load(Ordering::Relaxed) {
            sum = sum.wrapping_add(this_function_works_hard(1000));
        }
        black_box(sum)
    }

    #[test]
    fn a_thread_that_works_is_caught_with_its_callers_and_a_second_recorder_waits() {
        let (until, caught) = (AtomicBool::new(false), AtomicUsize::new(0));
        let profile = std::thread::scope(|scope| {
            scope.spawn(|| whoever_calls_it(&until));
            let mut recorder = Recorder::start().unwrap();
            assert!(matches!(Recorder::start(), Err(CpuError::Busy)));
            // As long as the thread gets time, samples come.
            while caught.load(Ordering::Relaxed) < 20 {
                std::thread::park_timeout(DRAIN_EVERY);
                recorder.drain();
                caught.store(recorder.stacks.values().sum::<u64>() as usize, Ordering::Relaxed);
            }
            until.store(true, Ordering::Relaxed);
            let mut deepest: Vec<Vec<u64>> =
                recorder.stacks.keys().map(|(_, frames)| frames.clone()).collect();
            deepest.sort_by_key(Vec::len);
            // Its caller, and what threads begin with.
            assert!(deepest.last().unwrap().len() > 4, "{deepest:x?}");
            recorder.finish(0, Duration::from_secs(1))
        });
        let mut text = Vec::new();
        GzDecoder::new(&profile[..]).read_to_end(&mut text).unwrap();
        for name in ["this_function_works_hard", "whoever_calls_it", "nanoseconds"] {
            let found = text.windows(name.len()).any(|window| window == name.as_bytes());
            assert!(found, "there is no `{name}`");
        }
        drop(Recorder::start().unwrap());
    }
}
