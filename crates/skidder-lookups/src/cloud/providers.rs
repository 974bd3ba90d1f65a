//! The requests to each cloud.
//!
//! Addresses and documents are those of the providers' own documentation: linked at each.

use super::{answers, aws};
use serde_json::Value as Json;
use skidder_event::Map;
use skidder_net::{HttpClient, HttpError, HttpRequest};
use skidder_os::Clock;
use skidder_tls::TlsClient;
use std::sync::Arc;
use std::time::Duration;

/// Where most clouds answer: an address of the link, which no router forwards.
const METADATA_HOST: &str = "169.254.169.254";

/// A cloud. In the order in which answers are preferred.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Provider {
    Aws,
    Azure,
    Gcp,
    Hetzner,
    DigitalOcean,
    OpenStack,
    OpenStackTls,
    Alibaba,
    Tencent,
}

/// All names in the configuration. Huawei's clouds answer as OpenStack does.
pub(super) const NAMES: [(&str, Provider); 15] = [
    ("alibaba", Provider::Alibaba),
    ("aws", Provider::Aws),
    ("azure", Provider::Azure),
    ("digitalocean", Provider::DigitalOcean),
    ("ec2", Provider::Aws),
    ("ecs", Provider::Alibaba),
    ("gcp", Provider::Gcp),
    ("hetzner", Provider::Hetzner),
    ("huawei", Provider::OpenStack),
    ("nova", Provider::OpenStack),
    ("nova-ssl", Provider::OpenStackTls),
    ("openstack", Provider::OpenStack),
    ("openstack-ssl", Provider::OpenStackTls),
    ("qcloud", Provider::Tencent),
    ("tencent", Provider::Tencent),
];

/// Why a cloud is not this one.
#[derive(Debug, thiserror::Error)]
pub(super) enum AskError {
    #[error(transparent)]
    Http(#[from] HttpError),
    #[error("{0}")]
    Address(String),
    #[error("the answer does not name the instance")]
    Nothing,
    #[error("neither the environment nor the role of the instance has credentials")]
    NoCredentials,
}

/// Address, TLS and time limit of the requests.
pub(super) struct CloudClient {
    /// `host`: another address than each provider's own, as Filebeat's tests use it too.
    pub(super) host: Option<String>,
    pub(super) tls: Option<Arc<TlsClient>>,
    /// For APIs, which are elsewhere than the machine; `tls` if that is given.
    pub(super) api_tls: Option<Arc<TlsClient>>,
    pub(super) timeout: Duration,
    pub(super) clock: Arc<dyn Clock>,
}

impl std::fmt::Debug for CloudClient {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("CloudClient").field("host", &self.host).finish_non_exhaustive()
    }
}

impl CloudClient {
    pub(super) fn server(&self, scheme: &str, host: &str) -> Result<HttpClient, AskError> {
        let url = format!("{scheme}://{}", self.host.as_deref().unwrap_or(host));
        HttpClient::parse(&url, self.tls.clone(), self.timeout).map_err(AskError::Address)
    }

    /// An API, which answers over TLS; without it if `host` is set.
    pub(super) fn api(&self, host: &str) -> Result<HttpClient, AskError> {
        let (scheme, host) = match &self.host {
            Some(host) => ("http", host.as_str()),
            None => ("https", host),
        };
        let url = format!("{scheme}://{host}");
        HttpClient::parse(&url, self.api_tls.clone(), self.timeout).map_err(AskError::Address)
    }

    async fn json(&self, path: &str, headers: &[(&str, &str)]) -> Result<Json, AskError> {
        let server = self.server("http", METADATA_HOST)?;
        Ok(server.json(HttpRequest::get(path).headers(headers)).await?)
    }

    /// One text for each path, to be set at its field.
    async fn texts(
        &self,
        scheme: &str,
        host: &str,
        paths: &[(&str, &str)],
    ) -> Result<Map, AskError> {
        let server = self.server(scheme, host)?;
        let mut fields = Map::new();
        for (path, field) in paths {
            let text = server.ask(HttpRequest::get(path)).await?;
            let text = String::from_utf8_lossy(&text);
            answers::set(&mut fields, field, text.trim());
        }
        Ok(fields)
    }
}

impl Provider {
    /// The default: all but the two at addresses that need not be the
    /// machine's own.
    pub(super) const DEFAULT: [Self; 7] = [
        Self::Aws,
        Self::Azure,
        Self::Gcp,
        Self::Hetzner,
        Self::DigitalOcean,
        Self::OpenStack,
        Self::OpenStackTls,
    ];

