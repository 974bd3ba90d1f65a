//! Memory of rotated files that were read long ago.

use super::*;

impl Kubelet {
    /// Longer than anything is remembered that is not there.
    fn rest(&mut self) {
        for _ in 0..30 {
            self.read();
            self.input.advance(11);
        }
    }

    /// The next log of the container, to which the link leads from now on.
    fn lead_to(&mut self, run: usize, count: usize) -> String {
        let log = format!("{DIRECTORY}/{run}.log");
        self.input.advance(1);
        let text = lines("a line of the container", self.next..self.next + count);
        self.next += count;
        self.input.fs.append_as_other(&log, text.as_bytes());
        self.input.fs.symlink_as_other(&log, LINK);
        log
    }
}

#[test]
fn what_was_rotated_long_ago_is_not_taken_for_what_came_after_a_deleted_log() {
    // Found by the simulated world (209182, containers 1000734): the log that the link led to was deleted while the program
    // was down. Its entry outlived it, because there was a file at its path, with a state from long ago.
    let mut kubelet = Kubelet::new(true, true);
    kubelet.write(200);
    kubelet.read();
    kubelet.input.fs.remove_as_other(LOG);
    kubelet.input.fs.append_as_other("/other", b"has the inode now\n");
    kubelet.write(200);
    kubelet = kubelet.restart();
    kubelet.read();
    kubelet.rotate();
    kubelet.write(200);
    kubelet.rest();
    assert!(kubelet.input.fs.peek(Kubelet::rotated(0)).is_some());
    kubelet = kubelet.restart();
    kubelet.finish("after a deleted log");
}

#[test]
fn a_rotated_file_that_is_read_late_does_not_make_the_next_one_new() {
    // Found by the simulated world (301260): one rotated file was known longer than the next one, which was taken for new
    // because it comes after what is known.
    let mut kubelet = Kubelet::new(true, true);
    kubelet.write(200);
    kubelet.input.fs.append_as_other(LOG, b"a line without an end");
    kubelet.read();
    for rotation in 0..2 {
        kubelet.input.fs.rename_as_other(LOG, Kubelet::rotated(rotation));
        kubelet.input.advance(1);
        kubelet.write(200);
        kubelet.read();
    }
    kubelet.rest();
    kubelet = kubelet.restart();
    kubelet.rest();
    kubelet.input.fs.append_as_other(Kubelet::rotated(0), b"\n");
    kubelet.rest();
    kubelet.messages.retain(|message| message != "a line without an end");
    kubelet.finish("a late line");
}

#[test]
fn the_log_of_an_earlier_run_is_not_what_one_was_compressed_to() {
    // Found by the simulated world (containers 601386): `1.log` was removed, and `0.log`, read long ago, was taken for what
    // it was compressed to.
    let mut kubelet = Kubelet::new(true, true);
    kubelet.write(200);
    kubelet.read();
    let removed = kubelet.lead_to(1, 200);
    kubelet.rest();
    kubelet.lead_to(2, 200);
    kubelet.read();
    kubelet.input.fs.remove_as_other(removed);
    kubelet.finish("an earlier run");
}

#[test]
fn what_could_not_be_looked_at_before_the_link_led_nowhere_is_read() {
    // Found by the simulated world (containers 1000251): the log waited to be looked at again, was rotated, and the one
    // after it removed. A scan had seen where the link led, but nothing of the log was known.
    let mut kubelet = Kubelet::new(true, true);
    kubelet.read();
    kubelet.input.advance(1);
    kubelet.write(20);
    kubelet.input.advance(5);
    let fault = Fault::nth(1, io::ErrorKind::TimedOut).of(Operation::Open).on("/logs");
    kubelet.input.fs.inject(fault);
    kubelet.read();
    kubelet.input.fs.rename_as_other(LOG, Kubelet::rotated(0));
    for _ in 0..3 {
        kubelet.read();
        kubelet.input.advance(11);
    }
    kubelet.write(1);
    kubelet.finish("a log that waited");
}

#[test]
fn what_was_read_long_ago_is_known_when_it_is_compressed_and_the_log_of_the_link_deleted() {
    // Found by the simulated world (containers 3000953): the rotated file had been let go of, so that nothing was known
    // of what it was compressed to when nothing was left of the log that came after it.
    for down in [false, true] {
        let mut kubelet = Kubelet::new(true, true);
        kubelet.write(20);
        kubelet.read();
        kubelet.rotate();
        kubelet.write(20);
        kubelet.rest();
        if down {
            kubelet = kubelet.restart();
            kubelet.rest();
        }
        kubelet.compress();
        kubelet.input.fs.remove_as_other(LOG);
        kubelet.input.advance(1);
        kubelet.write(20);
        kubelet.finish(&format!("down {down}"));
    }
}

