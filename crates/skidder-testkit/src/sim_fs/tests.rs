//! What the simulation promises, one by one; `differential.rs` compares it with a real file system.

mod differential;

use super::*;
use skidder_os::{Clock, read_to_end, write_all_at};
use std::io::ErrorKind;
use std::time::Duration;

fn new() -> (SimFs, SimClock) {
    let clock = SimClock::new();
    let fs = SimFs::new(&clock);
    fs.create_dir_as_other("/state");
    (fs, clock)
}

fn write(fs: &SimFs, path: &str, bytes: &[u8]) -> Box<dyn File> {
    let file = fs.open_write(Path::new(path), OpenMode::Keep, 0o600).unwrap();
    write_all_at(&*file, bytes, 0).unwrap();
    file
}

fn content(file: &dyn File) -> Vec<u8> {
    read_to_end(file, usize::MAX).unwrap()
}

fn inode(fs: &SimFs, path: &str) -> u64 {
    fs.peek_metadata(path).unwrap().inode
}

#[test]
fn inode_numbers_are_used_again_lowest_first() {
    let (fs, _) = new();
    for name in ["/a", "/b", "/c"] {
        fs.write_as_other(name, b"");
    }
    let (a, b) = (inode(&fs, "/a"), inode(&fs, "/b"));
    let open = fs.open(Path::new("/a")).unwrap();
    fs.remove_as_other("/a");
    fs.remove_as_other("/b");
    fs.write_as_other("/d", b"");
    assert_eq!(inode(&fs, "/d"), b, "the number of `a` is held by its handle");
    drop(open);
    fs.write_as_other("/e", b"");
    assert_eq!(inode(&fs, "/e"), a);
}

#[test]
fn deleted_file_lives_as_long_as_its_handle() {
    let (fs, _) = new();
    fs.write_as_other("/a", b"hello");
    let open = fs.open(Path::new("/a")).unwrap();
    fs.remove_as_other("/a");
    assert_eq!(content(&*open), b"hello");
    assert_eq!(open.metadata().unwrap().links, 0);
    assert_eq!(fs.used(), 4096);
    drop(open);
    assert_eq!(fs.used(), 0);
}

#[test]
fn hard_links_share_the_file() {
    let (fs, _) = new();
    fs.write_as_other("/a", b"1");
    fs.hard_link_as_other("/a", "/b");
    fs.append_as_other("/b", b"2");
    assert_eq!(fs.peek("/a").unwrap(), b"12");
    assert_eq!(fs.peek_metadata("/a").unwrap().links, 2);
    fs.remove_as_other("/a");
    assert_eq!(fs.peek_metadata("/b").unwrap().links, 1);
}

#[test]
fn times_come_from_the_clock() {
    let (fs, clock) = new();
    fs.write_as_other("/a", b"1");
    clock.advance(Duration::from_secs(5));
    assert_eq!(clock.wall().since(fs.metadata(Path::new("/a")).unwrap().modified).as_secs(), 5);
    fs.append_as_other("/a", b"2");
    assert_eq!(fs.metadata(Path::new("/a")).unwrap().modified, clock.wall());
}

#[test]
fn copytruncate_keeps_the_inode_of_the_emptied_file() {
    let (fs, _) = new();
    fs.write_as_other("/a", b"hello");
    let before = inode(&fs, "/a");
    fs.copytruncate_as_other("/a", "/a.1");
    assert_eq!(inode(&fs, "/a"), before);
    assert_eq!((fs.peek("/a").unwrap(), fs.peek("/a.1").unwrap()), (vec![], b"hello".to_vec()));
}

#[test]
fn other_writers_follow_the_file_not_the_name() {
    let (fs, _) = new();
    let writer = fs.open_as_other("/log/a");
    writer.append(b"1");
    fs.rename_as_other("/log/a", "/log/a.1");
    fs.kill();
    writer.append(b"2");
    assert_eq!(fs.peek("/log/a.1").unwrap(), b"12");
    fs.remove_dir_as_other("/log");
    assert_eq!(writer.metadata().links, 0);
}