    pub(super) fn named(name: &str) -> Option<Self> {
        NAMES.iter().find(|(known, _)| *known == name).map(|(_, provider)| *provider)
    }

    /// As in `cloud.provider`.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Aws => "aws",
            Self::Azure => "azure",
            Self::Gcp => "gcp",
            Self::Hetzner => "hetzner",
            Self::DigitalOcean => "digitalocean",
            Self::OpenStack | Self::OpenStackTls => "openstack",
            Self::Alibaba => "ecs",
            Self::Tencent => "qcloud",
        }
    }

    /// Whether its answer is better than that of others: OpenStack answers like EC2 in parts.
    pub(super) fn has_priority(self) -> bool {
        matches!(self, Self::Aws | Self::Azure)
    }

    /// Asks; returns the fields to put on events.
    pub(super) async fn ask(self, client: &CloudClient) -> Result<Map, AskError> {
        let mut fields = match self {
            Self::Aws => aws::ask(client, &client.server("http", METADATA_HOST)?).await?,
            // https://learn.microsoft.com/azure/virtual-machines/instance-metadata-service
            Self::Azure => {
                let path = "/metadata/instance/compute?api-version=2021-02-01";
                answers::azure(&client.json(path, &[("Metadata", "true")]).await?)
            }
            // https://cloud.google.com/compute/docs/metadata/querying-metadata
            Self::Gcp => {
                let path = "/computeMetadata/v1/?recursive=true&alt=json";
                answers::gcp(&client.json(path, &[("Metadata-Flavor", "Google")]).await?)
            }
            // https://docs.hetzner.cloud/#server-metadata
            Self::Hetzner => {
                let paths = [
                    ("/hetzner/v1/metadata/instance-id", "cloud.instance.id"),
                    ("/hetzner/v1/metadata/hostname", "cloud.instance.name"),
                    ("/hetzner/v1/metadata/availability-zone", "cloud.availability_zone"),
                    ("/hetzner/v1/metadata/region", "cloud.region"),
                ];
                let mut fields = client.texts("http", METADATA_HOST, &paths).await?;
                answers::set(&mut fields, "cloud.service.name", "Cloud");
                fields
            }
            // https://docs.digitalocean.com/reference/api/metadata-api/
            Self::DigitalOcean => {
                answers::digital_ocean(&client.json("/metadata/v1.json", &[]).await?)
            }
            // https://docs.openstack.org/nova/latest/user/metadata.html
            Self::OpenStack => open_stack(client, "http").await?,
            Self::OpenStackTls => open_stack(client, "https").await?,
            // https://www.alibabacloud.com/help/en/ecs/user-guide/view-instance-metadata
            Self::Alibaba => {
                let paths = [
                    ("/latest/meta-data/instance-id", "cloud.instance.id"),
                    ("/latest/meta-data/region-id", "cloud.region"),
                    ("/latest/meta-data/zone-id", "cloud.availability_zone"),
                ];
                let mut fields = client.texts("http", "100.100.100.200", &paths).await?;
                answers::set(&mut fields, "cloud.service.name", "ECS");
                fields
            }
            // https://www.tencentcloud.com/document/product/213/4934
            Self::Tencent => {
                let paths = [
                    ("/meta-data/instance-id", "cloud.instance.id"),
                    ("/meta-data/placement/region", "cloud.region"),
                    ("/meta-data/placement/zone", "cloud.availability_zone"),
                ];
                let mut fields = client.texts("http", "metadata.tencentyun.com", &paths).await?;
                answers::set(&mut fields, "cloud.service.name", "CVM");
                fields
            }
        };
        if fields.get_path("cloud.instance.id").is_none() {
            return Err(AskError::Nothing);
        }
        answers::set(&mut fields, "cloud.provider", self.name());
        Ok(fields)
    }
}

async fn open_stack(client: &CloudClient, scheme: &str) -> Result<Map, AskError> {
    let paths = [
        ("/2009-04-04/meta-data/instance-id", "cloud.instance.id"),
        ("/2009-04-04/meta-data/instance-type", "cloud.machine.type"),
        ("/2009-04-04/meta-data/hostname", "cloud.instance.name"),
        ("/2009-04-04/meta-data/placement/availability-zone", "cloud.availability_zone"),
    ];
    let mut fields = client.texts(scheme, METADATA_HOST, &paths).await?;
    answers::set(&mut fields, "cloud.service.name", "Nova");
    Ok(fields)
}
