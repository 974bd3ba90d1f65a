//! `docker_logs`: logs of containers through Docker's API, for log drivers that write no file (an addition of ours).
//!
//! <https://docs.docker.com/reference/api/engine/>, "Get container logs". Events are those of the `container` input, without
//! `log.file.path` and `log.offset`: each message becomes a line in the format of the container runtime interface, which the
//! same parsers read. The cursor is a time and a number of messages (see `place.rs`).

mod follow;
mod messages;
mod patience;
mod place;
#[cfg(test)]
mod tests;

use crate::Context;
use crate::text::TextSettings;
use patience::Patience;
use skidder_config::{Group, Key, OneOf, Part, Section, mask_address, settings};
use skidder_input::{Input, InputError, InputFuture, Intake};
use skidder_net::HttpClient;
use skidder_tls::{Pem, TlsClient, TlsSettings};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

/// The name of the type.
pub const KIND: &str = "docker_logs";

/// How long the engine may take to begin an answer.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Which streams of a container are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Streams {
    All,
    Stdout,
    Stderr,
}

settings! {
    /// The engine, and the containers.
    pub static CONTAINERS = Group::new("input.docker_logs.containers", "Which containers of which engine.");

    HOST: String = Key::new("host")
        .default("unix:///var/run/docker.sock")
        .about("where Docker listens: `unix://`, `tcp://`, `http://` or `https://`");
    SSL: Part = Key::part("ssl", &OWN_SSL).about(
        "[TLS](outputs.md#ssl), as in outputs; `certificate_authority` is one more of the authorities",
    );
    IDS: Vec<String> = Key::<Vec<String>>::new("ids")
        .required()
        .about("ids or names of containers; one that is not there is waited for");
    STREAM: OneOf<Streams> = Key::one_of(
        "stream",
        &[("all", Streams::All), ("stdout", Streams::Stdout), ("stderr", Streams::Stderr)],
    )
    .default("all")
    .about("`stdout`, `stderr`: only that one; a part of the key in the registry");
    SINCE: Duration = Key::new("since")
        .default(Duration::ZERO)
        .about("at the first start, only messages of this last span of time are read; 0: all that the engine has");
}

settings! {
    /// `ssl` of Docker.
    static OWN_SSL = Group::new("input.docker_logs.ssl", "TLS of Docker.").include(&[&skidder_tls::SSL]);

    CERTIFICATE_AUTHORITY: String =
        Key::new("certificate_authority").about("one more of `certificate_authorities`");
}

/// What every container of the input is read with.
#[derive(Debug)]
struct Settings {
    server: HttpClient,
    streams: Streams,
    since: Duration,
    text: TextSettings,
    patience: Patience,
}

/// The input.
#[derive(Debug)]
struct DockerLogs {
    host: String,
    ids: Vec<String>,
    settings: Arc<Settings>,
}

/// Reads the settings of [`CONTAINERS`]; `text` has those of lines, whose first parser reads records of the container
/// runtime interface.
pub fn read(
    section: &Section<'_>,
    context: &Context,
    text: TextSettings,
) -> Option<Box<dyn Input>> {
    let input: Box<dyn Input> = Box::new(read_input(section, context, text)?);
    Some(input)
}

fn read_input(section: &Section<'_>, context: &Context, text: TextSettings) -> Option<DockerLogs> {
    let ids = section
        .get(&IDS)
        .try_each(|id| {
            let id = id.trim_start_matches('/');
            let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
            let is_name = !id.is_empty() && id.bytes().all(is_allowed);
            is_name.then(|| id.to_owned()).ok_or("no id and no name of a container".to_owned())
        })
        .at_least_one("container")
        .hint("as in `ids: [web]`; for all containers, use the provider `docker` of autodiscover")
        .required();
    let streams = section.get(&STREAM).value();
    let since = section.get(&SINCE).value();
    let server = read_server(section, context);
    if ids.is_empty() {
        return None;
    }
    let (server, host) = server?;
    let settings = Arc::new(Settings { server, streams, since, text, patience: Patience::USUAL });
    Some(DockerLogs { host, ids, settings })
}

fn read_server(section: &Section<'_>, context: &Context) -> Option<(HttpClient, String)> {
    let host = section.get(&HOST).value();
    let tls = section.optional_part(&SSL).map(|ssl| {
        let mut tls = TlsSettings::read(&ssl);
        if let Some(authority) = ssl.get(&CERTIFICATE_AUTHORITY).optional() {
            tls.certificate_authorities.push(Pem::of(&authority));
        }
        tls
    });
    let tls = match tls.filter(|tls| tls.enabled) {
        None => None,
        Some(tls) => match TlsClient::new(&tls, Arc::clone(&context.fs)) {
            Ok(client) => Some(client),
            Err(error) => {
                error.report(section);
                return None;
            }
        },
    };
    match HttpClient::parse(&host, tls, TIMEOUT) {
        Ok(server) => Some((server, host)),
        Err(error) => {
            let (path, shown) = (section.path_of(HOST.name()), mask_address(&host));
            let message = format!("`{path}` is `{shown}`; {error}");
            section.problem(HOST.name(), message, "as in `unix:///var/run/docker.sock`");
            None
        }
    }
}

impl Input for DockerLogs {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn address(&self) -> Option<&str> {
        Some(&self.host)
    }

    fn has_cursors(&self) -> bool {
        true
    }

    fn ends_when_read(&self) -> bool {
        true
    }

    fn run(self: Box<Self>, intake: Intake) -> InputFuture {
        Box::pin(async move {
            let mut containers = JoinSet::new();
            for name in &self.ids {
                let (settings, intake) = (Arc::clone(&self.settings), intake.clone());
                containers.spawn(follow::follow(settings, intake, name.clone()));
            }
            while let Some(ended) = containers.join_next().await {
                ended.map_err(|error| InputError(error.to_string()))??;
            }
            Ok(())
        })
    }
}