#[test]
fn endless_links_are_an_error_and_pipes_do_not_block() {
    let (fs, _) = new();
    fs.symlink_as_other("/b", "/a");
    fs.symlink_as_other("/a", "/b");
    assert!(fs.metadata(Path::new("/a")).is_err());
    assert_eq!(fs.symlink_metadata(Path::new("/a")).unwrap().kind, FileKind::Symlink);
    fs.pipe_as_other("/p");
    let pipe = fs.open(Path::new("/p")).unwrap();
    assert_eq!(pipe.metadata().unwrap().kind, FileKind::Other);
    assert!(pipe.read_at(&mut [0], 0).is_err());
}

#[test]
fn lock_is_exclusive_until_the_handle_or_the_process_is_gone() {
    let (fs, _) = new();
    let first = write(&fs, "/state/lock", b"");
    let second = write(&fs, "/state/lock", b"");
    assert!(first.try_lock().unwrap() && first.try_lock().unwrap());
    assert!(!second.try_lock().unwrap());
    drop(first);
    assert!(second.try_lock().unwrap());
    fs.kill();
    assert!(second.try_lock().is_err(), "the process is dead");
    assert!(write(&fs, "/state/lock", b"").try_lock().unwrap());
}

#[test]
fn crash_drops_what_was_not_synced() {
    let (fs, _) = new();
    let file = write(&fs, "/state/a", b"old");
    file.sync().unwrap();
    fs.sync_dir(Path::new("/state")).unwrap();
    write_all_at(&*file, b"newer", 0).unwrap();
    write(&fs, "/state/b", b"b").sync().unwrap();
    fs.crash();
    assert_eq!(fs.peek("/state/a").unwrap(), b"old");
    assert_eq!(fs.peek("/state/b"), None, "the name was not synced");
    assert!(file.read_at(&mut [0], 0).is_err(), "the handle is dead");
}

#[test]
fn crash_undoes_a_cut_and_a_removal_that_were_not_synced() {
    let (fs, _) = new();
    let file = write(&fs, "/state/a", &[7; 2000]);
    file.sync().unwrap();
    fs.sync_dir(Path::new("/state")).unwrap();
    file.set_len(100).unwrap();
    file.set_len(1000).unwrap();
    fs.remove_file(Path::new("/state/a")).unwrap();
    drop(file);
    fs.write_as_other("/other", b"takes the inode number");
    fs.crash();
    assert_eq!(fs.peek("/state/a").unwrap(), [7; 2000]);
    assert_ne!(inode(&fs, "/state/a"), inode(&fs, "/other"));
}

#[test]
fn rename_is_atomic_in_a_crash_and_durable_after_sync_dir() {
    for synced in [false, true] {
        for seed in 0..20 {
            let (fs, _) = new();
            write(&fs, "/state/a", b"old").sync().unwrap();
            fs.sync_dir(Path::new("/state")).unwrap();
            write(&fs, "/state/tmp", b"new").sync().unwrap();
            fs.rename(Path::new("/state/tmp"), Path::new("/state/a")).unwrap();
            if synced {
                fs.sync_dir(Path::new("/state")).unwrap();
            }
            fs.crash_torn(seed);
            let left = fs.peek("/state/a").unwrap();
            assert!(left == b"new" || (!synced && left == b"old"), "{left:?}");
        }
    }
}

#[test]
fn torn_crash_mixes_old_and_new_sectors_and_never_within_one() {
    let mut kinds = [0_u32; 3];
    for seed in 0..100 {
        let (fs, _) = new();
        let file = write(&fs, "/state/a", &[1; 4096]);
        file.sync().unwrap();
        fs.sync_dir(Path::new("/state")).unwrap();
        write_all_at(&*file, &[2; 4096], 0).unwrap();
        fs.crash_torn(seed);
        let left = fs.peek("/state/a").unwrap();
        for sector in left.chunks(content::SECTOR) {
            assert!(sector.iter().all(|byte| *byte == sector[0]));
        }
        let new = left.chunks(content::SECTOR).filter(|sector| sector[0] == 2).count();
        kinds[match new {
            0 => 0,
            8 => 1,
            _ => 2,
        }] += 1;
    }
    assert!(kinds.iter().all(|count| *count > 5), "{kinds:?}");
}

