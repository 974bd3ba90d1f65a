//! The binary: command line, signals, exit codes
fn main() {}
