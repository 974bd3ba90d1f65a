//! Seeds that have found something, each with a word on what it was. They are run by the tests.
//!
//! A seed means what it meant only as long as the simulation draws its numbers in the same order; each of
//! these mistakes has a test of its own as well, near the code that was wrong.

use crate::themes::Theme;

/// Seeds that failed once, with the theme that they were given, if they were given one, and why.
pub const FOUND: &[(u64, Option<Theme>, &str)] = &[
    (
        3382,
        None,
        "a compressed file at offset 0 was known by path and inode only, and both were used again",
    ),
    (4249, None, "a compressed file of which the scan saw one byte became a plain source"),
    (1882, None, "a new file waited for the descriptor of a deleted one that began alike"),
    (2130, None, "the same"),
    (2228, None, "the same"),
    (
        87,
        None,
        "with parsers, nobody looked at the bytes before the cursor of a file that was written anew",
    ),
    (24, None, "a group that had waited long enough in such a file asked for turn after turn"),
    (
        33,
        CONTAINERS,
        "a copy was compared with what had been written anew where its original was, and read again",
    ),
    (37, CONTAINERS, "a short file that a link had led to was known by the path of the link only"),
    (
        118,
        CONTAINERS,
        "what a link led to was written anew, then rotated while the program was down",
    ),
    (
        148,
        CONTAINERS,
        "a compressed copy was told of and taken over while a plain one waited for the next scan",
    ),
    (250, CONTAINERS, "a compressed file was taken for one that began with the same byte"),
    (286, CONTAINERS, "a rotated file whose reader had missed it was not followed any more"),
    (245, CONTAINERS, "the inode of what a link had led to was used again"),
    (
        569,
        CONTAINERS,
        "a link that was told of was not looked at by scans, and its target not watched",
    ),
    (642, CONTAINERS, "what was rotated before the last save was taken for read"),
    (148, PINS, "a pinned file was written anew and removed between two scans"),
    (153, PINS, "the pin had the place of its source, so that a copy was not known by its name"),
    (159, PINS, "the same as 148"),
    (163, PINS, "the pin of what was compressed and removed was read again"),
    (5010, CONTAINERS, "a group had waited since the turn began, and not since it was read"),
    (3031, PINS, "a power cut brought back the pin of a file of which nothing was known any more"),
    (261, PINS, "a pin was released while a group of lines in it waited"),
    (3048, PINS, "what had been known by its pin was read no further under its own name"),
    (
        24433,
        None,
        "what was saved as the end of a compressed file was that of another one before it",
    ),
    (34264, None, "the same"),
    (
        37851,
        None,
        "two sources changed places for ever, each with a file that the other had refused",
    ),
    (
        20441,
        None,
        "all that a link had led to had one inode, and its content was not asked any more",
    ),
    (10283, CONTAINERS, "the same"),
    (
        11709,
        CONTAINERS,
        "nothing was read of what a rotated file was compressed from, only its name was known",
    ),
    (110_226, None, "an empty file that a link led to at the start had the inode of one before it"),
    (102_727, CONTAINERS, "the same"),
    (
        114_531,
        None,
        "a link led nowhere for some scans, and what was rotated before that was too old",
    ),
    (
        101_376,
        CONTAINERS,
        "a group of a deleted file was let go of for a new one with its first byte",
    ),
    (20047, None, "the reader of a short file read on in what was written over it"),
    (
        116_717,
        None,
        "what had just been written was given out with the groups of a file that is closed",
    ),
    (217_346, None, "a log was passed over because another began as a short one that was known"),
    (212_891, None, "what was compressed long ago was read when a link led somewhere again"),
    (218_201, None, "two names of a file were two sources"),
    (35391, None, "nothing but the pin was known of a file, and so nothing when that was gone"),
    (1634, PINS, "the same"),
    (10753, PINS, "the same as 20047"),
    (6015, PINS, "an open file was read on that was written anew under its first bytes"),
    (
        565,
        None,
        "a log beside a link waited for the reader of a deleted one, until the program ended",
    ),
    (
        104_874,
        PINS,
        "the pin of a file that waited for another to be read was taken for a spare name; and pins were looked at in \
         the order of a hash map",
    ),
    (1135, None, "copies were compared in the order of a hash map"),
    (318, PINS, "a cursor behind an empty line was proved by that line alone"),
    (
        200_160,
        CONTAINERS,
        "a link led to an empty file before and after, both with one inode, and to others in between",
    ),
    (206_795, DELETE, "a power cut brought back what was deleted and forgotten"),
    (501_244, OUTPUTS, "the same"),
    (
        204_830,
        None,
        "a compressed copy, not yet complete, got the inode of the log that was removed",
    ),
    (
        200_793,
        PINS,
        "a notice showed a compressed copy in the making before a scan saw the plain file, which was longer then",
    ),
    (801_053, OUTPUTS, "the same"),
    (900_905, CONTAINERS, "the same"),
    (
        209_182,
        None,
        "what was saved of a log that a link had led to outlived it, and told of a time long ago",
    ),
    (1_000_734, CONTAINERS, "the same"),
    (
        301_260,
        None,
        "of two rotated files the newer one was forgotten first, and taken for new then",
    ),
    (
        601_386,
        CONTAINERS,
        "the log of an earlier run was taken for what a later one was compressed to",
    ),
    (
        1_000_251,
        CONTAINERS,
        "what a link led to had waited to be looked at, was rotated, and the link led nowhere: it was lost",
    ),
    (
        301_249,
        CONTAINERS,
        "a cursor went to the first of two compressed files with one known byte, and was behind its end",
    ),
    (1_001_862, None, "the same"),
    (
        601_322,
        PINS,
        "the pin of a source was removed as a spare name of another one, and its own name with it",
    ),
    (
        220,
        DISK,
        "a log came back that the registry proves, and was taken for one that had begun with a few bytes of it",
    ),
    (
        1_000_582,
        PINS,
        "what was known of a removed log was given up for another that began with its few bytes",
    ),
    (
        2_003_682,
        None,
        "what could not be read of a deleted log was lost when another one with its header took its place",
    ),
    (
        3_024_633,
        None,
        "a copy was opened while it was away, and not looked at when it came back as it was: it was lost",
    ),
    (2_043_235, None, "a part of an event was given out of a compressed file in the making"),
    (
        2_053_922,
        None,
        "the same of a file that was closed as inactive, when its lines had just come",
    ),
    (
        2_010_620,
        None,
        "what was saved of a short file that was away went to the one at its path, as rewritten",
    ),
    (2_026_458, None, "a compressed log was taken for a short file that had its inode"),
    (2_059_293, None, "the same, of a log that was in its place"),
    (3_057_421, None, "the same"),
    (
        2_055_327,
        None,
        "what was saved of a file of two bytes was preferred to what was saved of the log itself",
    ),
    (
        2_006_950,
        OUTPUTS,
        "what was saved of short files could not be had at the start, and was not asked for again",
    ),
    (
        2_000_375,
        PINS,
        "a short compressed file was taken for a log of which more had been read than it holds",
    ),
    (
        2_001_377,
        PINS,
        "nothing but the pin had been known of a file, and its own name came back after that",
    ),
    (2_000_660, CONTAINERS, "a source was forgotten in the scan in which its copy waited for it"),
    (
        5_001_494,
        Some(Theme::Ids),
        "with a new id, a compressed file got the verified end of another one that had been at its path: it was lost",
    ),
    (
        3_000_953,
        CONTAINERS,
        "a rotated file was let go of, compressed, and the log that came after it deleted: it was taken for new",
    ),
    (
        3_054_767,
        None,
        "a copy had the inode of a short file with its first line, and was not compared with its original",
    ),
    (
        3_001_467,
        OUTPUTS,
        "one of two notifiers of the simulated disk took what both were to be told: the world's own mistake",
    ),
    (
        5_000_433,
        OUTPUTS,
        "a source was forgotten with its copy, though that had gone just now, and came back at once",
    ),
    (
        9_001_135,
        DELETE,
        "a file was deleted between two events of it: the oracle took that for the middle of one",
    ),
    (
        2184,
        RELOAD,
        "a group of lines in a file without a name was given out before its time, because its input ended",
    ),
    (
        9_100_161,
        CONTAINERS,
        "a link led to another log with the inode of one of which four bytes were known: what came between was lost",
    ),
    (
        9_100_808,
        PINS,
        "a pinned file came back where another had been with which it began, and was taken for that, written anew",
    ),
    (
        9_201_193,
        PINS,
        "the pin of what was not delivered was removed when its source seemed to go on in another compressed file: lost",
    ),
    (
        9_500_531,
        PINS,
        "behind a power cut a log written anew was known by its pin, as its own name had an entry that did not fit",
    ),
    (
        9_801_437,
        PINS,
        "killed before the name of a pinned file was saved: what it was compressed to came back later and was read again",
    ),
    (
        7_000_317,
        RELOAD,
        "a file that had waited for a turn was deleted while its input ended, before it began again: lost",
    ),
    (
        7_000_388,
        RELOAD,
        "a reader that was let go of in its turn had another one, as a write had woken it, and read past its input's end",
    ),
    (
        7_003_378,
        RELOAD,
        "the oracle took a promise to keep a file open for one about its copy, in which the source went on",
    ),
];

const CONTAINERS: Option<Theme> = Some(Theme::Containers);
const PINS: Option<Theme> = Some(Theme::Pins);
const DISK: Option<Theme> = Some(Theme::Disk);
const DELETE: Option<Theme> = Some(Theme::Delete);
const OUTPUTS: Option<Theme> = Some(Theme::Outputs);
const RELOAD: Option<Theme> = Some(Theme::Reload);
