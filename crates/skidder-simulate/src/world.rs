//! The run of one seed: which actor is next, and the end, when everything must arrive.

use crate::oracle::LineId;
use crate::others::Others;
use crate::program::{Config, MARKER, Program};
use crate::scenario::Scenario;
use crate::stage::Stage;
use crate::story::log_operation;
use crate::themes::{Special, Theme, Themes};
use skidder_testkit::Random;
use std::collections::BTreeMap;
use std::time::Duration;

/// Rounds of scanning and reading after the last fault in which everything must arrive: longer than any
/// back-off, grace and idle time.
const ROUNDS_MAX: usize = 60;

/// Rounds after everything has arrived, in which nothing may come again.
const ROUNDS_AFTER: usize = 10;

/// Time of a round.
const ROUND: Duration = Duration::from_secs(11);

/// Steps in which what a scan has found must be read and delivered.
const STEPS_OF_ROUND_MAX: u64 = 1_000_000;

/// How a seed is run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Print what happens to standard error.
    pub story: bool,
    /// Print each operation of the program on the disk to standard error.
    pub operations: bool,
    /// Seeds have this theme.
    pub theme: Option<Theme>,
}

/// The result of a run that went well.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// Lines that other programs wrote.
    pub lines: usize,
    /// Actions of all.
    pub steps: u64,
    /// Two runs of a seed have the same.
    pub digest: u64,
}

/// A violation, and the state at that point.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The first thing that must not be.
    pub what: String,
    /// Files and sources at that moment.
    pub state: Vec<String>,
}

/// Runs one seed.
pub fn run(seed: u64, options: Options) -> Result<Outcome, Failure> {
    let mut world = World::new(seed, options)?;
    match world.live() {
        Ok(steps) => {
            let (lines, digest) = (world.stage.truth.lines(), world.stage.story.digest());
            Ok(Outcome { lines, steps, digest })
        }
        Err(what) => {
            let state = world.program.as_ref().map(Program::sources).unwrap_or_default();
            Err(Failure { what, state })
        }
    }
}

/// Sources of chance, apart from each other, so that a change of one does not change all.
struct Chance {
    order: Random,
    others: Random,
    program: Random,
}

struct World {
    scenario: Scenario,
    chance: Chance,
    stage: Stage,
    others: Others,
    /// Taken out while one life goes over into the next.
    program: Option<Program>,
}

impl World {
    fn new(seed: u64, options: Options) -> Result<Self, Failure> {
        let mut random = Random::new(seed);
        let scenario = Scenario::new(&mut random, Themes::new(seed, options.theme));
        let mut stage = Stage::new(options.story);
        if options.operations {
            stage.fs.listen(log_operation);
        }
        stage.story.log(|| format!("{scenario:#?}"));
        for directory in ["/logs/a", "/logs/b", "/logs/pods", "/away"] {
            stage.fs.create_dir_as_other(directory);
        }
        if scenario.themes.special == Special::Containers {
            stage.fs.create_dir_as_other("/logs/containers");
        }
        stage.truth.set_outputs(scenario.themes.outputs());
        if matches!(scenario.themes.special, Special::Names | Special::Ids) {
            stage.truth.be_forgetful();
            stage.fs.write_as_other(MARKER, b"machine 7\n");
        }
        if let Some(notices) = &scenario.themes.notices {
            for directory in &notices.blind {
                stage.fs.blind_below(directory);
            }
            stage.fs.set_watches_max(notices.watches_max);
            stage.fs.unreliable_notices(notices.unreliable);
            if notices.unreliable.is_some() {
                stage.truth.be_forgetful();
            }
        }
        if scenario.short_transfers {
            stage.fs.short_transfers(Some(seed));
        }
        let mut chance = Chance {
            order: Random::new(random.number()),
            others: Random::new(random.number()),
            program: Random::new(random.number()),
        };
        let mut others = Others::new(scenario.habits.clone(), &scenario.themes, &mut chance.others);
        let config = Config::random(&scenario.themes, &mut chance.program);
        let program = Program::start(config, &scenario, &mut stage, &mut others)
            .map_err(|what| Failure { what, state: Vec::new() })?;
        Ok(Self { scenario, chance, stage, others, program: Some(program) })
    }

