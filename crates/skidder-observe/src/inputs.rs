//! The inputs of an output: a list that changes when the configuration is read again.

use crate::numbers::{ReadNumbers, SourceNumbers};
use crate::snapshot::InputSource;
use skidder_input::{InputTask, LastError};
use skidder_os::Timestamp;
use skidder_read::{FileError, ReadMetrics};
use std::collections::HashSet;
use std::sync::{Arc, PoisonError, RwLock};

/// Where the counters of an input are.
#[derive(Clone, Debug)]
pub enum Counts {
    /// Of one that reads files.
    Files(Arc<ReadMetrics>),
    /// Of one that is a task, and may feed other outputs as well.
    Task {
        /// The task.
        task: Arc<InputTask>,
        /// Whether sums have it here: of several outputs that it feeds, only one has.
        is_counted: bool,
    },
}

impl Counts {
    /// The counts now.
    pub fn read(&self) -> ReadNumbers {
        match self {
            Self::Files(metrics) => ReadNumbers::of(metrics),
            Self::Task { task, .. } => {
                let sources = SourceNumbers::of(task.metrics());
                ReadNumbers { sources, ..ReadNumbers::default() }
            }
        }
    }

    /// Bytes of files that were read, as they are stored.
    pub fn stored_bytes(&self) -> u64 {
        match self {
            Self::Files(metrics) => metrics.stored_bytes.get(),
            Self::Task { .. } => 0,
        }
    }

    /// The task, if the input is one.
    pub(crate) fn task(&self) -> Option<&Arc<InputTask>> {
        match self {
            Self::Files(_) => None,
            Self::Task { task, .. } => Some(task),
        }
    }

    /// The last error that was met, with a file or with another source.
    pub(crate) fn last_error(&self) -> Option<InputError> {
        match self {
            Self::Files(metrics) => metrics.last_errors.last().map(InputError::OfFile),
            Self::Task { task, .. } => task.metrics().last_error().map(InputError::OfSource),
        }
    }

    /// Its share of a sum over several outputs.
    fn in_sum(&self) -> ReadNumbers {
        match self {
            Self::Task { is_counted: false, .. } => ReadNumbers::default(),
            _ => self.read(),
        }
    }

    /// Equal for those of one input: where its counters are.
    fn place(&self) -> usize {
        match self {
            Self::Files(metrics) => Arc::as_ptr(metrics).addr(),
            Self::Task { task, .. } => Arc::as_ptr(task).addr(),
        }
    }
}

/// The last error of an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InputError {
    /// Of one that reads files.
    OfFile(FileError),
    /// Of one that reads no files.
    OfSource(LastError),
}

impl InputError {
    /// When it was.
    pub fn at(&self) -> Timestamp {
        match self {
            Self::OfFile(error) => error.at,
            Self::OfSource(error) => error.at,
        }
    }
}

/// The inputs of an output. Clones are the same list.
#[derive(Clone, Debug, Default)]
pub struct InputList(Arc<RwLock<Lists>>);

#[derive(Clone, Debug, Default)]
struct Lists {
    now: Arc<[InputSource]>,
    /// Counts of inputs that are not in the list any more, while they still read or wait for verdicts.
    leaving: Vec<Counts>,
    /// Counts of all others that were in the list.
    gone: ReadNumbers,
}

impl InputList {
    /// These inputs.
    pub fn new(inputs: Vec<InputSource>) -> Self {
        let list = Self::default();
        list.replace(inputs);
        list
    }

    /// The inputs as they are now, in the order of the configuration.
    pub fn list(&self) -> Arc<[InputSource]> {
        Arc::clone(&self.read().now)
    }

    /// Other inputs from now on. What those have counted that are not among them stays in the sums.
    pub fn replace(&self, inputs: Vec<InputSource>) {
        let mut lists = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let mut known: HashSet<usize> = inputs.iter().map(|input| input.counts.place()).collect();
        known.extend(lists.leaving.iter().map(Counts::place));
        let before = Arc::clone(&lists.now);
        let gone = before.iter().filter(|input| known.insert(input.counts.place()));
        lists.leaving.extend(gone.map(|input| input.counts.clone()));
        lists.now = inputs.into();
    }

    /// These, which have left the list, count nothing any more.
    pub fn forget_gone(&self, gone: &[Counts]) {
        let mut lists = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let Lists { leaving, gone: sum, .. } = &mut *lists;
        let gone: HashSet<usize> = gone.iter().map(Counts::place).collect();
        for counts in leaving.extract_if(.., |counts| gone.contains(&counts.place())) {
            sum.add(&counts.in_sum());
        }
    }

    /// The numbers in the configuration of those that read files.
    pub(crate) fn of_files(&self) -> Vec<usize> {
        let now = self.list();
        let of_files = now.iter().filter(|input| input.counts.task().is_none());
        of_files.map(|input| input.number).collect()
    }

    /// Inputs that are tasks; each once over all outputs, if `only_counted`.
    pub(crate) fn tasks(&self, only_counted: bool) -> Vec<(InputSource, Arc<InputTask>)> {
        let now = self.list();
        let tasks = now.iter().filter_map(|input| match &input.counts {
            Counts::Task { task, is_counted } if *is_counted || !only_counted => {
                Some((input.clone(), Arc::clone(task)))
            }
            _ => None,
        });
        tasks.collect()
    }

    /// The counts of all, each once.
    pub(crate) fn total(&self) -> ReadNumbers {
        let lists = self.read();
        let mut total = lists.gone;
        let mut seen = HashSet::new();
        let now = lists.now.iter().map(|input| &input.counts);
        for counts in now.chain(&lists.leaving).filter(|counts| seen.insert(counts.place())) {
            total.add(&counts.in_sum());
        }
        total
    }

    fn read(&self) -> Lists {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(number: usize) -> InputSource {
        let counts = Counts::Files(Arc::default());
        let (id, kind) = ("i".to_owned(), "filestream".to_owned());
        let title = id.clone();
        InputSource { id, title, kind, number, slot: number, counts, plan: None, survey: None }
    }

    fn lines(input: &InputSource) -> &skidder_event::Counter {
        match &input.counts {
            Counts::Files(metrics) => &metrics.lines,
            Counts::Task { .. } => panic!("it reads files"),
        }
    }

    #[test]
    fn what_was_counted_stays_in_the_sum_when_its_input_goes() {
        let (one, two) = (input(0), input(1));
        let list = InputList::new(vec![one.clone(), two.clone()]);
        lines(&one).add(3);
        lines(&two).add(4);
        assert_eq!(list.total().lines, 7);
        list.replace(vec![two.clone()]);
        lines(&one).add(10);
        assert_eq!((list.total().lines, list.list().len()), (17, 1), "it still reads");
        list.forget_gone(std::slice::from_ref(&two.counts));
        lines(&one).add(10);
        assert_eq!(list.total().lines, 27, "another one has gone");
        list.forget_gone(std::slice::from_ref(&one.counts));
        lines(&one).add(100);
        assert_eq!(list.total().lines, 27);
        list.replace(vec![two.clone(), two.clone()]);
        assert_eq!(list.total().lines, 27, "shared counters count once");
    }
}
