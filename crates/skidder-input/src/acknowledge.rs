//! One acknowledgement for several outputs.

use skidder_event::{Acknowledge, Acknowledgement, Progress};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// What several outputs owe together: it is accepted when all of them have accepted, and rejected as soon as none of them
/// can any more.
#[derive(Debug)]
struct Joint {
    left: AtomicUsize,
    owed: Mutex<Option<Acknowledgement>>,
}

/// The part of one output.
#[derive(Debug)]
struct Part(Arc<Joint>);

impl Acknowledge for Part {
    fn accept(self: Box<Self>) {
        if self.0.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            let owed = self.0.owed.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(owed) = owed {
                owed.accept();
            }
        }
    }

    fn reject(self: Box<Self>) {
        // The far side sends all of it again, to every output: it need not wait for the others.
        drop(self.0.owed.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}

/// The same progress for so many outputs, which is at least one.
pub(crate) fn for_each(progress: Progress, outputs: usize) -> Vec<Progress> {
    if outputs <= 1 {
        return vec![progress];
    }
    match progress {
        Progress::Acknowledge(owed, bytes) => {
            let joint = Joint { left: AtomicUsize::new(outputs), owed: Mutex::new(Some(owed)) };
            let joint = Arc::new(joint);
            let part = |_| {
                let part = Acknowledgement::new(Part(Arc::clone(&joint)));
                Progress::Acknowledge(part, bytes)
            };
            (0..outputs).map(part).collect()
        }
        Progress::Nothing(bytes) => (0..outputs).map(|_| Progress::Nothing(bytes)).collect(),
        Progress::Cursor(part) => (0..outputs).map(|_| Progress::Cursor(part.clone())).collect(),
        Progress::File(part) => (0..outputs).map(|_| Progress::File(part.clone())).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct FarSide(Arc<Mutex<Vec<bool>>>);

    impl Acknowledge for FarSide {
        fn accept(self: Box<Self>) {
            self.0.lock().expect("no panic").push(true);
        }

        fn reject(self: Box<Self>) {
            self.0.lock().expect("no panic").push(false);
        }
    }

    fn parts(outputs: usize) -> (Vec<Acknowledgement>, Arc<Mutex<Vec<bool>>>) {
        let verdicts: Arc<Mutex<Vec<bool>>> = Arc::default();
        let owed = Acknowledgement::new(FarSide(Arc::clone(&verdicts)));
        let parts = for_each(Progress::Acknowledge(owed, 7), outputs).into_iter();
        let owed = parts.map(|part| match part {
            Progress::Acknowledge(owed, 7) => owed,
            other => panic!("{other:?}"),
        });
        (owed.collect(), verdicts)
    }

    #[test]
    fn it_is_accepted_with_the_last_output_and_rejected_with_the_first_that_cannot() {
        for outputs in [1, 2, 3] {
            let (owed, verdicts) = parts(outputs);
            for (number, part) in owed.into_iter().enumerate() {
                assert!(verdicts.lock().expect("no panic").is_empty(), "{number} of {outputs}");
                part.accept();
            }
            assert_eq!(*verdicts.lock().expect("no panic"), [true]);
        }
        let (mut owed, verdicts) = parts(3);
        owed.remove(1).accept();
        drop(owed.remove(0));
        assert_eq!(
            *verdicts.lock().expect("no panic"),
            [false],
            "it need not wait for the last one"
        );
        owed.remove(0).accept();
        assert_eq!(*verdicts.lock().expect("no panic"), [false], "once");
    }
}
