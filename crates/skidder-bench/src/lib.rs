//! The end-to-end benchmark of the built program: it makes the workload, counts what arrives in a
//! sink on the loopback interface, measures whole processes, and prints the table of goals.
//!
//! Nothing here is linked into the program that is measured. For one row it is the other way: the code that handles
//! answers runs here.

pub mod cluster;
pub mod drain;
mod heap;
pub mod measure;
pub mod peers;
pub mod queue;
pub mod rows;
pub mod sink;
pub mod stage;
pub mod statistics;
pub mod table;
