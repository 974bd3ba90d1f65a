//! Queues as earlier versions wrote them.

use super::*;

const V1: [(&str, &[u8]); 2] = [
    ("000000000001.skq", include_bytes!("../../../testdata/queue-v1/000000000001.skq")),
    ("queue.state", include_bytes!("../../../testdata/queue-v1/queue.state")),
];

#[test]
fn a_queue_of_the_first_version_is_delivered_and_goes_on() {
    let fs = disk();
    for (name, bytes) in V1 {
        fs.write_as_other(Path::new(DIRECTORY).join(name), bytes);
    }
    let life = Life::new(&fs);
    assert_eq!((life.opened.events, life.opened.torn_bytes, life.opened.cut_events), (12, 0, 0));
    life.read(100..110);
    life.write_all();
    while life.queue.read_step().expect("the disk can be read") != DiskStep::Idle {}
    let (mut taken, mut lines) = (Vec::new(), Vec::new());
    while life.queue.back().try_take(TakeLimits { events: 3, bytes: 1 << 20 }, &mut taken) {
        for delivery in taken.drain(..) {
            let origin = delivery.ticket.origin().expect("its file is named");
            for row in delivery.rows.clone() {
                let row = &delivery.batch.rows()[row as usize];
                let text = String::from_utf8_lossy(delivery.batch.text(row.message)).into_owned();
                let name = origin.name.path().and_then(|path| path.file_name()).unwrap_or_default();
                lines.push(format!("{} {}: {text}", name.display(), row.offset));
            }
            delivery.ticket.delivered(delivery.len() as u32);
        }
    }
    life.check();
    assert_eq!(lines.len(), 22);
    assert_eq!(lines[0], "app.log 0: first 00001 7 of a file");
    assert_eq!(lines[1], "app.log 24: first 00002 7 of a file");
    assert!(lines[21].ends_with("line 109 of the log"), "{}", lines[21]);
    assert_eq!(life.lost(), 0);
    // New segments have the newest version.
    let versions: Vec<u8> =
        segments(&fs).iter().map(|path| fs.peek(path).expect("it is there")[8]).collect();
    assert_eq!(versions.last(), Some(&3));
    life.queue.maintain();
    drop(life);
    let again = Life::new(&fs);
    assert_eq!(again.opened.events, 0);
}
