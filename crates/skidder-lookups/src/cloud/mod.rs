//! `add_cloud_metadata`: the cloud's metadata of this machine, as `cloud.*`.
//!
//! Requests to the configured providers start with the program, in the background;
//! what the first event (or the binding of the first source) finds not answered yet is waited for, at most
//! until `timeout` has passed since the start. The answer is valid for the life of the program. A
//! machine in no cloud gets no fields.

mod answers;
mod aws;
mod aws_api;
mod providers;

use crate::background::Background;
use crate::put::Put;
use crate::tls;
use providers::{CloudClient, Provider};
use skidder_config::{Group, Key, Section, nearest, settings};
use skidder_event::{EventMut, Map};
use skidder_processors::{Constants, Context, Failure, Footprint, Outcome, Processor};
use skidder_tls::{TlsClient, TlsSettings};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::mpsc;

settings! {
    /// Settings of `add_cloud_metadata`.
    pub(crate) static ADD_CLOUD_METADATA = Group::new("processor.add_cloud_metadata", "Adds what the cloud says about this machine, as `cloud.*`.").include(&[&tls::TLS]);

    PROVIDERS: Vec<String> = Key::new("providers")
        .default_words("all but `alibaba` and `tencent`")
        .about("who is asked: `alibaba` or `ecs`, `aws` or `ec2`, `azure`, `digitalocean`, `gcp`, \
                `hetzner`, `openstack` or `nova` or `huawei`, `openstack-ssl` or `nova-ssl`, \
                `tencent` or `qcloud`; the variable BEATS_ADD_CLOUD_METADATA_PROVIDERS, names with \
                commas between them, overrides it, and nobody is asked if it is empty. `openstack-ssl` needs `ssl`");
    TIMEOUT: Duration = Key::new("timeout")
        .default(Duration::from_secs(3))
        .about("how long the answers may take; the first events wait for them, no later ones");
    OVERWRITE: bool = Key::new("overwrite")
        .default(false)
        .about("whether `cloud`, `orchestrator` and `aws` of an event are replaced; otherwise each \
                stays as it is where the event has it");
    HOST: String = Key::new("host")
        .default_words("the provider's own")
        .about("host and port of the service that answers, for tests and for proxies of it");
}

/// The name in the configuration.
const NAME: &str = "add_cloud_metadata";
/// Replaces the default of `providers`, and the configured ones, as in Filebeat.
const PROVIDERS_VARIABLE: &str = "BEATS_ADD_CLOUD_METADATA_PROVIDERS";

/// Adds `cloud.*`, and `orchestrator.*` and `aws.tags.*` if the provider has them.
#[derive(Debug)]
pub(crate) struct AddCloudMetadata {
    overwrite: bool,
    found: Arc<Found>,
    _asking: Option<Background>,
}

/// The result, once all have answered or had their time.
#[derive(Debug, Default)]
struct Found(OnceLock<Map>);

impl AddCloudMetadata {
    /// Reads the settings and begins to ask.
    pub(crate) fn read(settings: &Section<'_>, context: &Context) -> Option<Self> {
        let timeout = settings.get(&TIMEOUT).value();
        let overwrite = settings.get(&OVERWRITE).value();
        let host = settings.get(&HOST).optional();
        let tls = tls::read(settings, context);
        let configured = settings.get(&PROVIDERS).optional();
        let wrong = check_names(settings, configured.as_deref().unwrap_or_default());
        let variable = std::env::var(PROVIDERS_VARIABLE).ok();
        let providers = chosen(configured.as_deref(), variable.as_deref());
        if wrong {
            return None;
        }
        let tls = tls.ok()?;
        let api_tls = tls.clone().or_else(|| default_client(context));
        let clock = Arc::clone(&context.clock);
        let cloud_client = CloudClient { host, tls, api_tls, timeout, clock };
        Some(Self::ask(&providers, cloud_client, overwrite))
    }

    fn ask(providers: &[Provider], cloud_client: CloudClient, overwrite: bool) -> Self {
        let found = Arc::new(Found::default());
        let work = find(providers.to_vec(), cloud_client, Arc::clone(&found));
        let asking = match Background::start("cloud-metadata", work) {
            Ok(asking) => Some(asking),
            Err(error) => {
                tracing::error!(%error, "no thread for add_cloud_metadata; it adds nothing");
                found.0.get_or_init(Map::new);
                None
            }
        };
        Self { overwrite, found, _asking: asking }
    }

