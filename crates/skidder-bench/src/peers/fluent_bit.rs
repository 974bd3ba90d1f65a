//! Configuration of Fluent Bit, in its classic format.

use super::cell::Work;
use super::peer::Job;
use anyhow::{Context, Result};
use std::process::Command;

const PARSERS: &str = "[PARSER]\n    Name json\n    Format json\n";

/// Its defaults, but for: files are read from their start and looked for every second; positions are kept; failed
/// requests are tried again for ever (it drops events after one retry by default); in fault scenarios chunks are kept
/// on the disk, as its documentation recommends.
pub(super) fn prepare(job: &Job<'_>, command: &mut Command) -> Result<()> {
    let address = job.url.strip_prefix("http://").unwrap_or(job.url);
    let (host, port) = address.split_once(':').context("the server has no port")?;
    let home = job.home.display();
    let parser = match job.cell.work {
        Work::Ndjson => "    Parser json\n",
        Work::ContainerJson => "    multiline.parser cri\n",
        Work::None | Work::TenProcessors => "",
    };
    let filter = match job.cell.work {
        Work::ContainerJson => {
            "[FILTER]\n    Name parser\n    Match *\n    Key_Name log\n    Parser json\n    Reserve_Data On\n"
        }
        _ => "",
    };
    let (service, storage) = if job.durable {
        (format!("    storage.path {home}/chunks\n"), "    storage.type filesystem\n")
    } else {
        (String::new(), "")
    };
    let compress = if job.cell.level > 0 { "    Compress gzip\n" } else { "" };
    let config = format!(
        "[SERVICE]\n    Flush 1\n    Parsers_File {home}/parsers.conf\n{service}\
         [INPUT]\n    Name tail\n    Path {}\n    Exclude_Path *.gz\n    Read_from_Head On\n    DB {home}/positions.db\n\
         \x20   Refresh_Interval 1\n{storage}{parser}{filter}\
         [OUTPUT]\n    Name es\n    Match *\n    Host {host}\n    Port {port}\n    Index peers\n    Suppress_Type_Name On\n\
         \x20   Buffer_Size False\n    Retry_Limit False\n{compress}",
        job.paths,
    );
    let path = job.home.join("fluent-bit.conf");
    std::fs::write(job.home.join("parsers.conf"), PARSERS)?;
    std::fs::write(&path, config).context("cannot write its configuration")?;
    command.arg("-c").arg(path);
    Ok(())
}
