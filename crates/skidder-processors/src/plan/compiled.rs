//! A compiled entry of a `processors:` list, and how it runs on one event.

use super::constants::Constants;
use super::failure::{ERROR_MESSAGE, Failure};
use super::footprint::Touched;
use super::processor::{Outcome, Processor};
use crate::condition::Condition;
use skidder_event::{EventMut, EventRef, Mark, Path};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// One entry of a `processors:` list. Cheap to clone.
#[derive(Clone, Debug)]
pub enum Compiled {
    /// A processor, with its `when`.
    Run {
        /// Without it the processor runs on every event.
        when: Option<Condition>,
        /// The processor.
        processor: Arc<dyn Processor>,
        /// Its failures, over all sources.
        failures: Arc<FailureCount>,
    },
    /// `if`/`then`/`else`. A branch ends at its first processor that fails.
    Choose {
        /// The `if`.
        condition: Condition,
        /// The `then` list.
        then: Arc<[Compiled]>,
        /// The `else` list, possibly empty.
        otherwise: Arc<[Compiled]>,
    },
    /// A branch whose condition is known to hold. It ends at its first processor that fails.
    Branch(Arc<[Compiled]>),
}

/// How often one processor failed.
#[derive(Debug)]
pub struct FailureCount {
    name: &'static str,
    count: AtomicU64,
}

/// How the list goes on after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    Next,
    /// The end of a branch; the list around it goes on.
    Stop,
    Dropped,
}

impl Compiled {
    /// An entry with one processor.
    pub fn new(processor: impl Processor + 'static, when: Option<Condition>) -> Self {
        Self::shared(Arc::new(processor), when)
    }

    /// An entry with a processor that is shared already.
    pub fn shared(processor: Arc<dyn Processor>, when: Option<Condition>) -> Self {
        let failures = FailureCount { name: processor.name(), count: AtomicU64::new(0) };
        Self::Run { when, processor, failures: Arc::new(failures) }
    }

    /// An `if`/`then`/`else` entry.
    pub fn choose(condition: Condition, then: Vec<Self>, otherwise: Vec<Self>) -> Self {
        Self::Choose { condition, then: then.into(), otherwise: otherwise.into() }
    }

    /// Runs on one event.
    #[inline(always)]
    pub(crate) fn run(&self, event: &mut EventMut<'_>) -> Flow {
        match self {
            Self::Run { when: None, processor, failures } => {
                run_processor(&**processor, failures, event)
            }
            _ => self.run_if(event),
        }
    }

    /// The same where a condition may have to be checked, or a list is run.
    #[inline(never)]
    fn run_if(&self, event: &mut EventMut<'_>) -> Flow {
        match self {
            Self::Run { when, processor, failures } => {
                if when.as_ref().is_some_and(|when| !when.check(event.as_ref())) {
                    return Flow::Next;
                }
                run_processor(&**processor, failures, event)
            }
            Self::Choose { condition, then, otherwise } => {
                run_list(if condition.check(event.as_ref()) { then } else { otherwise }, event)
            }
            Self::Branch(list) => run_list(list, event),
        }
    }

    /// Runs a single processor for a caller that deals with its failure: the event is as it came
    /// then. What an ignored failure leaves is written. Nothing is counted. (A list of processors
    /// is none; it never fails.)
    pub fn try_run(&self, event: &mut EventMut<'_>) -> Result<Outcome, Failure> {
        let Self::Run { when, processor, .. } = self else {
            return Ok(match self.run(event) {
                Flow::Next | Flow::Stop => Outcome::Done,
                Flow::Dropped => Outcome::Dropped,
            });
        };
        if when.as_ref().is_some_and(|when| !when.check(event.as_ref())) {
            return Ok(Outcome::Done);
        }
        let mark = event.mark();
        processor.run(event).or_else(|failure| {
            event.rollback(mark);
            if failure.counts() {
                return Err(failure);
            }
            failure.note(event);
            Ok(Outcome::Done)
        })
    }

    /// Whether its `when` holds for an event.
    pub(crate) fn applies(&self, event: EventRef<'_>) -> bool {
        match self {
            Self::Run { when, .. } => when.as_ref().is_none_or(|when| when.check(event)),
            Self::Choose { .. } | Self::Branch(_) => true,
        }
    }

    /// Whether a failure inside can end the branch it is in.
    pub(crate) fn can_stop(&self) -> bool {
        match self {
            Self::Run { processor, .. } => processor.can_stop(),
            Self::Choose { then, otherwise, .. } => {
                then.iter().chain(&**otherwise).any(Self::can_stop)
            }
            Self::Branch(list) => list.iter().any(Self::can_stop),
        }
    }

