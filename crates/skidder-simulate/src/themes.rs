//! What a seed is about besides: each theme is drawn apart from everything else, and two seeds of five have
//! none, so that those mean what they meant before there were themes.

use skidder_testkit::Random;

/// Keeps the numbers of themes apart from all others. With this one the seeds of [`crate::FOUND`] that are older
/// than the themes have none.
const APART: u64 = 0x3e << 32;

/// The themes of a seed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Themes {
    /// The program listens to change notification.
    pub(crate) notices: Option<Notices>,
}

/// What the file system tells of changes.
#[derive(Clone, Debug)]
pub(crate) struct Notices {
    /// Some are lost without a word, out of order or doubled: as on a network mount that tells of some changes.
    /// All arrives, but a scan may see a compressed file before the plain one that it was made from, and
    /// read both: what comes twice is forgiven.
    pub(crate) unreliable: Option<u64>,
    /// The queue overflows now and then, and that is told.
    pub(crate) overflows: bool,
    /// It tells nothing of these directories, and says so.
    pub(crate) blind: Vec<&'static str>,
    /// So many directories can be watched.
    pub(crate) watches_max: Option<usize>,
}

impl Themes {
    pub(crate) fn new(seed: u64) -> Self {
        let mut random = Random::new(seed ^ APART);
        if random.below(5) < 2 {
            return Self::default();
        }
        Self { notices: random.one_in(2).then(|| Notices::new(&mut random)) }
    }
}

impl Notices {
    fn new(random: &mut Random) -> Self {
        let blind = ["/logs/a", "/logs/b/x", "/logs/pods"];
        Self {
            unreliable: random.one_in(2).then(|| random.number()),
            overflows: random.one_in(2),
            blind: blind.into_iter().filter(|_| random.one_in(6)).collect(),
            watches_max: random.one_in(4).then(|| random.below(8) as usize),
        }
    }
}