    /// Waits for the answers, which have their time-out.
    fn put(&self) -> Put {
        Put::new(NAME, self.found.0.wait(), self.overwrite)
    }
}

/// TLS with the certificate authorities of the system.
fn default_client(context: &Context) -> Option<Arc<TlsClient>> {
    match TlsClient::new(&TlsSettings::default(), Arc::clone(&context.fs)) {
        Ok(client) => Some(client),
        Err(error) => {
            tracing::debug!(%error, "no TLS for the API of the cloud");
            None
        }
    }
}

/// Reports names that no provider has; returns `true` if there are any.
fn check_names(settings: &Section<'_>, names: &[String]) -> bool {
    let mut wrong = false;
    for name in names {
        if Provider::named(name).is_none() {
            let message =
                format!("`{}` has an unknown name `{name}`", settings.path_of(PROVIDERS.name()));
            let near = nearest(name, providers::NAMES.iter().map(|(name, _)| *name));
            let hint = near.map(|near| format!("did you mean `{near}`?"));
            settings.problem(PROVIDERS.name(), message, hint.unwrap_or_default());
            wrong = true;
        }
    }
    wrong
}

/// The providers to ask: those of the variable if it is set, even if that is empty; else those of the
/// configuration; else all with an address of the machine's own.
fn chosen(configured: Option<&[String]>, variable: Option<&str>) -> Vec<Provider> {
    let names: Vec<&str> = match (variable, configured) {
        (Some(variable), _) => variable.split(',').map(str::trim).collect(),
        (None, Some(configured)) if !configured.is_empty() => {
            configured.iter().map(String::as_str).collect()
        }
        _ => Vec::new(),
    };
    let named = names.iter().filter_map(|name| Provider::named(name));
    let mut providers: Vec<Provider> = if variable.is_none() && names.is_empty() {
        Provider::DEFAULT.to_vec()
    } else {
        named.collect()
    };
    providers.sort_unstable();
    providers.dedup();
    providers
}

/// Asks all providers and keeps the best answer.
async fn find(providers: Vec<Provider>, cloud_client: CloudClient, found: Arc<Found>) {
    let timeout = cloud_client.timeout;
    let cloud_client = Arc::new(cloud_client);
    let (sender, mut receiver) = mpsc::channel(providers.len().max(1));
    for provider in providers {
        let (cloud_client, sender) = (Arc::clone(&cloud_client), sender.clone());
        tokio::spawn(async move {
            let answer = provider.ask(&cloud_client).await;
            // The receiver is gone once a better answer is there.
            drop(sender.send((provider, answer)).await);
        });
    }
    drop(sender);
    let mut best: Option<(Provider, Map)> = None;
    let collect = async {
        while let Some((provider, answer)) = receiver.recv().await {
            match answer {
                Ok(fields) => {
                    let better = best.as_ref().is_none_or(|(_, _)| provider.has_priority());
                    if better {
                        best = Some((provider, fields));
                    }
                    if provider.has_priority() {
                        return;
                    }
                }
                Err(error) => {
                    tracing::debug!(provider = provider.name(), %error, "not in this cloud");
                }
            }
        }
    };
    if tokio::time::timeout(timeout, collect).await.is_err() {
        tracing::debug!(?timeout, "some clouds did not answer in time");
    }
    let fields = match best {
        Some((provider, fields)) => {
            tracing::info!(provider = provider.name(), "add_cloud_metadata knows the cloud");
            fields
        }
        None => {
            tracing::info!("add_cloud_metadata: this machine is in no cloud that was asked");
            Map::new()
        }
    };
    found.0.get_or_init(|| fields);
}

impl Processor for AddCloudMetadata {
    fn name(&self) -> &'static str {
        NAME
    }

    fn run(&self, event: &mut EventMut<'_>) -> Result<Outcome, Failure> {
        self.put().run(event)
    }

    fn footprint(&self, _: &Constants) -> Footprint {
        Footprint::everything()
    }

    fn can_fail(&self) -> bool {
        false
    }

    fn bound(&self) -> Option<Arc<dyn Processor>> {
        Some(Arc::new(self.put()))
    }
}

#[cfg(test)]
mod tests;
