//! The life of skidder: parse the command line, read and check the configuration, build the pipeline,
//! run it, drain it with a deadline, and report the result in the exit code.

mod agent;
mod allocator;
mod assemble;
mod autodiscover;
#[cfg(feature = "azure")]
mod azure_eventhub;
mod cli;
mod cloud;
mod commands;
mod config_context;
mod config_files;
mod dashboards;
mod dead_letters;
mod drafts;
mod endpoint;
mod files;
mod filestream;
#[cfg(feature = "gcp-pubsub")]
mod gcp_pubsub;
mod generate;
mod idle;
mod input_plan;
mod input_print;
mod input_reader;
mod input_settings;
mod inputs;
mod keystore;
mod load;
mod logging;
mod made_fields;
mod migrate;
mod module_files;
mod modules;
mod monitoring;
mod outputs;
mod own_log;
mod page;
mod page_token;
mod pages;
mod plain;
mod problems;
mod processors;
mod program_pages;
mod progress;
mod queue;
mod redis_input;
mod registry;
mod root_settings;
mod run;
mod runtime;
mod sample;
mod schema;
mod secrets;
mod service;
#[cfg(test)]
mod settings_page;
mod ship;
mod shown_plan;
mod signals;
mod startup;
mod status;
mod stdio;
mod step_times;
mod system;
mod table;
mod temporary;
mod terminal;
#[cfg(feature = "top")]
mod top;
mod tune;
mod watchers;

use clap::FromArgMatches as _;
use std::process::ExitCode;

// Deliberate bugs are for the simulated world.
const _: () = assert!(
    !skidder_os::sabotage::COMPILED_IN,
    "the program must not be built with the feature `sabotage`"
);

#[expect(clippy::print_stderr, reason = "the last word before the exit code")]
fn main() -> ExitCode {
    allocator::fix_bounds();
    signals::outlive_file_limit();
    let caught = signals::Caught::hangups();
    let matches = cli::help::shown().get_matches();
    let command_line =
        cli::CommandLine::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let code = match commands::dispatch(&command_line, caught) {
        Ok(code) => code,
        Err(error) => {
            logging::failed(&error);
            eprintln!("{}", plain::lines(&format!("error: {error:#}")));
            ExitCode::FAILURE
        }
    };
    logging::end();
    allocator::report();
    code
}
