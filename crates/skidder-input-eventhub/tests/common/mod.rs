//! A stand-in for Event Hubs and Azurite for tests, and the input.

use serde_json::Value;
use skidder_azure::{ConnectionString, Container, List, Listed, Provider, Service, Target};
use skidder_config::{Problems, Settings};
use skidder_contract::{FarSideFuture, InputTrial, Meaning, line};
use skidder_input::Input;
use skidder_input_eventhub::AZURE_EVENTHUB_INPUT;
use skidder_net::{HostUrl, ProxyChoice, usual_port};
use skidder_os::{Fs, RealFs, SystemClock};
use skidder_testkit::servers::Server;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Events of a message of a trial.
const EVENTS: usize = 10;

/// Both servers.
pub(crate) struct Cloud {
    pub(crate) hub: Server,
    pub(crate) blobs: Server,
}

impl Cloud {
    pub(crate) fn start() -> Arc<Self> {
        let (hub, blobs) = (Server::own_eventhub().unwrap(), Server::own_azurite(false).unwrap());
        Arc::new(Self { hub, blobs })
    }

    /// Where it speaks AMQP without TLS.
    pub(crate) fn namespace(&self) -> String {
        format!("localhost:{}", self.hub.port() - 1)
    }

    /// The same with TLS.
    pub(crate) fn secure(&self) -> String {
        format!("localhost:{}", self.hub.port() + 1)
    }

    /// Asks the face for tests; returns its numbers.
    pub(crate) fn ask(&self, path: &str, body: &str) -> Value {
        let (status, answer) = self.hub.text("POST", path, &[], body).unwrap();
        assert_eq!(status, 200, "{path}: {answer}");
        serde_json::from_str(&answer).unwrap()
    }

    /// Publishes a message for each text.
    pub(crate) fn publish(&self, hub: &str, partition: usize, texts: &[String]) {
        self.ask(&format!("/publish?hub={hub}&partition={partition}"), &texts.join("\n"));
    }

    /// The connection string of the storage account.
    pub(crate) fn storage(&self) -> String {
        let key = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
        let place = format!("http://127.0.0.1:{}/devstoreaccount1", self.blobs.port());
        format!(
            "DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;AccountKey={key};BlobEndpoint={place}"
        )
    }

    /// The input without TLS, with settings of its own.
    pub(crate) fn input(&self, hub: &str, settings: &str) -> Box<dyn Input> {
        let access = format!(
            "Endpoint=sb://{};SharedAccessKeyName=test;SharedAccessKey=secret;UseDevelopmentEmulator=true",
            self.namespace()
        );
        self.input_by(&access, hub, settings)
    }

    /// The input by this connection string.
    pub(crate) fn input_by(&self, access: &str, hub: &str, settings: &str) -> Box<dyn Input> {
        let text = format!(
            "{{eventhub: {hub}, connection_string: '{access}', storage_account_connection_string: '{}', \
             processor_strategy: greedy, processor_update_interval: 1s, {settings}}}",
            self.storage()
        );
        let problems = Problems::new();
        let yaml = Settings::parse("x", &text).expect("YAML");
        let section = yaml.root(&problems);
        section.declared_by(&AZURE_EVENTHUB_INPUT);
        let fs: Arc<dyn Fs> = Arc::new(RealFs);
        let read = skidder_input_eventhub::read(&section, &fs, |_| None);
        section.finish();
        Box::new(read.unwrap_or_else(|| panic!("{problems}")))
    }

    pub(crate) fn container(&self, name: &str) -> Container {
        let parsed = ConnectionString::parse(&self.storage()).unwrap();
        let url = format!("http://127.0.0.1:{}/devstoreaccount1", self.blobs.port());
        let url = HostUrl::parse(&url, "", "", usual_port).unwrap();
        let direct = ProxyChoice::Direct;
        let provider = Provider::new(parsed.credential, direct.clone(), Arc::new(RealFs)).unwrap();
        let service = Service {
            target: Arc::new(Target::at(url, &direct)),
            container: name.to_owned(),
            tls: None,
            provider: Arc::new(provider),
            timeout: Duration::from_secs(20),
        };
        Container::new(service.client(Arc::new(()), Arc::new(SystemClock::new())))
    }

