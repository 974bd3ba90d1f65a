//! The command line: Filebeat's, plus verbs of our own.

pub(crate) mod help;
mod letters;
mod state;

pub(crate) use letters::{DeadLettersCommand, WhichLetters};
pub(crate) use state::{
    AutodiscoverCommand, ExportRegistry, GenerateCommand, Import, KeystoreCommand, Migrate,
    ModulesCommand, RegistryCommand,
};

use clap::{Args, Parser, Subcommand, ValueEnum};
use skidder_log::{Environment, Flags};
use std::path::PathBuf;
use std::time::Duration;

/// A log shipper that proves that nothing was lost.
#[derive(Debug, Parser)]
#[command(name = "skidder", version = crate::agent::VERSION_TEXT, disable_help_subcommand = true)]
pub(crate) struct CommandLine {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

/// Flags that come before or behind any command.
#[derive(Args, Clone, Debug)]
pub(crate) struct Global {
    /// Configuration file; may be given several times, later ones win
    #[arg(short = 'c', long = "c", value_name = "FILE", global = true)]
    pub(crate) config: Vec<PathBuf>,
    /// Overrides a setting: key=value; wins over files
    #[arg(short = 'E', long = "E", value_name = "KEY=VALUE", global = true)]
    pub(crate) overrides: Vec<String>,
    /// Logs to stderr, and not to files or syslog
    #[arg(short = 'e', long = "e", global = true)]
    pub(crate) stderr: bool,
    /// Says more: level info for logs, one line a file for `ship`
    #[arg(short = 'v', long = "v", global = true)]
    pub(crate) verbose: bool,
    /// Modules that run beside those of the configuration, comma-separated
    #[arg(long = "modules", value_name = "NAMES", global = true, value_delimiter = ',')]
    pub(crate) modules: Vec<String>,
    /// Overrides a setting of a fileset of `filebeat.modules` or `--modules`: module.fileset.key=value
    #[arg(short = 'M', long = "M", value_name = "KEY=VALUE", global = true)]
    pub(crate) module_settings: Vec<String>,
    /// Where it runs: says whether the log goes to files (default) or to stderr (systemd, container)
    #[arg(
        long,
        value_name = "default|systemd|container",
        global = true,
        default_value = "default",
        hide_default_value = true
    )]
    pub(crate) environment: Environment,
    /// Debug logs of these parts, comma-separated; "*" for all
    #[arg(short = 'd', long = "d", value_name = "SELECTORS", global = true)]
    pub(crate) debug: Option<String>,
    /// Where the program is installed
    #[arg(long = "path.home", value_name = "DIR", global = true)]
    pub(crate) path_home: Option<PathBuf>,
    /// Where configuration files are looked for
    #[arg(long = "path.config", value_name = "DIR", global = true)]
    pub(crate) path_config: Option<PathBuf>,
    /// Where state is kept
    #[arg(long = "path.data", value_name = "DIR", global = true)]
    pub(crate) path_data: Option<PathBuf>,
    /// Where logs are kept
    #[arg(long = "path.logs", value_name = "DIR", global = true)]
    pub(crate) path_logs: Option<PathBuf>,
    /// Refuses configuration files that others may write
    #[arg(
        long = "strict.perms",
        value_name = "BOOL",
        global = true,
        default_value_t = true,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        action = clap::ArgAction::Set
    )]
    pub(crate) strict_permissions: bool,
    /// Ends when everything that is there is read and delivered
    #[arg(long, global = true)]
    pub(crate) once: bool,
    /// With `--once` and `ship`: what counts as a failure, in a list of `unread`, `refused`, `nothing`, or `never`; all if not given
    #[arg(
        long,
        value_name = "WHAT",
        global = true,
        value_delimiter = ',',
        value_enum,
        hide_possible_values = true
    )]
    pub(crate) fail_on: Vec<FailOn>,
    /// Says on stderr what the start took, step by step, up to the first scan of each input
    #[arg(long, global = true)]
    pub(crate) trace_startup: bool,
}

