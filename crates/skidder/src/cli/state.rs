//! The command line of what is kept and taken over: `registry`, `keystore`, `modules`, `migrate`; and `autodiscover`.

use clap::{Args, Subcommand};
use std::path::PathBuf;

/// `skidder autodiscover …`.
#[derive(Debug, Subcommand)]
pub(crate) enum AutodiscoverCommand {
    /// Shows what was seen, the template or hint that matched and why, the input that came of it, and whether it runs
    Explain {
        /// Only containers, pods and others whose name contains this, or whose id begins with it
        #[arg(value_name = "NAME")]
        names: Vec<String>,
        /// One JSON object instead of text
        #[arg(long)]
        json: bool,
    },
}

/// `skidder modules …`.
#[derive(Debug, Subcommand)]
pub(crate) enum ModulesCommand {
    /// Lists the modules that are on, and those that are off
    List,
    /// Turns modules on: renames `NAME.yml.disabled` to `NAME.yml`
    Enable {
        /// Names of modules
        #[arg(required = true, value_name = "NAME")]
        names: Vec<String>,
    },
    /// Turns modules off: renames `NAME.yml` to `NAME.yml.disabled`
    Disable {
        /// Names of modules
        #[arg(required = true, value_name = "NAME")]
        names: Vec<String>,
    },
}

/// `skidder generate …`.
#[derive(Debug, Subcommand)]
pub(crate) enum GenerateCommand {
    /// Writes the folder of a module, and a file for `modules enable`
    Module {
        /// Its name
        name: String,
        /// Writes to `module` in this folder; by default to `filebeat.modules_path`, or to `module` in a `path.home` that is set
        #[arg(long, value_name = "DIR")]
        modules_path: Option<PathBuf>,
    },
    /// Writes a fileset of a module: manifest, input and pipeline
    Fileset {
        /// The module
        module: String,
        /// Its name
        fileset: String,
        /// Writes to `module` in this folder; by default to `filebeat.modules_path`, or to `module` in a `path.home` that is set
        #[arg(long, value_name = "DIR")]
        modules_path: Option<PathBuf>,
    },
    /// Writes `_meta/fields.yml` of a fileset: the fields that the patterns of its pipeline name
    Fields {
        /// The module
        module: String,
        /// The fileset
        fileset: String,
        /// Leaves out descriptions
        #[arg(long)]
        without_documentation: bool,
        /// Looks in `module` of this folder; by default as for `module`
        #[arg(long, value_name = "DIR")]
        modules_path: Option<PathBuf>,
    },
}

/// `skidder registry …`.
#[derive(Debug, Subcommand)]
pub(crate) enum RegistryCommand {
    /// Lists all entries; works beside a running skidder
    List {
        /// Only of this output; by default of all
        #[arg(long, value_name = "ID")]
        output: Option<String>,
        /// One JSON object instead of a table
        #[arg(long)]
        json: bool,
    },
    /// Shows everything about an entry
    Show {
        /// Its key, or the path of its file
        #[arg(value_name = "KEY|PATH")]
        wanted: String,
        /// Only of this output; by default of all
        #[arg(long, value_name = "ID")]
        output: Option<String>,
        /// One JSON object instead of text
        #[arg(long)]
        json: bool,
    },
    /// Forgets entries: their files are read from the start
    Forget {
        /// Their keys, or the paths of their files
        #[arg(required = true, value_name = "KEY|PATH")]
        wanted: Vec<String>,
        /// The output that forgets them; must be said if there are several
        #[arg(long, value_name = "ID")]
        output: Option<String>,
        /// Only says what would be forgotten
        #[arg(long)]
        dry_run: bool,
    },
    /// Takes over the registry of Filebeat, so that every file goes on where it stopped
    Import(Import),
    /// Writes the registry in Filebeat's format, so that Filebeat goes on where skidder stopped
    Export(ExportRegistry),
}

/// `skidder keystore …`.
#[derive(Debug, Subcommand)]
pub(crate) enum KeystoreCommand {
    /// Makes an empty keystore
    Create {
        /// Replaces one that is there, without asking
        #[arg(long)]
        force: bool,
    },
    /// Adds a secret, which is asked for at the terminal
    Add {
        /// Its name: `${KEY}` in the configuration
        #[arg(value_name = "KEY")]
        key: String,
        /// Takes the secret from the standard input
        #[arg(long)]
        stdin: bool,
        /// Makes the keystore and replaces the secret if need be, without asking
        #[arg(long)]
        force: bool,
    },
    /// Lists the names of the secrets
    List,
    /// Removes secrets
    Remove {
        /// Their names
        #[arg(required = true, value_name = "KEY")]
        keys: Vec<String>,
    },
}

/// `skidder registry import`.
#[derive(Args, Debug)]
pub(crate) struct Import {
    /// Filebeat's data path, or its registry; by default `path.data`
    #[arg(long, value_name = "DIR")]
    pub(crate) from: Option<PathBuf>,
    /// Only says what would be taken over
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// One JSON object instead of a table
    #[arg(long)]
    pub(crate) json: bool,
}

/// `skidder migrate`.
#[derive(Args, Debug)]
pub(crate) struct Migrate {
    /// Filebeat's configuration: the file, or its folder
    #[arg(long, value_name = "DIR|FILE", default_value = "/etc/filebeat")]
    pub(crate) from: PathBuf,
    /// Filebeat's data; by default what its configuration says, /var/lib/filebeat, or `data` beside it
    #[arg(long, value_name = "DIR")]
    pub(crate) from_data: Option<PathBuf>,
    /// The folder for skidder's configuration; its data go to `--path.data`, by default /var/lib/skidder
    #[arg(long, value_name = "DIR", default_value = "/etc/skidder")]
    pub(crate) to: PathBuf,
    /// Only says what would be done
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Prints the configuration as it would be written today, with a comment at each change, and does nothing else
    #[arg(long, conflicts_with_all = ["dry_run", "json", "lenient", "force"])]
    pub(crate) print: bool,
    /// Also with settings that are unknown or not supported: they are without effect
    #[arg(long)]
    pub(crate) lenient: bool,
    /// Replaces a configuration that is there
    #[arg(long)]
    pub(crate) force: bool,
    /// One JSON object instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

/// `skidder registry export`.
#[derive(Args, Debug)]
pub(crate) struct ExportRegistry {
    /// A data path for Filebeat: the registry is written below it
    #[arg(long, value_name = "DIR")]
    pub(crate) to: PathBuf,
    /// What Filebeat knows files by: its `file_identity`, by default the configured one
    #[arg(long, value_name = "NAME", value_parser = ["fingerprint", "native", "path"])]
    pub(crate) identity: Option<String>,
    /// The output whose registry is written; must be said if there are several
    #[arg(long, value_name = "ID")]
    pub(crate) output: Option<String>,
    /// Replaces a registry that is there
    #[arg(long)]
    pub(crate) force: bool,
}
