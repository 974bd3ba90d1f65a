//! Reading the configuration again while the program runs: at SIGHUP all of it, and every `reload.period` the files of
//! `filebeat.config.inputs` and `filebeat.config.modules`.
//!
//! Only inputs and the processing of their events can change without a restart. A new configuration is taken or
//! refused as a whole, and refused for the same mistakes as at a start; the previous one then stays. Other changes in
//! it are logged.

use super::Running;
use super::discovery::{Discovery, Readers, lock};
use super::remembered::Remembered;
use crate::agent::Agent;
use crate::assemble::{Parts, assemble};
use crate::cli::Global;
use crate::config_files::{AllConfigFiles, Stamp};
use crate::load::{load_beside, load_settings};
use crate::system::System;
use crate::watchers::Watchers;
use anyhow::{Result, anyhow};
use skidder_autodiscover::Autodiscover;
use skidder_config::{Problems, Settings};
use skidder_os::{Monotonic, Timestamp};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Settings that take effect without a restart.
const LIVE: [&str; 7] = [
    "filebeat.inputs",
    "filebeat.config",
    "filebeat.modules",
    "tags",
    "fields",
    "fields_under_root",
    "processors",
];

/// How long the program sleeps if nothing is due.
const NEVER: Duration = Duration::from_hours(24);

/// Reads the configuration again.
pub(crate) struct Reloader {
    global: Global,
    system: System,
    agent: Agent,
    /// The settings in force.
    settings: Settings,
    period: Option<Duration>,
    due: Monotonic,
    /// The files beside the configuration, as they were read last.
    stamps: Vec<Stamp>,
    requested: bool,
    /// Reads further inputs; its ingest pipelines are those that the running outputs load.
    readers: Readers,
    /// What makes inputs while the program runs, with `filebeat.autodiscover`.
    discovery: Option<Discovery>,
}

/// A configuration to switch to.
struct Fresh {
    settings: Settings,
    parts: Parts,
    /// Settings of it that have no effect before the next start.
    idle: Vec<String>,
}

impl Reloader {
    /// For the configuration that was started with.
    pub(crate) fn new(
        global: &Global,
        system: &System,
        settings: Settings,
        parts: &mut Parts,
    ) -> Self {
        let mut reloader = Self {
            global: global.clone(),
            system: system.clone(),
            agent: parts.agent.clone(),
            settings,
            period: parts.reload_period,
            due: Monotonic::default(),
            // Unknown: the first check finds all changes since the start.
            stamps: Vec::new(),
            requested: false,
            readers: Readers::take(parts),
            discovery: None,
        };
        reloader.plan(system.clock.monotonic());
        reloader
    }

    /// From now on inputs are made, too.
    pub(crate) fn discover(
        &mut self,
        machine: Arc<Mutex<Autodiscover>>,
        ended_since: Timestamp,
        running: &Running,
    ) -> Result<()> {
        let wake = running.wake_of_discovery();
        let watchers =
            Watchers::start(lock(&machine).providers(), &self.system, ended_since, wake)?;
        let fs = Arc::clone(&self.system.fs);
        let remembered = Remembered::open(fs, &self.settings.paths().data);
        self.discovery = Some(Discovery::new(machine, watchers, remembered));
        Ok(())
    }

    /// Inputs of autodiscover have ended for one output.
    pub(crate) fn exchanged(&mut self, keys: &[String]) {
        if let Some(discovery) = &mut self.discovery {
            discovery.ended(keys);
        }
    }

    /// Requests that everything is read again.
    pub(crate) fn ask(&mut self) {
        self.requested = true;
    }

    /// When to call [`Self::step`] at the latest.
    pub(crate) fn due(&self) -> Monotonic {
        let discovery = self.discovery.as_ref().and_then(Discovery::due);
        discovery.map_or(self.due, |due| due.min(self.due))
    }

    /// Reads again what is due, unless the last change is still under way, and takes what was discovered.
    pub(crate) fn step(&mut self, running: &mut Running) {
        self.reload(running);
        if let Some(discovery) = &mut self.discovery {
            discovery.step(&self.readers, running, self.system.clock.monotonic());
        }
    }

    fn reload(&mut self, running: &mut Running) {
        let now = self.system.clock.monotonic();
        let is_due = self.period.is_some() && self.due <= now;
        if self.due <= now {
            self.plan(now);
        }
        if running.is_changing() || !(self.requested || is_due) {
            return;
        }
        let stamps = AllConfigFiles::of(&self.settings).stamps(&*self.system.fs);
        running.reloads.scanned();
        let is_requested = std::mem::take(&mut self.requested);
        if !is_requested && stamps == self.stamps {
            return;
        }
        self.stamps = stamps;
        if is_requested {
            self.system.service.reloading();
        }
        let taken = self.read(is_requested).and_then(|fresh| self.take(fresh, running));
        if is_requested {
            self.system.service.ready();
        }
        let at = self.system.clock.wall();
        match taken {
            // What was refused may be as it was before.
            Ok(None) if !is_requested && !running.reloads.was_refused() => {}
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
            let settings = load_beside(&self.global, self.settings.clone(), &self.system)?;
            let parts = self.assemble(&settings, false)?;
            return Ok(Fresh { settings, parts, idle: Vec::new() });
        }
        let new = load_settings(&self.global, &self.system)?;
        let idle = self.settings.differences(&new, &LIVE);
        let settings = self.settings.with_live(&new, &LIVE);
        if !idle.is_empty() {
            // The next start must not fail with a configuration that is accepted now.
            self.assemble(&new, true)?;
        }
        let parts = self.assemble(&settings, false)?;
        Ok(Fresh { settings, parts, idle })
    }

    /// Reads and checks all settings; for a `trial` nothing is made that lasts.
    fn assemble(&self, settings: &Settings, trial: bool) -> Result<Parts> {
        let problems = Problems::new();
        let system = if trial { self.system.clone().for_trial() } else { self.system.clone() };
        let agent = |name: Option<String>| {
            Some(name.map_or_else(|| self.agent.clone(), |name| self.agent.named(Some(name))))
        };
        let parts = assemble(settings, &problems, &system.config_context(), agent);
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

    /// Ends and begins inputs; returns how many. `None` if none changes.
    fn take(&mut self, fresh: Fresh, running: &mut Running) -> Result<Option<(u64, u64)>> {
        let Fresh { settings, mut parts, idle } = fresh;
        self.period = parts.reload_period;
        // Before the first event that names one.
        let pipelines = Arc::clone(&self.readers.pipelines);
        pipelines.reload(parts.pipelines.filesets());
        self.readers = Readers::take(&mut parts);
        // Running outputs load those that they know.
        self.readers.pipelines = pipelines;
        if let Some(discovery) = &mut self.discovery {
            for (output, input) in discovery.anew(&self.readers) {
                parts.outputs[output].inputs.push(input);
            }
        }
        let counts = running.change(parts.outputs)?;
        if !idle.is_empty() {
            tracing::warn!(
                settings = idle.join(", "),
                "these settings have changed and take effect with the next start"
            );
        }
        self.settings = settings;
        self.plan(self.system.clock.monotonic());
        Ok(counts)
    }
}
