//! Azurite with blobs, and the input with one output that takes everything.

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use skidder_azure::{ConnectionString, Container, Provider, Put, Service, Target};
use skidder_config::{Problems, Settings};
use skidder_input::Input;
use skidder_input_azure::{
    AZURE_BLOB_INPUT, AZURE_BLOB_READING, AZURE_LISTING, BlobReading, ContainerSettings,
    ListingOptions,
};
use skidder_net::{HostUrl, ProxyChoice, usual_port};
use skidder_os::{Fs, RealFs, SystemClock};
use skidder_read::FilestreamSettings;
use skidder_read::scan::ScanSettings;
use skidder_testkit::servers::Server;
use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

pub(crate) const KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/// A server of a test's own, with the containers `logs` and `other`.
pub(crate) struct Cloud {
    pub(crate) server: Server,
}

impl Cloud {
    pub(crate) async fn start() -> Self {
        let cloud = Self { server: Server::own_azurite(false).unwrap() };
        for container in ["logs", "other"] {
            cloud.client(container).create().await.unwrap();
        }
        cloud
    }

    /// The URL of the account.
    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/devstoreaccount1", self.server.port())
    }

    pub(crate) fn client(&self, container: &str) -> Container {
        let url = HostUrl::parse(&self.url(), "", "", usual_port).unwrap();
        let key = ConnectionString::parse("UseDevelopmentStorage=true").unwrap().credential;
        let direct = ProxyChoice::Direct;
        let provider = Provider::new(key, direct.clone(), Arc::new(RealFs)).unwrap();
        let service = Service {
            target: Arc::new(Target::at(url, &direct)),
            container: container.to_owned(),
            tls: None,
            provider: Arc::new(provider),
            timeout: Duration::from_secs(20),
        };
        Container::new(service.client(Arc::new(()), Arc::new(SystemClock::new())))
    }

    /// Puts a blob of this type.
    pub(crate) async fn put_as(
        &self,
        container: &str,
        name: &str,
        content_type: &str,
        content: impl Into<Bytes>,
    ) {
        let body = [content.into()];
        let put = Put { body: &body, content_type, ..Put::default() };
        self.client(container).put(name, put).await.unwrap();
    }

    /// Puts a blob into the container `logs`.
    pub(crate) async fn put(&self, name: &str, content: impl Into<Bytes>) {
        self.put_as("logs", name, "text/plain", content).await;
    }

    /// The input of these settings, which reads these containers.
    pub(crate) fn input(&self, containers: &[&str], settings: &str) -> Box<dyn Input> {
        let text = format!(
            "{{account_name: devstoreaccount1, auth.shared_credentials.account_key: '{KEY}', storage_url: '{}', \
             {settings}}}",
            self.url()
        );
        input(containers, &text)
    }
}

/// The input of these settings.
pub(crate) fn input(containers: &[&str], text: &str) -> Box<dyn Input> {
    let problems = Problems::new();
    let yaml = Settings::parse("x", text).expect("YAML");
    let section = yaml.root(&problems);
    for group in [&AZURE_BLOB_INPUT, &AZURE_LISTING, &AZURE_BLOB_READING] {
        section.declared_by(group);
    }
    let fs: Arc<dyn Fs> = Arc::new(RealFs);
    let listing = ListingOptions::read(&section);
    let reading = FilestreamSettings::new("", ScanSettings::default());
    let blobs = BlobReading::read(&section, reading);
    let containers = containers.iter().map(|name| ContainerSettings {
        name: (*name).to_owned(),
        listing: listing.clone(),
        blobs: blobs.clone(),
    });
    let containers = containers.collect();
    let read = skidder_input_azure::read(&section, &fs, containers, |_| None);
    section.finish();
    Box::new(read.unwrap_or_else(|| panic!("{problems}")))
}

pub(crate) fn lines(name: &str, count: usize) -> String {
    let mut text = String::new();
    for number in 0..count {
        writeln!(text, "{name} {number:06} of {count}").unwrap();
    }
    text
}

pub(crate) fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}
