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
    /// The other programs go on while the program is down.
    pub(crate) pauses: bool,
    pub(crate) special: Special,
}

/// A theme that can be selected; one or two seeds in ten with themes have it by themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Theme {
    /// The logs of containers are found by links that the kubelet makes.
    Containers,
    /// `pin`.
    Pins,
    /// `file_identity` is another one in each life.
    Names,
    /// `delete`.
    Delete,
    /// An id that is added, and `take_over`.
    Ids,
    /// Two or three outputs; only seeds that are given it have it.
    Outputs,
    /// `queue.disk`; only seeds that are given it have it.
    Disk,
    /// Inputs end and begin again while the program runs; only seeds that are given it have it.
    Reload,
    /// The output hangs for long, and files are rotated away and deleted meanwhile; only seeds that are given it have it.
    Hang,
}

impl Theme {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Containers,
        Self::Pins,
        Self::Names,
        Self::Delete,
        Self::Ids,
        Self::Outputs,
        Self::Disk,
        Self::Reload,
        Self::Hang,
    ];

    /// The theme of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|theme| theme.name() == name)
    }

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Containers => "containers",
            Self::Pins => "pins",
            Self::Names => "names",
            Self::Delete => "delete",
            Self::Ids => "ids",
            Self::Outputs => "outputs",
            Self::Disk => "disk",
            Self::Reload => "reload",
            Self::Hang => "hang",
        }
    }

    fn special(self) -> Special {
        match self {
            Self::Containers => Special::Containers,
            Self::Pins => Special::Pins(0),
            Self::Names => Special::Names,
            Self::Delete => Special::Deletion,
            Self::Ids => Special::Ids,
            Self::Outputs => {
                Special::Outputs { count: 2, disk: false, deletes: false, stuck: None }
            }
            Self::Disk => Special::Disk,
            Self::Reload => Special::Reload,
            Self::Hang => Special::Hang,
        }
    }
}

/// At most one of these at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Special {
    #[default]
    None,
    /// The logs of containers are found by links that the kubelet makes, and by nothing else.
    Containers,
    /// `pin`, with so many bytes.
    Pins(u64),
    /// `file_identity` is another one in each life. A file that has another name may be read again: what comes
    /// twice is forgiven.
    Names,
    /// `delete` in some lives.
    Deletion,
    /// An input has no id at first, then one, then another with `take_over`. State is found again by the path, so
    /// that a file that was renamed meanwhile is read again: what comes twice is forgiven.
    Ids,
    /// So many outputs, each with a pipeline of its own; some are missing in some lives, and the order changes. Some
    /// have `queue.disk`, `delete` is on in some lives, and one is stuck until the end.
    Outputs { count: usize, disk: bool, deletes: bool, stuck: Option<usize> },
    /// `queue.disk`.
    Disk,
    /// Inputs end and begin again while the program runs.
    Reload,
    /// The output hangs for long, and files are rotated away and deleted meanwhile: what was found is kept open.
    Hang,
}

/// Which changes the file system notifies.
#[derive(Clone, Debug)]
pub(crate) struct Notices {
    /// Some are lost silently, out of order or doubled: as on a network mount that notifies some changes.
    /// All arrives, but a scan may see a compressed file before the plain one that it was made from, and
    /// read both: what comes twice is forgiven.
    pub(crate) unreliable: Option<u64>,
    /// The queue overflows now and then, and reports that.
    pub(crate) overflows: bool,
    /// These directories cannot be watched.
    pub(crate) blind: Vec<&'static str>,
    /// So many directories can be watched.
    pub(crate) watches_max: Option<usize>,
}

impl Themes {
    pub(crate) fn new(seed: u64, theme: Option<Theme>) -> Self {
        let mut random = Random::new(seed ^ APART);
        if random.below(5) < 2 && theme.is_none() {
            return Self::default();
        }
        let notices = random.one_in(2).then(|| Notices::new(&mut random));
        let mut dialects = [Dialect::Plain; 3];
        if random.one_in(2) {
            let log = Dialect::of_log(&mut random);
            dialects = [log, Dialect::of_log(&mut random), Dialect::of_container(&mut random)];
        }
        let special = match random.below(10) {
            4..6 => Special::Names,
            6 => Special::Deletion,
            7 => Special::Ids,
            8 => Special::Containers,
            9 => Special::Pins(0),
            _ => Special::None,
        };
        let special = match theme.map_or(special, Theme::special) {
            Special::Pins(_) => Special::Pins(if random.one_in(2) { 1 << 30 } else { 10_000 }),
            Special::Outputs { .. } => {
                let count = 2 + random.below(2) as usize;
                let (disk, deletes) = (random.one_in(3), random.one_in(2));
                let stuck = random.one_in(2).then(|| random.below(count as u64) as usize);
                Special::Outputs { count, disk, deletes, stuck }
            }
            other => other,
        };
        Self { notices, dialects, pauses: random.one_in(3), special }
    }

    /// Outputs of the whole run.
    pub(crate) fn outputs(&self) -> usize {
        match self.special {
            Special::Outputs { count, .. } => count,
            _ => 1,
        }
    }

    /// Whether outputs have `queue.disk`.
    pub(crate) fn has_disk(&self) -> bool {
        matches!(self.special, Special::Disk | Special::Outputs { disk: true, .. })
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
