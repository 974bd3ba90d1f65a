//! Claims and checkpoints in blobs, laid out as Azure's processor for Go does, which Filebeat has
//! (`azeventhubs/checkpoints/blob_store.go`): empty blobs, whose metadata is all there is.

use crate::balance::Ownership;
use skidder_azure::{Changed, Condition, Container, Failure, List, Listed, Part, Put};
use skidder_os::{Clock, Timestamp};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The metadata of a claim.
const OWNER: &str = "ownerid";
/// The metadata of a checkpoint.
const SEQUENCE: &str = "sequencenumber";
/// The other one.
const OFFSET: &str = "offset";

/// What is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Names {
    /// The host, as the settings have it.
    pub(crate) namespace: String,
    pub(crate) hub: String,
    pub(crate) group: String,
}

impl Names {
    /// What the names of its blobs begin with.
    pub(crate) fn prefix(&self) -> String {
        let Self { namespace, hub, group } = self;
        format!("{namespace}/{hub}/{group}")
    }

    fn ownership(&self, partition: &str) -> String {
        format!("{}/ownership/{partition}", self.prefix())
    }

    pub(crate) fn checkpoint(&self, partition: &str) -> String {
        format!("{}/checkpoint/{partition}", self.prefix())
    }
}

/// How far a partition is settled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Checkpoint {
    /// `None`, or no number: only the other one counts.
    pub(crate) sequence: Option<i64>,
    /// Empty: only the other one counts.
    pub(crate) offset: String,
}

/// One worker's way to the blobs.
pub(crate) struct Store {
    container: Container,
    names: Names,
    clock: Arc<dyn Clock>,
}

impl Store {
    pub(crate) fn new(container: Container, names: Names, clock: Arc<dyn Clock>) -> Self {
        Self { container, names, clock }
    }

    /// Makes the container if there is none.
    pub(crate) async fn create(&mut self) -> Result<(), Failure> {
        // Listing needs no right to make one.
        let list = List { prefix: "", blobs_max: Some(1), ..List::default() };
        match self.container.list(list).await {
            Ok(_) => Ok(()),
            Err(Failure::Refused(refused)) if refused.code == "ContainerNotFound" => {
                let is_new = self.container.create().await?;
                if is_new {
                    tracing::info!("the container of the checkpoints is created");
                }
                Ok(())
            }
            Err(failure) => Err(failure),
        }
    }

    /// All blobs of a prefix, by what follows it.
    async fn list(&mut self, prefix: &str) -> Result<BTreeMap<String, Listed>, Failure> {
        let mut all = BTreeMap::new();
        let mut marker: Option<String> = None;
        loop {
            let list =
                List { prefix, marker: marker.as_deref(), metadata: true, ..List::default() };
            let page = self.container.list(list).await?;
            for blob in page.blobs {
                if let Some(name) = blob.name.strip_prefix(prefix)
                    && !name.contains('/')
                {
                    all.insert(name.to_owned(), blob);
                }
            }
            match page.next {
                Some(next) => marker = Some(next),
                None => return Ok(all),
            }
        }
    }

    /// All claims.
    pub(crate) async fn ownerships(&mut self) -> Result<Vec<Ownership>, Failure> {
        let prefix = self.names.ownership("");
        let blobs = self.list(&prefix).await?;
        let ownership = |(partition, blob): (String, Listed)| Ownership {
            partition,
            owner: blob.metadata.get(OWNER).cloned().unwrap_or_default(),
            etag: blob.etag,
            modified: blob.modified.unwrap_or(Timestamp(0)),
        };
        Ok(blobs.into_iter().map(ownership).collect())
    }

    /// Claims a partition for `owner`, or gives it back if that is empty. `None`: another process was faster.
    pub(crate) async fn claim(
        &mut self,
        wanted: &Ownership,
        owner: &str,
    ) -> Result<Option<Ownership>, Failure> {
        let blob = self.names.ownership(&wanted.partition);
        let metadata = [(OWNER, owner)];
        let changed = if wanted.etag.is_empty() {
            let put =
                Put { metadata: &metadata, condition: Condition::IfMissing, ..Put::default() };
            self.container.put(&blob, put).await
        } else {
            let condition = Condition::IfMatch(&wanted.etag);
            self.container.set_metadata(&blob, &metadata, condition, None).await
        };
        let Changed { etag, modified } = match changed {
            Ok(changed) => changed,
            Err(Failure::Refused(refused)) if refused.is_changed() || refused.is_missing() => {
                return Ok(None);
            }
            Err(failure) => return Err(failure),
        };
        Ok(Some(Ownership {
            partition: wanted.partition.clone(),
            owner: owner.to_owned(),
            etag,
            modified: modified.unwrap_or_else(|| self.clock.wall()),
        }))
    }

    /// All checkpoints, by partition.
    pub(crate) async fn checkpoints(&mut self) -> Result<BTreeMap<String, Checkpoint>, Failure> {
        let prefix = self.names.checkpoint("");
        let blobs = self.list(&prefix).await?;
        let checkpoint = |(partition, blob): (String, Listed)| {
            let text = |name: &str| blob.metadata.get(name).map(|text| text.trim().to_owned());
            let sequence = text(SEQUENCE).and_then(|text| text.parse().ok());
            (partition, Checkpoint { sequence, offset: text(OFFSET).unwrap_or_default() })
        };
        Ok(blobs.into_iter().map(checkpoint).collect())
    }

    /// Writes a checkpoint.
    pub(crate) async fn set_checkpoint(
        &mut self,
        partition: &str,
        checkpoint: &Checkpoint,
    ) -> Result<(), Failure> {
        let blob = self.names.checkpoint(partition);
        let sequence = checkpoint.sequence.map(|number| number.to_string());
        let mut metadata: Vec<(&str, &str)> = Vec::with_capacity(2);
        metadata.extend(sequence.as_deref().map(|text| (SEQUENCE, text)));
        metadata.push((OFFSET, &checkpoint.offset));
        let set = self.container.set_metadata(&blob, &metadata, Condition::Always, None).await;
        match set {
            Ok(_) => Ok(()),
            Err(Failure::Refused(refused)) if refused.is_missing() => {
                let put = Put { metadata: &metadata, ..Put::default() };
                self.container.put(&blob, put).await.map(|_| ())
            }
            Err(failure) => Err(failure),
        }
    }

    /// The content of a small blob; `None` if there is none.
    pub(crate) async fn read(
        &mut self,
        blob: &str,
        bytes_max: usize,
    ) -> Result<Option<Vec<u8>>, Failure> {
        let mut got = match self.container.get(blob, Part::default()).await {
            Ok(got) => got,
            Err(Failure::Refused(refused)) if refused.is_missing() => return Ok(None),
            Err(failure) => return Err(failure),
        };
        let mut content = Vec::new();
        while let Some(piece) = got.content.piece(bytes_max).await? {
            content.extend_from_slice(&piece);
            if content.len() > bytes_max {
                break;
            }
        }
        Ok(Some(content))
    }
}