    /// The metadata of all blobs of a container, by name.
    pub(crate) async fn metadata(
        &self,
        container: &str,
    ) -> BTreeMap<String, BTreeMap<String, String>> {
        let list = List { metadata: true, ..List::default() };
        match self.container(container).list(list).await {
            Ok(page) => {
                let pair = |blob: Listed| (blob.name, blob.metadata);
                page.blobs.into_iter().map(pair).collect()
            }
            // It is not there yet.
            Err(_) => BTreeMap::new(),
        }
    }

    /// The number of the last event of a partition that is checkpointed; -1 for none.
    pub(crate) async fn checkpoint(&self, hub: &str, partition: usize) -> i64 {
        let all = self.metadata(&format!("filebeat-{hub}")).await;
        let end = format!("/checkpoint/{partition}");
        let blob = all.into_iter().find(|(name, _)| name.ends_with(&end));
        blob.map_or(-1, |(_, metadata)| metadata["sequencenumber"].parse().unwrap())
    }

    /// The authority of the certificate.
    pub(crate) fn authority(&self) -> String {
        self.hub.file("certs/ca.crt").display().to_string()
    }

    /// What Microsoft's own client reads within so many seconds: pairs of partition and number.
    pub(crate) fn read_with_microsofts_client(
        &self,
        hub: &str,
        group: &str,
        seconds: u32,
    ) -> Vec<(usize, i64)> {
        let port = (self.hub.port() + 1).to_string();
        let (storage, seconds) = (self.storage(), seconds.to_string());
        let container = format!("filebeat-{hub}");
        let program: &Path = &self.hub.file("client");
        let ran = std::process::Command::new(program)
            .args([&*port, "localhost", &storage, &container, hub, group, &seconds])
            .output()
            .unwrap();
        let (out, errors) =
            (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
        assert!(ran.status.success() && out.contains("\"done\":true"), "{errors}");
        let events = out.lines().filter_map(|text| {
            let event: Value = serde_json::from_str(text).unwrap();
            let partition = event["partition"].as_str()?.parse().unwrap();
            Some((partition, event["sequence"].as_i64().unwrap()))
        });
        events.collect()
    }
}

/// A hub with two partitions.
pub(crate) struct Trial {
    cloud: Arc<Cloud>,
    hub: String,
    /// The lines of each message of each partition.
    sent: Mutex<[Vec<Vec<usize>>; 2]>,
}

impl Trial {
    pub(crate) fn new(cloud: &Arc<Cloud>) -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let hub = format!("trial-{}", NEXT.fetch_add(1, Ordering::Relaxed));
        Self { cloud: Arc::clone(cloud), hub, sent: Mutex::default() }
    }
}

impl InputTrial for Trial {
    fn input(&self) -> Box<dyn Input> {
        self.cloud.input(&self.hub, "partition_receive_count: 50")
    }

    fn meaning(&self) -> Meaning {
        Meaning::Acknowledgement
    }

    fn send(&self, lines: Range<usize>) -> FarSideFuture<'_> {
        Box::pin(async move {
            let lines: Vec<usize> = lines.collect();
            let (mut all, mut sent) = ([Vec::new(), Vec::new()], self.sent.lock().unwrap());
            for (number, some) in lines.chunks(EVENTS).enumerate() {
                let texts: Vec<String> = some.iter().map(|number| line(*number)).collect();
                all[number % 2].push(serde_json::json!({"records": texts}).to_string());
                sent[number % 2].push(some.to_vec());
            }
            for (partition, messages) in all.iter().enumerate().filter(|(_, all)| !all.is_empty()) {
                self.cloud.publish(&self.hub, partition, messages);
            }
        })
    }

    fn acknowledged(&self) -> BTreeSet<usize> {
        let asking = async {
            [self.cloud.checkpoint(&self.hub, 0).await, self.cloud.checkpoint(&self.hub, 1).await]
        };
        let handle = tokio::runtime::Handle::current();
        let until = tokio::task::block_in_place(|| handle.block_on(asking));
        let sent = self.sent.lock().unwrap();
        let of = |partition: usize| {
            let count = usize::try_from(until[partition] + 1).unwrap();
            sent[partition][..count].iter().flatten().copied()
        };
        of(0).chain(of(1)).collect()
    }
}