    /// The whole run; returns the number of steps.
    fn live(&mut self) -> Result<u64, String> {
        for step in 0..self.scenario.steps {
            self.stage.story.step(step);
            self.step()?;
            let program = self.program.as_ref().map_or(0, Program::mark);
            self.stage.story.mark(program ^ self.stage.fs.trace());
        }
        self.arrive()?;
        Ok(self.scenario.steps)
    }

    /// One action of the program or of another actor.
    fn step(&mut self) -> Result<(), String> {
        let Self { scenario, chance, stage, others, program } = self;
        let Some(mut alive) = program.take() else { return Err("nobody lives".to_owned()) };
        let pause = chance.order.below(scenario.pause_max.as_millis() as u64);
        if chance.order.one_in(4) {
            stage.clock.advance(Duration::from_millis(pause));
            others.hurry(stage);
        }
        if chance.order.below(10) < scenario.others {
            others.act(stage, &mut chance.others, &alive);
        } else {
            let acted = alive.act(scenario, stage, &mut chance.program);
            let acted = acted.and_then(|end| alive.check_kept(stage, others).map(|()| end));
            match acted {
                Ok(None) => {}
                Ok(Some(end)) => {
                    alive = alive.end(end, scenario, stage, others, &mut chance.program)?;
                }
                Err(what) => {
                    *program = Some(alive);
                    return Err(what);
                }
            }
        }
        *program = Some(alive);
        Ok(())
    }

    /// All trouble is over: everything arrives, and nothing more comes after it.
    fn arrive(&mut self) -> Result<(), String> {
        let Self { scenario, chance, stage, others, program } = self;
        stage.story.log(|| "the end".to_owned());
        let Some(mut alive) = program.take() else { return Err("nobody lives".to_owned()) };
        if let Some(end) = alive.dying() {
            alive = alive.end(end, scenario, stage, others, &mut chance.program)?;
        }
        stage.fs.clear_faults();
        stage.fs.set_capacity(None);
        stage.fs.unreliable_notices(None);
        others.finish(stage, &mut chance.others);
        alive = alive.see_all(scenario, stage, others, &mut chance.program)?;
        alive.fair_weather();
        let program = program.insert(alive);
        let mut after = 0;
        for round in 0..ROUNDS_MAX + ROUNDS_AFTER {
            stage.story.step(scenario.steps + round as u64);
            program.look_around(stage);
            program.check_kept(stage, others)?;
            if !program.settle_down(STEPS_OF_ROUND_MAX, stage, &mut chance.program)? {
                return Err("liveness: what was read is not delivered".to_owned());
            }
            stage.story.mark(program.mark() ^ stage.fs.trace());
            stage.clock.advance(ROUND);
            after += usize::from(after > 0 || stage.truth.is_complete());
            if after > ROUNDS_AFTER {
                break;
            }
        }
        for output in 0..stage.truth.outputs() {
            stage.truth.select(output);
            let missing = stage.truth.missing();
            if !missing.is_empty() {
                return Err(explain(&missing, output, others));
            }
            let letters = stage.fs.peek(program.dead_letters_of(output)).unwrap_or_default();
            stage.truth.check_dead(&letters)?;
        }
        Ok(())
    }
}

/// Which lines are missing, and where their files are.
fn explain(missing: &[LineId], output: usize, others: &Others) -> String {
    let mut contents: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for line in missing {
        contents.entry(line.content).or_default().push(line.number);
    }
    let of = if output == 0 { String::new() } else { format!(" at output {output}") };
    let mut text = format!("lost: {} lines have not arrived{of}:", missing.len());
    for (content, numbers) in contents {
        let places = others.places(content);
        let first = numbers.first().copied().unwrap_or_default();
        let last = numbers.last().copied().unwrap_or_default();
        text.push_str(&format!(
            " {} of c{content} (n{first}..=n{last}), in {places:?};",
            numbers.len()
        ));
    }
    text
}
