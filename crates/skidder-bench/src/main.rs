//! The end-to-end benchmark: workload, counting sink, runner, table
fn main() {}