impl Global {
    /// What it says of the log.
    pub(crate) fn log_flags(&self) -> Flags {
        Flags {
            stderr: self.stderr,
            verbose: self.verbose,
            debug: self.debug.clone(),
            environment: self.environment,
        }
    }
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Runs the configuration (the default)
    Run,
    /// Ships files once, without a configuration
    Ship(Ship),
    /// Checks the configuration or the output
    Test {
        #[command(subcommand)]
        what: Test,
    },
    /// Prints the effective configuration, secrets replaced
    Export {
        #[command(subcommand)]
        what: Export,
    },
    /// Prints sample lines as the events that would be delivered
    Process(Process),
    /// Shows what the processors have become: done once, done for each event, and at what cost
    Explain(Explain),
    /// Shows what a new configuration makes different, event by event
    Diff(Diff),
    /// Tries sizes of requests on the output's server, in an index of its own, and recommends some
    Tune(Tune),
    /// Shows what every file is doing, how far behind it is, and why; and open connections and peers
    Files(Files),
    /// Says what becomes of an installed Filebeat, and takes it over
    Migrate(Migrate),
    /// Says on one screen whether all is well; for scripts by its exit code
    Status(Status),
    /// Explains which inputs run for containers and pods, and why
    Autodiscover {
        #[command(subcommand)]
        what: AutodiscoverCommand,
    },
    /// Shows in the terminal what is read and delivered, and which files are behind
    Top(Top),
    /// Prints the address of the page with the token that opens it, and opens a browser
    Page(PageArguments),
    /// Looks at and changes what is remembered of files
    Registry {
        #[command(subcommand)]
        what: RegistryCommand,
    },
    /// Looks at events that an output refused, sends them again, or throws them away
    #[command(name = "deadletters")]
    DeadLetters {
        #[command(subcommand)]
        what: DeadLettersCommand,
    },
    /// Looks at and repairs a queue on the disk (`queue.disk`)
    Queue {
        #[command(subcommand)]
        what: QueueCommand,
    },
    /// Prints the version
    Version,
    /// Loads index template, lifecycle policy and pipelines into Elasticsearch, dashboards into Kibana
    Setup(SetupArguments),
    /// Keeps secrets for `${KEY}` in the configuration, in Filebeat's encrypted file
    Keystore {
        #[command(subcommand)]
        what: KeystoreCommand,
    },
    /// Lists the modules in `filebeat.config.modules.path`, and turns them on and off
    Modules {
        #[command(subcommand)]
        what: ModulesCommand,
    },
    /// Writes the beginnings of a module, or the fields of one
    Generate {
        #[command(subcommand)]
        what: GenerateCommand,
    },
    /// Prints what a shell needs to complete this command line
    Completion {
        /// Which shell
        #[arg(value_enum)]
        shell: Shell,
    },
    /// Prints the page for `man`, or writes that of each command into a directory
    Man {
        /// The directory, which must be there
        #[arg(value_name = "DIR")]
        directory: Option<PathBuf>,
    },
    /// Says what a command does and which options it has
    Help {
        /// The command
        #[arg(value_name = "COMMAND")]
        words: Vec<String>,
    },
    /// What others call `test config`
    #[command(hide = true)]
    Validate,
}

/// Shells whose command line can be completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Shell {
    /// GNU Bash
    Bash,
    /// The Z shell
    Zsh,
    /// The friendly interactive shell
    Fish,
}

