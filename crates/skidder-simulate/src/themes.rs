//! What a seed is about besides: each theme is drawn apart from everything else, and two seeds of five have
//! none, so that those mean what they meant before there were themes.

use crate::records::Dialect;
use skidder_testkit::Random;

/// Keeps the numbers of themes apart from all others. With this one the seeds of [`crate::FOUND`] that are older
/// than the themes have none.
const APART: u64 = 0x3e << 32;

/// The themes of a seed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Themes {
    /// The program listens to change notification.
    pub(crate) notices: Option<Notices>,
    /// How the events of each input are written.
    pub(crate) dialects: [Dialect; 3],
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
        let notices = random.one_in(2).then(|| Notices::new(&mut random));
        let mut dialects = [Dialect::Plain; 3];
        if random.one_in(2) {
            let log = Dialect::of_log(&mut random);
            dialects = [log, Dialect::of_log(&mut random), Dialect::of_container(&mut random)];
        }
        Self { notices, dialects }
    }

    /// Whether lines are joined to events.
    pub(crate) fn joins(&self) -> bool {
        self.dialects != [Dialect::Plain; 3]
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