#[test]
fn failed_sync_loses_data_that_can_still_be_read() {
    let (fs, _) = new();
    let file = write(&fs, "/state/a", &[1; 1024]);
    file.sync().unwrap();
    fs.sync_dir(Path::new("/state")).unwrap();
    write_all_at(&*file, &[2; 1024], 0).unwrap();
    fs.inject(Fault::nth(1, ErrorKind::Other).of(Operation::Sync));
    assert!(file.sync().is_err());
    file.sync().unwrap();
    assert_eq!(content(&*file), [2; 1024]);
    write_all_at(&*file, &[3; 512], 0).unwrap();
    file.sync().unwrap();
    fs.crash();
    let left = fs.peek("/state/a").unwrap();
    assert_eq!((left[0], left[1023]), (3, 1), "only what was written again is there");
}

#[test]
fn a_lying_disk_keeps_nothing() {
    let (fs, _) = new();
    fs.lie_about_syncs(true);
    write(&fs, "/state/a", b"hello").sync().unwrap();
    fs.sync_dir(Path::new("/state")).unwrap();
    fs.crash();
    assert_eq!(fs.peek("/state/a"), None);
}

#[test]
fn logs_of_others_survive_a_crash_whatever_we_had_open() {
    let (fs, _) = new();
    fs.write_as_other("/log/a", b"1");
    let reader = fs.open(Path::new("/log/a")).unwrap();
    fs.append_as_other("/log/a", b"2");
    fs.rename_as_other("/log/a", "/log/b");
    write(&fs, "/state/x", b"").sync().unwrap();
    fs.crash();
    assert_eq!(fs.peek("/log/b").unwrap(), b"12");
    assert_eq!(fs.peek_names("/log"), ["b"]);
    assert_eq!(fs.peek("/state/x"), None);
    drop(reader);
}

#[test]
fn kill_loses_handles_but_no_data() {
    let (fs, _) = new();
    let file = write(&fs, "/state/a", b"hello");
    fs.remove_file(Path::new("/state/a")).unwrap();
    write(&fs, "/state/b", b"b");
    fs.kill();
    assert!(file.sync().is_err());
    assert_eq!(fs.peek("/state/b").unwrap(), b"b");
    assert_eq!(fs.used(), 4096, "the deleted file is gone with its handle");
}

#[test]
fn chosen_operations_fail_and_are_counted() {
    let (fs, _) = new();
    let file = write(&fs, "/state/a", b"hello");
    let before = fs.operations();
    fs.inject(Fault::nth(2, ErrorKind::Interrupted).of(Operation::Read).on("/state").times(2));
    let mut buffer = [0; 5];
    assert_eq!(file.read_at(&mut buffer, 0).unwrap(), 5);
    for _ in 0..2 {
        assert_eq!(file.read_at(&mut buffer, 0).unwrap_err().kind(), ErrorKind::Interrupted);
    }
    assert_eq!(file.read_at(&mut buffer, 0).unwrap(), 5);
    assert_eq!(fs.operations(), before + 4);
    assert_eq!(fs.operations_of(Operation::Read), 4);

    fs.inject(Fault::nth(1, ErrorKind::StorageFull).forever());
    assert_eq!(file.sync().unwrap_err().kind(), ErrorKind::StorageFull);
    assert_eq!(file.set_len(0).unwrap_err().kind(), ErrorKind::StorageFull);
    fs.clear_faults();
    assert_eq!(content(&*file), b"hello");
}