/// `skidder setup`.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct SetupArguments {
    /// Only template and policy
    #[arg(long)]
    pub(crate) index_management: bool,
    /// Only ingest pipelines of the modules that are on, also over those that are there
    #[arg(long)]
    pub(crate) pipelines: bool,
    /// With the pipelines: also of filesets that the configuration turns off
    #[arg(long)]
    pub(crate) enable_all_filesets: bool,
    /// With the pipelines: of all filesets of the modules that the configuration names
    #[arg(long)]
    pub(crate) force_enable_module_filesets: bool,
    /// Only dashboards, into Kibana
    #[arg(long)]
    pub(crate) dashboards: bool,
}

/// `skidder ship`.
#[derive(Args, Debug)]
pub(crate) struct Ship {
    /// Files or patterns such as '/var/log/**/*.log*'; plain and compressed may be mixed
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<String>,
    /// http(s)://HOST:PORT for Elasticsearch or OpenSearch, file:DIR, or - for the terminal
    #[arg(long, value_name = "WHERE")]
    pub(crate) to: String,
    /// Index or data stream, for Elasticsearch
    #[arg(long, value_name = "NAME")]
    pub(crate) index: Option<String>,
}

/// `skidder test …`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Subcommand)]
pub(crate) enum Test {
    /// Reads the configuration and says "Config OK", or everything that is wrong
    Config,
    /// Tries the output: connection, TLS, version, credentials
    Output,
}

/// `skidder export …`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Subcommand)]
pub(crate) enum Export {
    /// The effective configuration as YAML
    Config,
    /// A JSON Schema of the configuration, for editors that complete and check it
    Schema,
}

/// `skidder queue …`.
#[derive(Debug, Subcommand)]
pub(crate) enum QueueCommand {
    /// Shows segments, events and damaged places; works beside a running skidder
    Inspect {
        #[command(flatten)]
        which: WhichQueue,
        /// One JSON object instead of a table
        #[arg(long)]
        json: bool,
    },
    /// Writes what can be read to new segments, and keeps the old ones aside
    Repair {
        #[command(flatten)]
        which: WhichQueue,
    },
}

/// Which queue is meant.
#[derive(Args, Debug)]
pub(crate) struct WhichQueue {
    /// Its directory; by default that of the configuration
    #[arg(long, value_name = "DIR", conflicts_with = "output")]
    pub(crate) path: Option<PathBuf>,
    /// The output whose queue it is; must be said if there are several
    #[arg(long, value_name = "ID")]
    pub(crate) output: Option<String>,
    /// The file with its key, if it is encrypted; by default the key of the configuration
    #[arg(long, value_name = "FILE")]
    pub(crate) key_file: Option<PathBuf>,
}

/// The output for which an input is tried.
#[derive(Args, Debug)]
pub(crate) struct Fed {
    /// Only what goes to this output, if there are several: the condition under which the input feeds it
    #[arg(long, value_name = "ID")]
    pub(crate) output: Option<String>,
}

/// What is said of events that are tried.
#[derive(Args, Debug)]
pub(crate) struct Said {
    /// What the events are to say that their file is
    #[arg(long, value_name = "PATH")]
    pub(crate) path: Option<String>,
}

/// `skidder process`.
#[derive(Args, Debug)]
pub(crate) struct Process {
    /// A file with sample lines, plain or compressed; by default the standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// The input, if there are several
    #[arg(long, value_name = "ID")]
    pub(crate) input: Option<String>,
    #[command(flatten)]
    pub(crate) fed: Fed,
    #[command(flatten)]
    pub(crate) said: Said,
    /// Indented, over several lines
    #[arg(long)]
    pub(crate) pretty: bool,
}

/// `skidder explain`.
#[derive(Args, Debug)]
pub(crate) struct Explain {
    /// Only this input; must be said with a sample if there are several
    #[arg(long, value_name = "ID")]
    pub(crate) input: Option<String>,
    #[command(flatten)]
    pub(crate) fed: Fed,
    /// A file with sample lines, plain or compressed, to measure each step on
    #[arg(long, value_name = "FILE")]
    pub(crate) sample: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) said: Said,
}

