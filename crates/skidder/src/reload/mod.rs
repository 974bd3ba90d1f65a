//! Reading the configuration again while the program runs: at SIGHUP all of it, and every `reload.period` the files of
//! `filebeat.config.inputs` and `filebeat.config.modules`.
//!
//! What can be changed without a restart is which inputs there are and what they do. A new configuration is taken as a
//! whole or refused as a whole, and refused for the same mistakes as at a start; the one before goes on then. What it
//! says of anything else is named in the log.

mod files;
mod print;

pub(crate) use files::{AT_FILEBEAT, AllConfigFiles, OLDER, items, refuse_modules, with_files};
pub(crate) use print::{InputPrint, Prints};

use crate::agent::Agent;
use crate::assemble::{Parts, assemble};
use crate::cli::Global;
use crate::commands::{World, load_beside, load_settings};
use crate::run::Running;
use anyhow::{Result, anyhow};
use files::Stamp;
use skidder_config::{Problems, Settings};
use skidder_os::Monotonic;
use std::time::Duration;

/// Settings that take effect without a restart.
const LIVE: [&str; 6] =
    ["filebeat.inputs", "filebeat.config", "tags", "fields", "fields_under_root", "processors"];

/// How long the program sleeps if nothing is to be looked at.
const NEVER: Duration = Duration::from_hours(24);

/// Keeps what is needed to read the configuration again.
pub(crate) struct Reloader {
    global: Global,
    world: World,
    agent: Agent,
    /// What is in force.
    settings: Settings,
    period: Option<Duration>,
    due: Monotonic,
    /// The files beside the configuration, as they were read last.
    stamps: Vec<Stamp>,
    asked: bool,
}

/// A configuration to be taken.
struct Fresh {
    settings: Settings,
    parts: Parts,
    /// Settings of it that have no effect before the next start.
    idle: Vec<String>,
}

impl Reloader {
    /// For the configuration that was started with.
    pub(crate) fn new(global: &Global, world: &World, settings: Settings, parts: &Parts) -> Self {
        let mut reloader = Self {
            global: global.clone(),
            world: world.clone(),
            agent: parts.agent.clone(),
            settings,
            period: parts.reload_period,
            due: Monotonic::default(),
            // Not known: what has changed since the start is found the first time.
            stamps: Vec::new(),
            asked: false,
        };
        reloader.plan(world.clock.monotonic());
        reloader
    }

    /// Everything is to be read again.
    pub(crate) fn ask(&mut self) {
        self.asked = true;
    }

    /// When it wants to be called at the latest.
    pub(crate) fn due(&self) -> Monotonic {
        self.due
    }

    /// Reads again what is to be read, unless the change before is not over.
    pub(crate) fn step(&mut self, running: &mut Running) {
        let now = self.world.clock.monotonic();
        let is_due = self.period.is_some() && self.due <= now;
        if self.due <= now {
            self.plan(now);
        }
        if running.is_changing() || !(self.asked || is_due) {
            return;
        }
        let stamps = AllConfigFiles::of(&self.settings).stamps(&*self.world.fs);
        running.reloads.scanned();
        let is_asked = std::mem::take(&mut self.asked);
        if !is_asked && stamps == self.stamps {
            return;
        }
        self.stamps = stamps;
        if is_asked {
            self.world.service.reloading();
        }
        let taken = self.read(is_asked).and_then(|fresh| self.take(fresh, running));
        if is_asked {
            self.world.service.ready();
        }
        let at = self.world.clock.wall();
        match taken {
            Ok(None) if !is_asked => {}
            Ok(counts) => {
                let (began, ended) = counts.unwrap_or_default();
                running.reloads.taken(at, began, ended);
                tracing::info!(began, ended, "the configuration was read again");
            }
            Err(error) => {
                let error = format!("{error:#}");
                tracing::error!(
                    %error,
                    "the configuration was read again and is refused; the one before stays in force"
                );
                running.reloads.refused(at, error);
            }
        }
    }

    fn plan(&mut self, now: Monotonic) {
        self.due = now + self.period.unwrap_or(NEVER);
    }

    /// Reads everything, or the files beside the configuration only.
    fn read(&self, everything: bool) -> Result<Fresh> {
        if !everything {
            let settings = load_beside(&self.global, self.settings.clone(), &self.world)?;
            let parts = self.assemble(&settings, false)?;
            return Ok(Fresh { settings, parts, idle: Vec::new() });
        }
        let new = load_settings(&self.global, &self.world)?;
        let idle = self.settings.differences(&new, &LIVE);
        let settings = self.settings.with_live(&new, &LIVE);
        if !idle.is_empty() {
            // The next start must not fail with what is accepted now.
            self.assemble(&new, true)?;
        }
        let parts = self.assemble(&settings, false)?;
        Ok(Fresh { settings, parts, idle })
    }

    /// Reads and checks all settings; for a `trial` nothing is made that lasts.
    fn assemble(&self, settings: &Settings, trial: bool) -> Result<Parts> {
        let problems = Problems::new();
        let world = if trial { self.world.clone().for_trial() } else { self.world.clone() };
        let agent = |name: Option<String>| {
            Some(name.map_or_else(|| self.agent.clone(), |name| self.agent.named(Some(name))))
        };
        let parts = assemble(settings, &problems, &world.outside(), agent);
        let text = problems.to_string();
        match parts {
            Some(parts) if !problems.has_errors() => {
                for line in text.lines() {
                    tracing::warn!("{line}");
                }
                Ok(parts)
            }
            _ => Err(anyhow!(text.strip_prefix("error: ").unwrap_or(&text).to_owned())),
        }
    }

    /// Lets inputs end and begin; says how many. Nothing if all are as they were.
    fn take(&mut self, fresh: Fresh, running: &mut Running) -> Result<Option<(u64, u64)>> {
        let Fresh { settings, parts, idle } = fresh;
        self.period = parts.reload_period;
        let counts = running.change(parts.outputs)?;
        if !idle.is_empty() {
            tracing::warn!(
                settings = idle.join(", "),
                "these settings have changed and take effect with the next start"
            );
        }
        self.settings = settings;
        self.plan(self.world.clock.monotonic());
        Ok(counts)
    }
}
