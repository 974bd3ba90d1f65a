//! What becomes of objects behind the verdict of their last line: they are copied, and perhaps deleted.

use crate::objects::Sent;
use crate::servers::BucketName;
use crate::settings::Backup;
use crate::store::{Clients, ObjectPlace, store_error};
use skidder_amazon::{Bucket, Failure, ObjectName};

/// Why an object is not copied or not deleted. It may be tried again.
#[derive(Debug, thiserror::Error)]
#[error("cannot {what} the object `{key}`: {why}")]
pub(crate) struct BackupError {
    what: &'static str,
    key: String,
    why: String,
}

/// Copies an object, and deletes it if the settings say so. One that is gone was deleted by an earlier try.
pub(crate) async fn back_up(
    clients: &Clients,
    backup: &Backup,
    sent: &Sent,
) -> Result<(), BackupError> {
    let (place, etag) = (&sent.wanted.place, &sent.version);
    let to = BucketName::Bucket(backup.bucket.clone());
    let key = format!("{}{}", backup.prefix, place.key);
    let mut client = clients.take(&to, &place.region);
    let copied = copy(&mut client, place, etag, &key).await;
    clients.give_back(&to, &place.region, client);
    match copied {
        Ok(()) => {}
        Err(Failure::Refused(refused)) if refused.is_missing() && backup.delete => return Ok(()),
        Err(failure) => return Err(error("copy", &failure, place)),
    }
    if !backup.delete {
        return Ok(());
    }
    let mut client = clients.take(&place.bucket, &place.region);
    let deleted = client.delete(name(place)).await;
    clients.give_back(&place.bucket, &place.region, client);
    deleted.map_err(|failure| error("delete", &failure, place))
}

async fn copy(
    client: &mut Bucket,
    place: &ObjectPlace,
    etag: &str,
    key: &str,
) -> Result<(), Failure> {
    let from = place.bucket.text();
    client.copy((from.as_str(), name(place)), Some(etag), key).await.map(|_| ())
}

fn name(place: &ObjectPlace) -> ObjectName<'_> {
    ObjectName { key: &place.key, version: place.version.as_deref() }
}

fn error(what: &'static str, failure: &Failure, place: &ObjectPlace) -> BackupError {
    BackupError { what, key: place.key.clone(), why: store_error(failure, place).to_string() }
}
