//! Servers that do not speak HTTP: each is started for one test, which takes a second.

use super::{Server, ServerError};
use std::path::PathBuf;

impl Server {
    /// Elastic's Lumberjack library as a server, over TLS if `secure`; `settings` are its own options (`-delay 4s`).
    pub fn own_lumberjack(secure: bool, settings: &str) -> Result<Self, ServerError> {
        Self::start("lumberjack.sh", secure, settings)
    }

    /// A client over Elastic's own Lumberjack library: sends the lines of JSON that it gets over TCP to `target`
    /// (`HOST:PORT`), and answers each line when it was acknowledged. `settings` are its own options (`-tls`).
    pub fn own_lumberjack_client(target: &str, settings: &str) -> Result<Self, ServerError> {
        Self::start("lumberjack.sh", false, &format!("-forward {target} {settings}"))
    }

    /// A Lumberjack server that is not Elastic's, without TLS.
    pub fn own_camel_lumberjack() -> Result<Self, ServerError> {
        Self::start("camel-lumberjack.sh", false, "")
    }

    /// The receiver of the OpenTelemetry Collector for OTLP, over TLS if `secure`; `settings` are its own options
    /// (`-http`).
    pub fn own_otelcol(secure: bool, settings: &str) -> Result<Self, ServerError> {
        Self::start("otelcol.sh", secure, settings)
    }

    /// A client of OTLP over gRPC, with the messages of the Collector and the library of Go: sends the lines that it gets
    /// over TCP to `target` (`HOST:PORT`), and answers each line `taken`, or with the status of its refusal. `settings`
    /// are its own options (`-tls`).
    pub fn own_otlp_client(target: &str, settings: &str) -> Result<Self, ServerError> {
        Self::start("otelcol.sh", false, &format!("-forward {target} {settings}"))
    }

    /// Redis with the password `secret` and the user `test`/`secret`, over TLS if `secure`.
    pub fn own_redis(secure: bool, settings: &str) -> Result<Self, ServerError> {
        Self::start("redis.sh", secure, settings)
    }

    /// Mosquitto, on four ports: see `tests/servers/mosquitto.sh`. `settings` are lines of its own configuration.
    pub fn own_mosquitto(settings: &str) -> Result<Self, ServerError> {
        Self::start("mosquitto.sh", false, settings)
    }

    /// rsyslog, which forwards what it gets over TCP to `target` (`HOST:PORT`), as `mode` of `tests/servers/rsyslog.sh` says.
    pub fn own_rsyslog(target: &str, mode: &str) -> Result<Self, ServerError> {
        Self::start("rsyslog.sh", false, &format!("{target} {mode}"))
    }

    /// versitygw, a server of S3 with the buckets `logs` and `closed`, over TLS if `secure`: see `tests/servers/s3.sh`.
    pub fn own_s3(secure: bool) -> Result<Self, ServerError> {
        Self::start("s3.sh", secure, "")
    }

    /// moto, a look-alike of Amazon's S3, SQS, STS and CloudWatch Logs, which takes any access key.
    pub fn own_moto() -> Result<Self, ServerError> {
        Self::start("moto.sh", false, "")
    }

    /// Azurite, Microsoft's emulator of Azure Storage, which checks signatures; over TLS if `secure`, and then it takes tokens
    /// too: see `tests/servers/azurite.sh`.
    pub fn own_azurite(secure: bool) -> Result<Self, ServerError> {
        Self::start("azurite.sh", secure, "")
    }

    /// Google Cloud Pub/Sub in memory, for the project `test`. [`Server::port`] is that of its face for tests over HTTP, see
    /// `tests/servers/pubsub/main.go`; gRPC is at the port before it. `settings` are its own options (`-stream-timeout 2s`).
    pub fn own_pubsub(settings: &str) -> Result<Self, ServerError> {
        Self::start("pubsub.sh", false, settings)
    }

    /// Apache Artemis, a broker of AMQP 1.0 for the user `test` with the password `secret`; over TLS at the port behind its own.
    /// [`Server::file`]`("send")` sends messages to a queue: see `tests/servers/artemis.sh`.
    pub fn own_artemis() -> Result<Self, ServerError> {
        Self::start("artemis.sh", false, "")
    }

    /// A stand-in for Azure Event Hubs in memory, which is ours. [`Server::port`] is that of its face for tests over HTTP, see
    /// `tests/servers/eventhub/server.js`; AMQP is at the port before it, and over TLS at the port behind it.
    /// [`Server::file`]`("client")` is Microsoft's own client.
    pub fn own_eventhub() -> Result<Self, ServerError> {
        Self::start("eventhub.sh", false, "")
    }

    /// fake-gcs-server, a look-alike of Google's Cloud Storage without buckets, which takes any token.
    pub fn own_gcs() -> Result<Self, ServerError> {
        Self::start("gcs.sh", false, "")
    }

    /// A SOCKS5 proxy for the user `test` with the password `secret`.
    pub fn own_socks() -> Result<Self, ServerError> {
        Self::start("socks.sh", false, "")
    }

    /// Unbound with the zone of `tests/servers/unbound.sh`, over TLS if `secure`.
    pub fn own_unbound(secure: bool) -> Result<Self, ServerError> {
        Self::start("unbound.sh", secure, "")
    }

    /// systemd-journald as the namespace `skidder<port>`: see `tests/servers/journald.sh`.
    pub fn own_journald() -> Result<Self, ServerError> {
        Self::start("journald.sh", false, "")
    }

    /// A Docker engine at `docker.sock` of its folder, with the image `busybox:test`: see `tests/servers/docker.sh`. Its
    /// client is [`Server::file`]`("docker")`.
    pub fn own_docker() -> Result<Self, ServerError> {
        Self::start("docker.sh", false, "")
    }

    /// The API server of Kubernetes, with etcd at the next port: see `tests/servers/kube-apiserver.sh`. `settings` are its
    /// own options (`--watch-cache=false`).
    pub fn own_kube_apiserver(settings: &str) -> Result<Self, ServerError> {
        Self::start("kube-apiserver.sh", true, settings)
    }

    /// Where it listens.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// A file in the folder of a server of the test's own, as `events.ndjson` of a Lumberjack server.
    pub fn file(&self, name: &str) -> PathBuf {
        let own = self.own.as_ref().expect("only a server of the test's own has a folder");
        own.directory.path().join(name)
    }
}
