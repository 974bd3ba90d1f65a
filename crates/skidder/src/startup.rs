//! `--trace-startup`: how long each step of the start took.

use crate::table::table;
use crate::terminal::eprint;
use skidder_input_file::{AskError, Looks};
use skidder_os::{Clock, Monotonic};
use skidder_read::FileQuery;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// How long to wait for the first scan of an input.
const SCAN_MAX: Duration = Duration::from_hours(1);

/// Records when each step of the start was done; off by default.
#[derive(Clone, Default)]
pub(crate) struct Startup(Option<Arc<Mutex<Steps>>>);

struct Steps {
    clock: Arc<dyn Clock>,
    begun: Monotonic,
    last: Monotonic,
    rows: Vec<[String; 3]>,
}

/// An input whose first scan is waited for.
pub(crate) struct Awaited {
    /// What to call it.
    pub(crate) name: String,
    /// Answers when the scan is done.
    pub(crate) looks: Arc<Looks>,
    /// Its number there.
    pub(crate) number: usize,
}

impl Startup {
    /// Measures from now on.
    pub(crate) fn traced(clock: &Arc<dyn Clock>) -> Self {
        let begun = clock.monotonic();
        let clock = Arc::clone(clock);
        Self(Some(Arc::new(Mutex::new(Steps { clock, begun, last: begun, rows: Vec::new() }))))
    }

    /// Records a step that is done now.
    pub(crate) fn step(&self, what: impl FnOnce() -> String) {
        let Some(steps) = &self.0 else { return };
        let mut steps = steps.lock().unwrap_or_else(PoisonError::into_inner);
        let now = steps.clock.monotonic();
        let row = [ms(now.since(steps.begun)), ms(now.since(steps.last)), what()];
        steps.rows.push(row);
        steps.last = now;
    }

    /// Waits for the first scans in a thread of its own, and then prints all steps.
    pub(crate) fn report_in_background(&self, scans: Vec<Awaited>) -> Option<JoinHandle<()>> {
        self.0.as_ref()?;
        let startup = self.clone();
        let work = move || {
            for Awaited { name, looks, number } in scans {
                let query = FileQuery { after: None, limit: 1, paths: Vec::new() };
                let outcome = match looks.page(number, query, SCAN_MAX) {
                    Ok(page) if page.files.is_empty() => "no file".to_owned(),
                    Ok(_) => "done".to_owned(),
                    // Everything was shipped meanwhile (`--once`), or the program was stopped.
                    Err(AskError::Ended) => "over before it could be asked".to_owned(),
                    Err(error) => error.to_string(),
                };
                startup.step(|| format!("first scan of the input {name}: {outcome}"));
            }
            startup.print();
        };
        std::thread::Builder::new().name("startup".to_owned()).spawn(work).ok()
    }

    fn print(&self) {
        let Some(steps) = &self.0 else { return };
        let steps = steps.lock().unwrap_or_else(PoisonError::into_inner);
        eprint(&table(["AT MS", "TOOK MS", "WHAT"], &steps.rows));
    }
}

fn ms(time: Duration) -> String {
    format!("{:.1}", time.as_secs_f64() * 1e3)
}