#[test]
fn what_was_read_long_ago_is_not_read_again_because_it_is_touched() {
    for down in [false, true] {
        let mut kubelet = Kubelet::new(true, true);
        kubelet.write(200);
        kubelet.read();
        for _ in 0..2 {
            kubelet.rotate();
            kubelet.write(200);
            kubelet.rest();
        }
        let now = kubelet.input.clock.wall();
        kubelet.input.fs.set_modified_as_other(Kubelet::rotated(1), now);
        kubelet.input.fs.set_modified_as_other(format!("{}.gz", Kubelet::rotated(0)), now);
        kubelet.input.fs.remove_as_other(LOG);
        if down {
            kubelet = kubelet.restart();
        }
        kubelet.write(20);
        kubelet.finish(&format!("down {down}"));
    }
}

#[test]
fn what_was_rotated_away_from_a_link_is_not_deleted() {
    let mut kubelet = Kubelet::new(true, true);
    let mut settings = kubelet.input.context.settings.clone();
    settings.delete = Some(Duration::from_secs(30));
    kubelet.input = kubelet.input.restarted_with(settings);
    kubelet.write(20);
    kubelet.read();
    kubelet.rotate();
    for _ in 0..30 {
        kubelet.write(1);
        kubelet.read();
        kubelet.input.advance(11);
    }
    assert!(kubelet.input.fs.peek(Kubelet::rotated(0)).is_some());
}

#[test]
fn what_was_found_and_not_read_before_a_stop_is_read_after_it() {
    // Found by the built program, in one of a hundred runs: what the link had led to in between was found, but the program
    // ended before anything of it was read, while what came after it was read already. The next start went no further
    // back than that.
    for is_written in [false, true] {
        let mut kubelet = Kubelet::new(false, true);
        kubelet.write(100);
        kubelet.read();
        for _ in 0..3 {
            kubelet.rotate();
            kubelet.write(100);
        }
        kubelet.read();
        assert_eq!(kubelet.messages.len(), 400);
        let unread = Kubelet::rotated(1);
        kubelet.input.saved.change(|saved| {
            let before = saved.len();
            saved.retain(|_, entry| !entry.meta.source.to_string_lossy().starts_with(&unread));
            assert_eq!(saved.len(), before - 1, "what was saved of one is forgotten");
        });
        kubelet.messages.retain(|text| {
            let number: usize =
                text.rsplit(' ').next().and_then(|n| n.parse().ok()).expect("a number");
            !(100..200).contains(&number)
        });
        if is_written {
            kubelet.write(1);
        }
        kubelet
            .restart()
            .finish(&format!("nothing was read of one in between, written to: {is_written}"));
    }
}

#[test]
fn what_was_found_and_not_read_before_a_stop_is_read_though_all_that_was_older_is_gone() {
    // As above, but what the link had led to before is deleted while the program is down: only its saved name shows
    // that what has a newer one was rotated away after it. What was rotated away before the first look stays unread.
    for (written, rotated_again) in [(false, false), (true, false), (false, true)] {
        let mut kubelet = Kubelet::new(true, true);
        kubelet.rotate();
        kubelet.input.fs.append_as_other(Kubelet::rotated(0), b"before the first look\n");
        kubelet.write(100);
        kubelet.input.advance(3600);
        kubelet.read();
        for _ in 0..4 {
            kubelet.rotate();
            kubelet.write(100);
        }
        kubelet.read();
        assert_eq!(kubelet.messages.len(), 500);
        let unread = [Kubelet::rotated(2), Kubelet::rotated(3)];
        kubelet.input.saved.change(|saved| {
            saved.retain(|_, entry| {
                let path = entry.meta.source.to_string_lossy();
                !unread.iter().any(|unread| path.starts_with(unread))
            });
            assert_eq!(saved.len(), 3, "the oldest, the newest rotated one, and the log");
        });
        kubelet.messages.retain(|text| {
            let number: usize =
                text.rsplit(' ').next().and_then(|n| n.parse().ok()).expect("a number");
            !(100..300).contains(&number)
        });
        if written {
            kubelet.write(1);
        }
        if rotated_again {
            kubelet.rotate();
            kubelet.write(1);
        }
        kubelet.input.fs.remove_as_other(format!("{}.gz", Kubelet::rotated(1)));
        down_for_long(kubelet).finish(&format!(
            "nothing was read of two in between, written to: {written}, rotated again: {rotated_again}"
        ));
    }
}