#[test]
fn the_order_of_operations_leaves_a_trace() {
    let trace = |paths: [&str; 2], bytes: &[u8]| {
        let (fs, _) = new();
        for path in paths {
            write(&fs, path, bytes);
        }
        fs.trace()
    };
    let first = trace(["/state/a", "/state/b"], b"hello");
    assert_eq!(first, trace(["/state/a", "/state/b"], b"world"));
    assert_ne!(first, trace(["/state/b", "/state/a"], b"hello"));
    assert_ne!(first, trace(["/state/a", "/state/b"], b"longer"));
}

#[test]
fn halted_machine_does_nothing_until_it_is_started_again() {
    let (fs, _) = new();
    let file = write(&fs, "/state/a", b"hello");
    fs.halt_at(2);
    file.set_len(1).unwrap();
    assert!(file.set_len(0).is_err() && fs.halted());
    assert!(fs.open(Path::new("/state/a")).is_err());
    fs.kill();
    assert_eq!(content(&*fs.open(Path::new("/state/a")).unwrap()), b"h");
}

#[test]
fn transfers_can_be_short_and_loops_still_complete() {
    let (fs, _) = new();
    fs.short_transfers(Some(1));
    let bytes: Vec<u8> = (0..10_000_u32).map(|number| number as u8).collect();
    let file = write(&fs, "/state/a", &bytes);
    assert_eq!(content(&*file), bytes);
    let mut buffer = [0; 1000];
    assert!((0..20).any(|_| file.read_at(&mut buffer, 0).unwrap() < 1000));
}

#[test]
fn full_disk_takes_a_part_then_nothing_and_holes_are_free() {
    let (fs, _) = new();
    fs.set_capacity(Some(8192));
    let file = write(&fs, "/state/a", &[1; 4000]);
    file.set_len(1 << 20).unwrap();
    assert_eq!(fs.used(), 4096);
    assert_eq!(file.write_at(&[2; 8192], 4000).unwrap(), 4192);
    assert_eq!(file.write_at(&[2; 10], 8192).unwrap_err().kind(), ErrorKind::StorageFull);
    assert_eq!(file.write_at(&[3; 10], 4096).unwrap(), 10, "a block that is there can be written");
    fs.append_as_other("/log", &[4; 10_000]);
    file.set_len(0).unwrap();
    fs.set_capacity(None);
    assert_eq!(file.write_at(&[2; 8192], 0).unwrap(), 8192);
}

#[test]
fn same_seed_gives_the_same_crash() {
    let run = |seed| {
        let (fs, _) = new();
        for number in 0..20_u8 {
            let file = write(&fs, &format!("/state/{number}"), &[number; 3000]);
            file.sync().unwrap();
            write_all_at(&*file, &[number + 100; 3000], 1000).unwrap();
        }
        fs.crash_torn(seed);
        fs.peek_names("/state")
            .iter()
            .map(|name| fs.peek(Path::new("/state").join(name)))
            .collect::<Vec<_>>()
    };
    assert_eq!(run(3), run(3));
    assert!((0..10).any(|seed| run(seed) != run(3)));
}

/// Measures; run with `--ignored --nocapture`.
#[test]
#[ignore = "measures"]
fn thousands_of_operations_take_a_millisecond() {
    let (fs, _) = new();
    let file = write(&fs, "/state/a", &[0; 4096]);
    let clock = skidder_os::SystemClock::new();
    let mut buffer = [0; 100];
    for (name, operation) in [
        (
            "read 100 B",
            &mut (|| file.read_at(&mut buffer, 50).map(drop)) as &mut dyn FnMut() -> io::Result<()>,
        ),
        ("stat by path", &mut || fs.metadata(Path::new("/state/a")).map(drop)),
        ("open and close", &mut || fs.open(Path::new("/state/a")).map(drop)),
        ("write 4 KiB and sync", &mut || {
            file.write_at(&[1; 4096], 0)?;
            file.sync()
        }),
    ] {
        let start = clock.monotonic();
        for _ in 0..100_000 {
            operation().unwrap();
        }
        println!("{name}: {:?}", clock.monotonic().since(start) / 100_000);
    }
}
