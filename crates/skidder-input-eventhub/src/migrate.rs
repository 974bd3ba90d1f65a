//! Checkpoints of Filebeat's processor v1, the default until 9.3: a blob of JSON for each partition, named as the partition
//! (`x-pack/filebeat/input/azureeventhub/v2_migration.go`).

use crate::store::{Checkpoint, Store};
use serde::Deserialize;
use skidder_azure::Failure;
use std::collections::BTreeMap;

/// Bytes of such a blob, at most; they have some hundred.
const BLOB_BYTES_MAX: usize = 64 << 10;

#[derive(Debug, Deserialize)]
struct Lease {
    checkpoint: OfLease,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct OfLease {
    #[serde(default)]
    offset: String,
    #[serde(default)]
    sequence_number: i64,
}

/// Reads a lease of v1. `None` for one of a partition of which nothing was read.
fn read(blob: &[u8]) -> Result<Option<Checkpoint>, String> {
    let lease: Lease = serde_json::from_slice(blob).map_err(|error| error.to_string())?;
    let OfLease { offset, sequence_number } = lease.checkpoint;
    if offset.is_empty() || offset == "-1" {
        return Ok(None);
    }
    let offset: i64 = offset.parse().map_err(|_| format!("`{offset}` is no offset"))?;
    Ok(Some(Checkpoint { sequence: Some(sequence_number), offset: offset.to_string() }))
}

/// Adds those checkpoints of v1 to `checkpoints` whose partitions have none of v2, and writes them.
pub(crate) async fn migrate(
    store: &mut Store,
    partitions: &[String],
    checkpoints: &mut BTreeMap<String, Checkpoint>,
) -> Result<(), Failure> {
    for partition in partitions {
        if checkpoints.contains_key(partition) {
            continue;
        }
        let Some(blob) = store.read(partition, BLOB_BYTES_MAX).await? else { continue };
        match read(&blob) {
            Ok(Some(checkpoint)) => {
                store.set_checkpoint(partition, &checkpoint).await?;
                let Checkpoint { sequence, offset } = &checkpoint;
                tracing::info!(
                    partition,
                    sequence,
                    offset,
                    "the checkpoint of Filebeat's processor v1 is taken over"
                );
                checkpoints.insert(partition.clone(), checkpoint);
            }
            Ok(None) => {}
            Err(error) => tracing::warn!(
                partition,
                error,
                "a blob that is named as a partition is no checkpoint of Filebeat's processor v1, and is not taken over"
            ),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_of_v1_is_a_checkpoint() {
        let lease = |offset: &str| {
            format!(
                r#"{{"partitionID":"0","epoch":1,"owner":"o","checkpoint":{{"offset":"{offset}","sequenceNumber":7,
                "enqueueTime":"0001-01-01T00:00:00Z"}},"state":"available","token":"t"}}"#
            )
        };
        let expected = Checkpoint { sequence: Some(7), offset: "4096".to_owned() };
        assert_eq!(read(lease("4096").as_bytes()), Ok(Some(expected)));
        assert_eq!(read(lease("").as_bytes()), Ok(None));
        assert_eq!(read(lease("-1").as_bytes()), Ok(None));
        assert!(read(lease("x").as_bytes()).is_err());
        assert!(read(b"text").is_err());
    }
}