/// `skidder diff`.
#[derive(Args, Debug)]
pub(crate) struct Diff {
    /// A file with sample lines, plain or compressed
    #[arg(long, value_name = "FILE", required = true)]
    pub(crate) sample: PathBuf,
    /// The input, if there are several; it has the same id in both
    #[arg(long, value_name = "ID")]
    pub(crate) input: Option<String>,
    #[command(flatten)]
    pub(crate) fed: Fed,
    #[command(flatten)]
    pub(crate) said: Said,
    /// Events that are shown
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) events: u64,
}

/// `skidder tune`.
#[derive(Args, Debug)]
pub(crate) struct Tune {
    /// A file with sample lines, plain or compressed; its events are sent again and again
    #[arg(long, value_name = "FILE", required = true)]
    pub(crate) sample: PathBuf,
    /// The input, if there are several
    #[arg(long, value_name = "ID")]
    pub(crate) input: Option<String>,
    /// The output, if there are several
    #[arg(long, value_name = "ID")]
    pub(crate) output: Option<String>,
    #[command(flatten)]
    pub(crate) said: Said,
    /// How long each combination is tried
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = seconds)]
    pub(crate) seconds: Duration,
    /// Values of `worker`
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "1,2,4,8",
          value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=1024))]
    pub(crate) workers: Vec<usize>,
    /// Values of `bulk_max_size`
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "400,1600,6400",
          value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=1_000_000))]
    pub(crate) events: Vec<usize>,
    /// Values of `compression_level`
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "0,1",
          value_parser = clap::value_parser!(u32).range(0..=9))]
    pub(crate) levels: Vec<u32>,
    /// Also writes a page with plots to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// With the ingest pipelines of the configuration and of index templates
    #[arg(long)]
    pub(crate) pipelines: bool,
    /// For Logstash, which has no place for trials: sends to where all events go
    #[arg(long)]
    pub(crate) really_send: bool,
}

/// A number of seconds, also a part of one, at most an hour.
fn seconds(text: &str) -> Result<Duration, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.1..=3600.0).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        _ => Err("expected a number of seconds from 0.1 to 3600".to_owned()),
    }
}

/// `skidder files`.
#[derive(Args, Debug)]
pub(crate) struct Files {
    /// Only these files, or those below these directories
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// Only for this output, if there are several
    #[arg(long, value_name = "ID")]
    pub(crate) output: Option<String>,
    /// Only files and sources of this input
    #[arg(long, value_name = "ID")]
    pub(crate) input: Option<String>,
    /// One JSON object instead of a table
    #[arg(long)]
    pub(crate) json: bool,
    /// The order: largest first, but for paths and states
    #[arg(long, value_name = "BY", default_value = "behind",
          value_parser = ["behind", "path", "size", "state"])]
    pub(crate) sort: String,
}

/// `skidder status`.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct Status {
    /// One JSON object instead of a screen
    #[arg(long)]
    pub(crate) json: bool,
    /// How long rates are measured
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    pub(crate) seconds: Duration,
    /// A file is behind when its oldest line without a verdict is older than this, and skidder has run for so long
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = seconds)]
    pub(crate) behind: Duration,
}

/// `skidder page`.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct PageArguments {
    /// Prints the address and opens nothing
    #[arg(long)]
    pub(crate) print: bool,
}

/// `skidder top`.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct Top {
    /// How often it is asked
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    pub(crate) every: Duration,
    /// A file is behind when its oldest line without a verdict is older than this, and skidder has run for so long
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = seconds)]
    pub(crate) behind: Duration,
}

/// What makes a run with `--once` end with another exit code than 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FailOn {
    /// Files that were not read to their end: unreadable, damaged, cut off or gone
    Unread,
    /// Events that the server refused, and lines beyond the limit of their length
    Refused,
    /// Events in a disk queue that the configuration no longer has
    Left,
    /// No file at all was found
    Nothing,
    /// None of these
    Never,
}
