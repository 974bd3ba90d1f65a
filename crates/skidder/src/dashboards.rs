//! Dashboards: for `skidder setup`, and at the start with `setup.dashboards.enabled`.

use crate::runtime::runtime;
use crate::system::System;
use anyhow::{Context as _, Result};
use skidder_config::{Secret, Section, Settings};
use skidder_kibana::{Dashboards, LoadError, OutputLogin};
use skidder_output_elasticsearch::{SETUP_DASHBOARDS, SETUP_KIBANA};
use std::sync::Arc;
use tokio::runtime::Runtime;

/// Reads `setup.dashboards` and `setup.kibana`; reports mistakes there.
pub(crate) fn read(setup: &Section<'_>, settings: &Settings) -> Dashboards {
    let host = crate::agent::hostname();
    let entries = settings.node().entries();
    let output = entries.get("output").map(|output| output.entries());
    let output =
        output.and_then(|output| output.get("elasticsearch").map(|output| output.entries()));
    let text = |name: &str| output.as_ref()?.get(name).and_then(|node| node.text());
    let login = OutputLogin {
        username: text("username").map(str::to_owned),
        password: text("password").map(Secret::new),
        api_key: text("api_key").map(Secret::new),
    };
    let (own, kibana) = (setup.part(&SETUP_DASHBOARDS), setup.part(&SETUP_KIBANA));
    Dashboards::read(own, kibana, &login, &settings.paths().home, &host)
}

/// `skidder setup`: loads dashboards, and gives whether that went well. `None` if there are none, unless
/// `is_asked`: the command line names dashboards.
pub(crate) fn set_up(
    dashboards: &Dashboards,
    system: &System,
    runtime: &Runtime,
    is_asked: bool,
    add_line: &mut (dyn FnMut(&str) + Send),
) -> Option<bool> {
    match runtime.block_on(dashboards.load(&system.fs, add_line)) {
        Ok(count) => {
            add_line(&format!("dashboards: {count} files loaded"));
            Some(true)
        }
        Err(error @ LoadError::Nothing { .. }) if !is_asked => {
            add_line(&format!("dashboards: skipped: {error}"));
            None
        }
        Err(error) => {
            add_line(&format!("dashboards: {error}"));
            Some(false)
        }
    }
}

/// Loads dashboards at the start, if they are enabled. Logs are read meanwhile: a Kibana that is down holds up no line.
/// With `once` the run waits for it.
pub(crate) fn load_at_start(dashboards: &Dashboards, system: &System, once: bool) -> Result<()> {
    if !dashboards.enabled {
        return Ok(());
    }
    let (dashboards, fs) = (dashboards.clone(), Arc::clone(&system.fs));
    let runtime = runtime("dashboards", 1)?;
    let load = move || {
        let loaded = runtime.block_on(dashboards.load(&fs, &mut |line| tracing::info!("{line}")));
        match loaded {
            Ok(count) => tracing::info!(count, "dashboards are loaded"),
            Err(error) => {
                tracing::error!(%error, "dashboards are not loaded; see `skidder setup --dashboards`");
            }
        }
    };
    let thread = std::thread::Builder::new().name("dashboards".to_owned()).spawn(load);
    let thread = thread.context("cannot start the thread that loads dashboards")?;
    if once && thread.join().is_err() {
        tracing::error!("loading dashboards has failed");
    }
    Ok(())
}
