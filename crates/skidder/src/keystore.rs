//! `skidder keystore`: secrets for `${KEY}` in the configuration, in Filebeat's file.

use crate::cli::{Global, KeystoreCommand};
use crate::load::load_without_secrets;
use crate::secrets::{Keystore, Rules, rules};
use crate::system::System;
use crate::terminal::{eprint, print};
use anyhow::{Context as _, Result, anyhow, bail};
use rustix::termios::{LocalModes, OptionalActions, isatty, tcgetattr, tcsetattr};
use skidder_config::Secret;
use skidder_os::Fs;
use std::io::{BufRead as _, Read as _};
use std::path::PathBuf;
use std::process::ExitCode;

/// Most bytes of a secret.
const SECRET_BYTES_MAX: u64 = 1 << 20;

/// Runs the subcommand.
pub(crate) fn dispatch(
    what: &KeystoreCommand,
    global: &Global,
    system: &System,
) -> Result<ExitCode> {
    let path = load_without_secrets(global, system)?.keystore_path();
    let place = Place { fs: &*system.fs, path, rules: rules(global) };
    match what {
        KeystoreCommand::Create { force } => place.create(*force)?,
        KeystoreCommand::Add { key, stdin, force } => place.add(key, *stdin, *force)?,
        KeystoreCommand::List => place.list()?,
        KeystoreCommand::Remove { keys } => place.remove(keys)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Where the keystore is.
struct Place<'a> {
    fs: &'a dyn Fs,
    path: PathBuf,
    rules: Rules,
}

impl Place<'_> {
    fn create(&self, force: bool) -> Result<()> {
        let is_there = self.fs.metadata(&self.path).is_ok();
        if is_there && !force && !agreed("A keystore already exists, Overwrite?")? {
            return print("Exiting without creating keystore.\n");
        }
        self.write(&Keystore::default())?;
        print("Created skidder keystore\n")
    }

    fn add(&self, key: &str, stdin: bool, force: bool) -> Result<()> {
        let key = key.trim();
        if key.is_empty() {
            bail!("the name of a secret is empty");
        }
        let mut keystore = match self.read()? {
            Some(keystore) => keystore,
            None if force => Keystore::default(),
            None if stdin => bail!(
                "there is no keystore `{}`: make it with `skidder keystore create`, or use `--force`",
                self.path.display()
            ),
            None if agreed("The keystore does not exist. Do you want to create it?")? => {
                Keystore::default()
            }
            None => bail!("exiting without creating keystore"),
        };
        if keystore.has(key) && !force {
            if stdin {
                bail!("`{key}` is in the keystore already; use `--force` to replace it");
            }
            if !agreed(&format!("Setting {key} already exists, Overwrite?"))? {
                return print("Exiting without modifying keystore.\n");
            }
        }
        let secret = if stdin { piped()? } else { typed(key)? };
        keystore.set(key, secret);
        self.write(&keystore)?;
        print("Successfully updated the keystore\n")
    }

    fn list(&self) -> Result<()> {
        let keystore = self.read()?.unwrap_or_default();
        for name in keystore.names() {
            print(&format!("{name}\n"))?;
        }
        Ok(())
    }

    /// All of them, or none if one is not there.
    fn remove(&self, keys: &[String]) -> Result<()> {
        let Some(mut keystore) = self.read()? else {
            bail!(
                "there is no keystore `{}`: make it with `skidder keystore create`",
                self.path.display()
            );
        };
        let mut text = String::new();
        for key in keys {
            let key = key.trim();
            if !keystore.remove(key) {
                bail!("could not find key `{key}` in the keystore; nothing is removed");
            }
            text.push_str(&format!("successfully removed key: {key}\n"));
        }
        self.write(&keystore)?;
        print(&text)
    }

    fn read(&self) -> Result<Option<Keystore>> {
        Keystore::read(self.fs, &self.path, self.rules).map_err(|error| {
            anyhow!("the keystore `{}` cannot be opened: {error}", self.path.display())
        })
    }

    fn write(&self, keystore: &Keystore) -> Result<()> {
        keystore
            .write(self.fs, &self.path)
            .with_context(|| format!("cannot write the keystore `{}`", self.path.display()))
    }
}

/// Asks at the terminal; no answer means no.
fn agreed(question: &str) -> Result<bool> {
    loop {
        eprint(&format!("{question} [y/N]: "));
        let mut answer = String::new();
        let read = std::io::stdin().lock().read_line(&mut answer);
        read.context("cannot read the standard input")?;
        match answer.trim().to_ascii_lowercase().as_str() {
            "y" | "yes" => return Ok(true),
            "" | "n" | "no" => return Ok(false),
            _ => {}
        }
    }
}

/// A secret from a pipe, without the end of its line.
fn piped() -> Result<Secret> {
    let mut bytes = Vec::new();
    let read = std::io::stdin().lock().take(SECRET_BYTES_MAX + 1).read_to_end(&mut bytes);
    read.context("cannot read the standard input")?;
    secret_of(bytes)
}

/// A secret from the terminal, which does not show it.
fn typed(key: &str) -> Result<Secret> {
    let stdin = std::io::stdin();
    if !isatty(&stdin) {
        bail!("the standard input is no terminal; use `--stdin` for a secret from a pipe");
    }
    eprint(&format!("Enter value for {key}: "));
    let shown = tcgetattr(&stdin).context("cannot ask the terminal for its settings")?;
    let mut hidden = shown.clone();
    hidden.local_modes.remove(LocalModes::ECHO);
    tcsetattr(&stdin, OptionalActions::Flush, &hidden).context("cannot hide what is typed")?;
    let mut line = String::new();
    let read = stdin.lock().read_line(&mut line);
    tcsetattr(&stdin, OptionalActions::Flush, &shown).context("cannot reset the terminal")?;
    eprint("\n");
    read.context("cannot read from the terminal")?;
    secret_of(line.into_bytes())
}

fn secret_of(mut bytes: Vec<u8>) -> Result<Secret> {
    if bytes.len() as u64 > SECRET_BYTES_MAX {
        bail!("a secret may have {SECRET_BYTES_MAX} bytes at most");
    }
    if bytes.ends_with(b"\n") {
        bytes.pop();
        bytes.pop_if(|last| *last == b'\r');
    }
    match String::from_utf8(bytes) {
        Ok(text) if text.is_empty() => bail!("the secret is empty"),
        Ok(text) => Ok(Secret::new(text)),
        Err(_) => bail!("the secret is not UTF-8 text"),
    }
}
