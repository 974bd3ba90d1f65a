//! Seeds that have found something, each with a word on what it was. They are run by the tests.
//!
//! A seed means what it meant only as long as the simulation draws its numbers in the same order; each of
//! these mistakes has a test of its own as well, near the code that was wrong.

/// Seeds that failed once, and why.
pub const FOUND: &[(u64, &str)] = &[
    (
        3382,
        "a compressed file at offset 0 was known by path and inode only, and both were used again",
    ),
    (4249, "a compressed file of which the scan saw one byte became a plain source"),
    (1882, "a new file waited for the descriptor of a deleted one that began alike"),
    (2130, "the same"),
    (2228, "the same"),
    (
        87,
        "with parsers, nobody looked at the bytes before the cursor of a file that was written anew",
    ),
    (24, "a group that had waited long enough in such a file asked for turn after turn"),
];
