//! The subject of a seed. Each takes some kinds of trouble and leaves out the others, so that rare
//! combinations come up often, and some runs have none of them.

use crate::themes::{Special, Themes};
use skidder_testkit::Random;
use std::time::Duration;

/// What the other programs do.
#[derive(Clone, Debug)]
pub(crate) struct Habits {
    /// 0: seldom rotated, 2: often.
    pub(crate) rotation: u64,
    pub(crate) compression: bool,
    pub(crate) copytruncate: bool,
    /// Some logs begin with the same lines each time, longer than a fingerprint.
    pub(crate) headers: bool,
    pub(crate) rewrites: bool,
    pub(crate) deletes_unread: bool,
    pub(crate) moves: bool,
    pub(crate) links: bool,
}

impl Habits {
    /// Leaves out what would make it impossible to say what must arrive.
    fn suit(mut self, special: Special) -> Self {
        match special {
            Special::None | Special::Names | Special::Ids | Special::Disk | Special::Reload => {}
            // What the kubelet rotated is followed until it is read, and nothing else touches it.
            Special::Containers => (self.moves, self.links) = (false, false),
            Special::Pins(_) => self.deletes_unread = true,
            Special::Hang => (self.deletes_unread, self.rotation) = (true, 2),
            // What is deleted cannot be moved or compressed any more.
            Special::Outputs { deletes: false, .. } => self.deletes_unread = false,
            Special::Outputs { .. } => {
                (self.moves, self.links, self.deletes_unread) = (false, false, false);
                (self.compression, self.copytruncate) = (false, false);
            }
            Special::Deletion => {
                (self.moves, self.links) = (false, false);
                (self.compression, self.copytruncate) = (false, false);
            }
        }
        self
    }
}

/// The outcomes of requests, in percent of them; the others are answered in full.
#[derive(Clone, Debug, Default)]
pub(crate) struct Weather {
    /// Nothing was stored, and that is known.
    pub(crate) failed: u64,
    /// Stored, but the answer is lost.
    pub(crate) unreported: u64,
    /// Some rows were stored, some must be sent again, some are refused.
    pub(crate) partial: u64,
    /// No answer for long.
    pub(crate) stalled: u64,
}

/// How the program ends now and then, in ends of 10,000 steps.
#[derive(Clone, Debug)]
pub(crate) struct Ends {
    pub(crate) kills: u64,
    pub(crate) power_cuts: u64,
    pub(crate) stops: u64,
    /// A new life has another configuration.
    pub(crate) reconfigures: bool,
}

impl Ends {
    /// There is one life only.
    fn are_none(&self) -> bool {
        self.kills + self.power_cuts + self.stops == 0
    }
}

/// The subject of a seed.
#[derive(Clone, Debug)]
pub(crate) struct Scenario {
    pub(crate) steps: u64,
    /// Of ten steps, how many are those of other programs.
    pub(crate) others: u64,
    pub(crate) habits: Habits,
    pub(crate) weather: Weather,
    pub(crate) ends: Ends,
    /// Looking at and reading log files fails now and then.
    pub(crate) log_faults: bool,
    /// Writing the registry and the dead letters fails now and then.
    pub(crate) data_faults: bool,
    pub(crate) short_transfers: bool,
    /// Longest time between two steps.
    pub(crate) pause_max: Duration,
    pub(crate) themes: Themes,
}

impl Scenario {
    /// The outcomes of the requests of an output: each has its own trouble.
    pub(crate) fn weather_of(&self, output: usize) -> Weather {
        let Weather { failed, unreported, partial, stalled } = self.weather;
        match self.themes.special {
            Special::Outputs { stuck, .. } if stuck == Some(output) => {
                Weather { failed: 100, ..Weather::default() }
            }
            Special::Hang => Weather { stalled: 90, ..self.weather.clone() },
            _ if output == 1 => Weather {
                failed: stalled,
                unreported: partial / 2,
                partial: unreported,
                stalled: failed,
            },
            _ if output == 2 => Weather::default(),
            _ => self.weather.clone(),
        }
    }

    pub(crate) fn new(random: &mut Random, themes: Themes) -> Self {
        let chance = |random: &mut Random, one_in: u64| random.one_in(one_in);
        let habits = Habits {
            rotation: random.below(3),
            compression: !chance(random, 4),
            copytruncate: chance(random, 2),
            headers: chance(random, 3),
            rewrites: chance(random, 3),
            deletes_unread: chance(random, 4),
            moves: chance(random, 3),
            links: chance(random, 3),
        };
        let habits = habits.suit(themes.special);
        let percent = |random: &mut Random, most: u64| {
            if random.one_in(2) { 0 } else { random.below(most) }
        };
        let weather = Weather {
            failed: percent(random, 40),
            unreported: percent(random, 20),
            partial: percent(random, 40),
            stalled: percent(random, 30),
        };
        let ends = Ends {
            kills: percent(random, 80),
            power_cuts: percent(random, 80),
            stops: percent(random, 40),
            reconfigures: chance(random, 2),
        };
        let lives_once = ends.are_none();
        Self {
            steps: 200 + random.below(1400),
            others: 1 + random.below(3),
            habits,
            weather,
            ends,
            // What was rotated away from a link and could not be read yet is followed by this life only: nothing of it can
            // be saved, and the program does not look behind what the registry knows.
            log_faults: chance(random, 3)
                && (themes.special != Special::Containers || lives_once)
                && themes.special != Special::Hang,
            data_faults: chance(random, 4),
            short_transfers: chance(random, 3),
            pause_max: Duration::from_millis([40, 400, 2000][random.below(3) as usize]),
            themes,
        }
    }
}
