//! The same events on the same files cause the same operations on the disk, in the same order: the simulated world
//! replays from a seed, and hash maps have another order each time.

use crate::readers::ReadersLimits;
use crate::testing::{Input, lines, settings};
use std::path::PathBuf;

/// Enough that two hash maps do not have the same order by chance.
const FILES: usize = 12;

/// The operations of two runs on their disks, in order, as numbers.
fn twice(run: impl Fn() -> Input) -> [u64; 2] {
    [run(), run()].map(|input| input.fs.trace())
}

#[test]
fn pins_are_looked_at_in_an_order() {
    let [one, other] = twice(|| {
        let mut settings = settings();
        settings.pin.max_bytes = Some(1 << 20);
        settings.pin.directory = Some(PathBuf::from("/data/pins"));
        settings.close.on_eof = true;
        let limits = ReadersLimits { open_files: 100, decoders: 10 };
        let mut input = Input::with(settings, limits, 100);
        for number in 0..FILES {
            let text = format!("{number} is shorter than a fingerprint\n");
            input.fs.write_as_other(format!("/logs/{number}.log"), text.as_bytes());
        }
        input.round();
        for number in 0..FILES {
            let name = format!("/logs/{number}.log");
            input.fs.append_as_other(&name, b"not read yet\n");
            input.scan();
            input.fs.remove_as_other(&name);
        }
        input.scan();
        let mut input = input.restarted();
        input.round();
        input
    });
    assert_eq!(one, other);
}

#[test]
fn copies_are_compared_in_an_order() {
    let [one, other] = twice(|| {
        let mut input = Input::new();
        input.fs.write_as_other("/logs/all.log", lines("line", 0..200).as_bytes());
        input.round();
        for number in 0..FILES {
            let copy = format!("/logs/copy{number}.log");
            input.fs.write_as_other(copy, lines("line", 0..200).as_bytes());
        }
        input.round();
        input.fs.append_as_other("/logs/all.log", b"more\n");
        assert_eq!(input.scan().held, FILES);
        input.fs.append_as_other("/logs/all.log", b"more\n");
        input.round();
        input
    });
    assert_eq!(one, other);
}