    /// Adds to `touched` whatever this may write on an event over `constants`.
    pub(crate) fn touch(&self, touched: &mut Touched, constants: &Constants) {
        match self {
            Self::Run { processor, .. } => {
                touched.add(&processor.footprint(constants), processor.can_fail());
            }
            Self::Choose { then, otherwise, .. } => {
                then.iter().chain(&**otherwise).for_each(|step| step.touch(touched, constants));
            }
            Self::Branch(list) => list.iter().for_each(|step| step.touch(touched, constants)),
        }
    }

    /// The same with everything fixed that processors look up outside the event.
    pub(crate) fn bound(&self) -> Self {
        let all = |list: &[Self]| list.iter().map(Self::bound).collect();
        match self {
            Self::Run { when, processor, failures } => Self::Run {
                when: when.clone(),
                processor: processor.bound().unwrap_or_else(|| Arc::clone(processor)),
                failures: Arc::clone(failures),
            },
            Self::Choose { condition, then, otherwise } => Self::Choose {
                condition: condition.clone(),
                then: all(then),
                otherwise: all(otherwise),
            },
            Self::Branch(list) => Self::Branch(all(list)),
        }
    }

    /// Adds to `paths` all fields that it reads and writes on an event over `constants`; `false` if
    /// they are not known.
    pub(crate) fn paths(&self, constants: &Constants, paths: &mut Vec<Path>) -> bool {
        let mut add = |condition: &Condition| {
            condition.for_each_path(&mut |path| paths.push(path.clone()));
        };
        match self {
            Self::Run { when, processor, .. } => {
                if let Some(when) = when {
                    add(when);
                }
                let footprint = processor.footprint(constants);
                paths.extend(footprint.reads.into_iter().chain(footprint.writes));
                if processor.can_fail() {
                    paths.push(ERROR_MESSAGE.clone());
                }
                !footprint.everything
            }
            Self::Choose { condition, then, otherwise } => {
                add(condition);
                then.iter().chain(&**otherwise).all(|step| step.paths(constants, paths))
            }
            Self::Branch(list) => list.iter().all(|step| step.paths(constants, paths)),
        }
    }

    /// Collects every processor inside with its failures.
    pub(crate) fn collect<'a>(
        &'a self,
        all: &mut Vec<(&'a Arc<dyn Processor>, &'a Arc<FailureCount>)>,
    ) {
        match self {
            Self::Run { processor, failures, .. } => all.push((processor, failures)),
            Self::Choose { then, otherwise, .. } => {
                then.iter().chain(&**otherwise).for_each(|step| step.collect(all));
            }
            Self::Branch(list) => list.iter().for_each(|step| step.collect(all)),
        }
    }

    /// To show, on one line.
    pub(crate) fn describe(&self) -> String {
        let all = |list: &[Self]| list.iter().map(Self::describe).collect::<Vec<_>>().join(", ");
        match self {
            Self::Run { when: None, processor, .. } => processor.describe(),
            Self::Run { when: Some(when), processor, .. } => {
                format!("{} when {when}", processor.describe())
            }
            Self::Choose { condition, then, otherwise } if otherwise.is_empty() => {
                format!("if {condition} then [{}]", all(then))
            }
            Self::Choose { condition, then, otherwise } => {
                format!("if {condition} then [{}] else [{}]", all(then), all(otherwise))
            }
            Self::Branch(list) => format!("[{}]", all(list)),
        }
    }
}

impl FailureCount {
    /// The processor's name in the configuration.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Events it failed on since the start.
    pub fn get(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Counts one; the first is logged as an example.
    fn add(&self, failure: &Failure) {
        if self.count.fetch_add(1, Ordering::Relaxed) == 0 {
            let (processor, error) = (self.name, failure.reason());
            tracing::warn!(
                processor,
                error,
                "processor failed on an event; only the first is logged"
            );
        }
    }
}

fn run_list(list: &[Compiled], event: &mut EventMut<'_>) -> Flow {
    for step in list {
        match step.run(event) {
            Flow::Next => {}
            end => return end,
        }
    }
    Flow::Next
}

#[inline(always)]
fn run_processor(
    processor: &dyn Processor,
    failures: &FailureCount,
    event: &mut EventMut<'_>,
) -> Flow {
    let mark = event.mark();
    match processor.run(event) {
        Ok(Outcome::Done) => Flow::Next,
        Ok(Outcome::Incomplete) => Flow::Stop,
        Ok(Outcome::Dropped) => {
            event.set_dropped();
            Flow::Dropped
        }
        Err(failure) => undo(processor, failures, event, mark, &failure),
    }
}

/// How to handle a processor that failed.
#[cold]
fn undo(
    processor: &dyn Processor,
    failures: &FailureCount,
    event: &mut EventMut<'_>,
    mark: Mark,
    failure: &Failure,
) -> Flow {
    event.rollback(mark);
    failure.note(event);
    if !failure.counts() {
        return Flow::Next;
    }
    failures.add(failure);
    if processor.can_stop() { Flow::Stop } else { Flow::Next }
}
