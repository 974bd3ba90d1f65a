//! What is remembered of files that were let go of, and what is not.

use super::*;

impl Kubelet {
    /// Long enough for all that is read to be let go of.
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
fn what_was_rotated_and_let_go_of_is_not_taken_for_what_came_after_a_deleted_log() {
    // Found by the simulated world (209182, containers 1000734): the log that the link led to was deleted while the program
    // was down. Its entry outlived it, because there was a file at its path, and told of a time long ago.
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
fn what_was_rotated_is_let_go_of_in_its_order() {
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
    kubelet.finish("in its order");
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
