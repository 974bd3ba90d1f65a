//! The hub over AMQP: one connection for all partitions, tokens for each node, and what the hub says of itself.

use crate::settings::Settings;
use crate::sign::Token;
use skidder_amqp::{
    AmqpError, Answer, Attach, Connection, Item, Login, Opening, Receiver, Request, Rpc, Value,
    upgrade,
};
use skidder_azure::CredentialsError;
use skidder_net::NetError;
use skidder_os::{Clock, Timestamp};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::Mutex;

/// Of connecting, and of each answer.
const TIMEOUT: Duration = Duration::from_secs(30);
/// A token is replaced this long before it expires; at the earliest after a minute.
const MARGIN: Duration = Duration::from_mins(15);
/// See [`MARGIN`].
const KEPT_MIN: Duration = Duration::from_mins(1);
/// Where a namespace has its websocket.
const WEBSOCKET: &str = "/$servicebus/websocket";
/// The node that takes tokens.
const CBS: &str = "$cbs";
/// The longest event: 20 MB in clusters that allow such ones, 1 MB elsewhere.
const EVENT_BYTES_MAX: u64 = 32 << 20;

/// Why the hub does not do something.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HubError {
    #[error(transparent)]
    Net(#[from] NetError),
    #[error("{0}{1}")]
    Amqp(AmqpError, &'static str),
    #[error(transparent)]
    Token(#[from] CredentialsError),
    #[error("the server answered {status} to {what}: {description}{advice}")]
    Refused { what: &'static str, status: i64, description: String, advice: &'static str },
    #[error("the server's answer to {0} has no {1}")]
    Answer(&'static str, &'static str),
}

impl From<AmqpError> for HubError {
    fn from(error: AmqpError) -> Self {
        let advice = match error.condition() {
            Some(condition) => match &*condition.name {
                "amqp:not-found" => "; see `eventhub` and `consumer_group`",
                "amqp:unauthorized-access" => {
                    "; the policy or identity needs the right to listen: `Azure Event Hubs Data Receiver`"
                }
                "amqp:resource-limit-exceeded" => {
                    "; a partition has room for 5 readers of a consumer group: use a group of its own"
                }
                _ => "",
            },
            None => "",
        };
        Self::Amqp(error, advice)
    }
}

impl HubError {
    /// Another reader of the partition has taken it.
    pub(crate) fn is_taken_away(&self) -> bool {
        match self {
            Self::Amqp(error, _) => error.condition().is_some_and(|condition| {
                matches!(
                    &*condition.name,
                    "amqp:link:stolen" | "com.microsoft:receiver-disconnected"
                )
            }),
            _ => false,
        }
    }

    /// The place to read from is not in the partition.
    pub(crate) fn is_about_place(&self) -> bool {
        match self {
            Self::Amqp(error, _) => error.condition().is_some_and(|condition| {
                let is_argument = condition.name.ends_with("argument-error")
                    || condition.name == "amqp:invalid-field";
                is_argument && condition.description.contains("offset")
            }),
            _ => false,
        }
    }
}

/// What the hub says of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Properties {
    /// The number of the oldest event.
    pub(crate) first: i64,
    /// The number of the newest event; -1 if there never was one.
    pub(crate) last: i64,
    pub(crate) is_empty: bool,
}

/// See the module's text.
pub(crate) struct Hub {
    settings: Arc<Settings>,
    clock: Arc<dyn Clock>,
    /// Names this run to the server.
    container: String,
    connections: AtomicU64,
    live: Mutex<Option<Arc<Live>>>,
}

/// A connection.
struct Live {
    connection: Connection,
    /// Nodes whose token the server has, and when they get another one.
    granted: Mutex<BTreeMap<String, Timestamp>>,
    cbs: Mutex<Option<Rpc>>,
    management: Mutex<Option<Rpc>>,
}

impl Hub {
    pub(crate) fn new(settings: Arc<Settings>, clock: Arc<dyn Clock>, container: String) -> Self {
        let (connections, live) = (AtomicU64::new(0), Mutex::default());
        Self { settings, clock, container, connections, live }
    }

    /// The connection, which is made if there is none.
    async fn live(&self) -> Result<Arc<Live>, HubError> {
        let mut live = self.live.lock().await;
        if let Some(live) = live.as_ref().filter(|live| !live.connection.is_closed()) {
            return Ok(Arc::clone(live));
        }
        *live = None;
        let mut stream = self.settings.route.open(TIMEOUT).await?;
        if self.settings.is_websocket {
            let host = self.settings.route.host.to_string();
            let host = host.trim_end_matches(":443");
            let late = Err(AmqpError::Timeout("the websocket", TIMEOUT.as_secs()));
            let upgraded = tokio::time::timeout(TIMEOUT, upgrade(stream, host, WEBSOCKET));
            stream = upgraded.await.unwrap_or(late)?;
        }
        let number = self.connections.fetch_add(1, Ordering::Relaxed);
        let opening = Opening {
            container: format!("{}-{number}", self.container),
            host: self.settings.route.host.name.clone(),
            login: Login::Anonymous,
            timeout: TIMEOUT,
        };
        let connection = Connection::open(stream, &opening).await?;
        let made = Arc::new(Live {
            connection,
            granted: Mutex::default(),
            cbs: Mutex::default(),
            management: Mutex::default(),
        });
        *live = Some(Arc::clone(&made));
        Ok(made)
    }

    /// Does what an error says: the next one gets another connection, or shows its right anew.
    pub(crate) async fn note(&self, error: &HubError) {
        let HubError::Amqp(error, _) = error else { return };
        if !error.is_of_link() {
            *self.live.lock().await = None;
            return;
        }
        if error.condition().is_some_and(|it| it.name == "amqp:unauthorized-access") {
            let live = self.live.lock().await.clone();
            if let Some(live) = live {
                live.granted.lock().await.clear();
            }
            self.settings.login.forget().await;
        }
    }

    fn url(&self, node: &str) -> String {
        let scheme = if self.settings.route.tls.is_some() { "amqps" } else { "amqp" };
        format!("{scheme}://{}/{node}", self.settings.names.namespace)
    }

    /// Shows the right to use a node, unless that was done lately.
    async fn grant(&self, live: &Live, node: &str) -> Result<(), HubError> {
        let now = self.clock.wall();
        if live.granted.lock().await.get(node).is_some_and(|renew| now < *renew) {
            return Ok(());
        }
        let url = self.url(node);
        let Token { kind, text, until } = self.settings.login.token(&url, &self.clock).await?;
        let properties = [
            ("operation", Value::Text("put-token")),
            ("type", Value::Text(kind)),
            ("name", Value::Text(&url)),
            ("expiration", Value::Time(until.0 / 1_000_000)),
        ];
        let request = Request { properties: &properties, body: Some(text.reveal()) };
        let answer = call(&live.connection, &live.cbs, CBS, &request).await?;
        if let Err(error) = check("`put-token`", &answer) {
            self.settings.login.forget().await;
            return Err(error);
        }
        let kept = i64::try_from(KEPT_MIN.as_nanos()).unwrap_or(i64::MAX);
        let renew = until.earlier_by(MARGIN).max(Timestamp(now.0.saturating_add(kept)));
        live.granted.lock().await.insert(node.to_owned(), renew);
        Ok(())
    }

    /// Replaces tokens that expire soon.
    pub(crate) async fn renew(&self) -> Result<(), HubError> {
        let live = self.live.lock().await.clone();
        let Some(live) = live.filter(|live| !live.connection.is_closed()) else { return Ok(()) };
        let nodes: Vec<String> = live.granted.lock().await.keys().cloned().collect();
        for node in nodes {
            self.grant(&live, &node).await?;
        }
        Ok(())
    }

    /// Opens a receiver of a partition, which gets the events for which `filter` holds.
    pub(crate) async fn receiver(
        &self,
        partition: &str,
        filter: &str,
    ) -> Result<Receiver, HubError> {
        let opened = self.open_receiver(partition, filter).await;
        if let Err(error) = &opened {
            self.note(error).await;
        }
        opened
    }

    async fn open_receiver(&self, partition: &str, filter: &str) -> Result<Receiver, HubError> {
        let live = self.live().await?;
        let names = &self.settings.names;
        let node = format!("{}/ConsumerGroups/{}/Partitions/{partition}", names.hub, names.group);
        self.grant(&live, &node).await?;
        // With a level each new reader of the same level takes the partition from the one before it.
        let properties = [("com.microsoft:epoch", Value::Long(0))];
        let attach = Attach {
            node: &node,
            filter: Some(filter),
            properties: &properties,
            credit: self.settings.credit,
            message_bytes_max: EVENT_BYTES_MAX,
        };
        Ok(live.connection.receiver(attach).await?)
    }

    async fn read(
        &self,
        what: &'static str,
        kind: &str,
        partition: Option<&str>,
    ) -> Result<Answer, HubError> {
        let asked = self.ask(what, kind, partition).await;
        if let Err(error) = &asked {
            self.note(error).await;
        }
        asked
    }

    async fn ask(
        &self,
        what: &'static str,
        kind: &str,
        partition: Option<&str>,
    ) -> Result<Answer, HubError> {
        let live = self.live().await?;
        let hub = &*self.settings.names.hub;
        let node = format!("{hub}/$management");
        self.grant(&live, &node).await?;
        let token = self.settings.login.token(&self.url(hub), &self.clock).await?;
        let mut properties = vec![
            ("operation", Value::Text("READ")),
            ("name", Value::Text(hub)),
            ("type", Value::Text(kind)),
            ("security_token", Value::Text(token.text.reveal())),
        ];
        properties.extend(partition.map(|partition| ("partition", Value::Text(partition))));
        let request = Request { properties: &properties, body: None };
        let answer = call(&live.connection, &live.management, &node, &request).await?;
        check(what, &answer)?;
        Ok(answer)
    }

    /// The names of the partitions.
    pub(crate) async fn partitions(&self) -> Result<Vec<String>, HubError> {
        const WHAT: &str = "the question for the partitions";
        let answer = self.read(WHAT, "com.microsoft:eventhub", None).await?;
        let ids = answer.get("partition_ids").and_then(|ids| {
            let texts = ids.texts()?;
            Some(texts.into_iter().map(str::to_owned).collect::<Vec<String>>())
        });
        ids.filter(|ids| !ids.is_empty()).ok_or(HubError::Answer(WHAT, "`partition_ids`"))
    }

    /// Where a partition begins and ends.
    pub(crate) async fn properties(&self, partition: &str) -> Result<Properties, HubError> {
        const WHAT: &str = "the question for a partition";
        let answer = self.read(WHAT, "com.microsoft:partition", Some(partition)).await?;
        let number = |name: &'static str| {
            let number = answer.get(name).and_then(|item| item.number());
            number.ok_or(HubError::Answer(WHAT, name))
        };
        Ok(Properties {
            first: number("begin_sequence_number")?,
            last: number("last_enqueued_sequence_number")?,
            is_empty: matches!(answer.get("is_partition_empty"), Some(Item::Bool(true))),
        })
    }

    /// Closes the connection.
    pub(crate) async fn close(&self) {
        let live = self.live.lock().await.take();
        if let Some(live) = live {
            live.connection.close().await;
        }
    }
}

