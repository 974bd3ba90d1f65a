//! The watcher of a provider `nomad`.

use super::{Report, What, trouble};
use anyhow::{Result, anyhow};
use skidder_autodiscover::{Fact, NomadProvider, Scope};
use skidder_config::mask_address;
use skidder_lookups::nomad::allocations::{Allocations, Change, Following};
use skidder_lookups::nomad::api::NomadApi;
use skidder_net::HttpClient;
use skidder_os::{Fs, Timestamp};
use skidder_tls::{TlsClient, TlsSettings};
use std::sync::Arc;
use std::time::Duration;

/// How long Nomad may take for an answer, beyond the time that it waits for a change.
const TIMEOUT: Duration = Duration::from_secs(10);
/// How long Nomad waits if `wait_time` is 0.
const OWN_WAIT: Duration = Duration::from_mins(5);
/// The first pause before Nomad is tried again; each next one is twice as long.
const PAUSE: Duration = Duration::from_secs(1);
/// The longest of these pauses, as in Filebeat.
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// The allocations of a provider.
pub(super) fn allocations(
    provider: &NomadProvider,
    ended_since: Timestamp,
    fs: &Arc<dyn Fs>,
) -> Result<Allocations> {
    let is_https = provider.address.starts_with("https");
    let default = TlsSettings::default();
    let tls = provider.tls.as_ref().or_else(|| is_https.then_some(&default));
    let tls = tls.map(|tls| TlsClient::new(tls, Arc::clone(fs))).transpose()?;
    let wait = if provider.wait.is_zero() { OWN_WAIT } else { provider.wait };
    // Nomad adds up to a sixteenth.
    let timeout = TIMEOUT + wait + wait / 16;
    let address = &provider.address;
    let shown = mask_address(address);
    let server = HttpClient::parse(address, tls, timeout)
        .map_err(|error| anyhow!("`address` of the provider `nomad` is `{shown}`; {error}"))?;
    let query = [("namespace", provider.namespace.clone()), ("region", provider.region.clone())];
    let api = NomadApi::new(server, &query, provider.token.clone());
    let following = Following {
        is_cluster: provider.scope == Scope::Cluster,
        node: provider.node.clone(),
        wait: provider.wait,
        allows_stale: provider.allows_stale,
        ended_since: ended_since.0,
    };
    Ok(Allocations::new(api, following))
}

/// Follows them.
pub(super) async fn follow(mut allocations: Allocations, report: Report) {
    let mut pause = None;
    loop {
        match allocations.next().await {
            Ok(change) => {
                if pause.take().is_some() {
                    tracing::info!(host = allocations.host(), "Nomad is followed again");
                    report.trouble(allocations.host(), None);
                }
                let what = match change {
                    Change::Seen(allocation) => What::Seen(Fact::Nomad(allocation).into()),
                    Change::Ended(id, version) => What::Gone(id, Some(version)),
                    Change::Listed(ids) => What::Listed(ids),
                    Change::Unchanged => continue,
                };
                report.report(what);
                continue;
            }
            Err(error) => {
                let host = allocations.host();
                report.trouble(host, Some(trouble::of_nomad(host, &error)));
                if pause.is_none() {
                    tracing::warn!(host, %error, "Nomad cannot be followed; trying again");
                } else {
                    tracing::debug!(%error, "Nomad cannot be followed still");
                }
            }
        }
        let next = pause.map_or(PAUSE, |pause: Duration| (pause * 2).min(PAUSE_MAX));
        pause = Some(next);
        tokio::time::sleep(next).await;
    }
}
