//! Settings that several outputs have.

use skidder_config::Section;

/// `workers`, or `worker`, of which there is 1 if nothing is said and `most` at most. `noun` is what they are, for
/// messages: `a number of connections`.
pub fn read_workers(section: &Section<'_>, noun: &str, most: usize) -> usize {
    let workers = |key| section.usize(key).named(noun).range(1..=most);
    let worker = workers("worker").optional();
    workers("workers").optional().or(worker).unwrap_or(1)
}

/// `bulk_max_size`. Zero and less leave the size to the queue, as in Filebeat.
pub fn read_bulk_max_size(section: &Section<'_>, default: usize) -> usize {
    let size = section.i64("bulk_max_size").named("a number of events");
    size.map(|events| usize::try_from(events).unwrap_or(0)).or(default)
}