/// Asks a node over links that are opened if there are none.
async fn call(
    connection: &Connection,
    links: &Mutex<Option<Rpc>>,
    node: &str,
    request: &Request<'_>,
) -> Result<Answer, AmqpError> {
    let mut links = links.lock().await;
    // The server closes links that were idle for long.
    let is_kept = links.is_some();
    let mut rpc = match links.take() {
        Some(rpc) => rpc,
        None => connection.rpc(node).await?,
    };
    let answer = match rpc.call(request).await {
        Err(AmqpError::Detached(_)) if is_kept => {
            rpc = connection.rpc(node).await?;
            rpc.call(request).await?
        }
        answer => answer?,
    };
    *links = Some(rpc);
    Ok(answer)
}

fn check(what: &'static str, answer: &Answer) -> Result<(), HubError> {
    if (200..300).contains(&answer.status) {
        return Ok(());
    }
    let advice = match answer.status {
        401 | 403 => {
            "; see the credentials, and whether they have the right to listen (`Azure Event Hubs Data Receiver`)"
        }
        404 => "; see `eventhub` and `connection_string` or `eventhub_namespace`",
        _ => "",
    };
    let description = answer.description.lines().next().unwrap_or_default().to_owned();
    Err(HubError::Refused { what, status: answer.status, description, advice })
}
