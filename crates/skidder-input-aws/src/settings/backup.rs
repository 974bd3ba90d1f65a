//! Settings of what becomes of objects that were read.

use super::Place;
use crate::servers::{BucketArn, BucketName, check_bucket};
use skidder_config::{Group, Key, Section, settings};

settings! {
    /// What becomes of objects that were read.
    pub(super) static AWS_S3_BACKUP = Group::new("input.aws-s3.backup", "What becomes of objects that were read.");

    TO_BUCKET_ARN: String = Key::new("backup_to_bucket_arn")
        .noun("the ARN of a bucket")
        .about("an object is copied there behind the verdict of its last line; at most 5 GB. Other objects than those that \
                are read must be there: another bucket, or another prefix");
    TO_OTHER: String = Key::new("non_aws_backup_to_bucket_name")
        .noun("the name of a bucket")
        .about("the same with `non_aws_bucket_name`");
    PREFIX: String = Key::new("backup_to_bucket_prefix")
        .default("")
        .about("stands before the name of the copy");
    DELETE: bool = Key::new("delete_after_backup")
        .default(false)
        .about("the object is deleted when its copy is there");
}

/// What becomes of objects that were read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Backup {
    /// Copies go there.
    pub(crate) bucket: String,
    /// What their names begin with.
    pub(crate) prefix: String,
    /// The originals are deleted.
    pub(crate) delete: bool,
}

/// Reads them; reports mistakes.
pub(super) fn read(section: &Section<'_>, place: &Place) -> Option<Backup> {
    let name = |text: String| match BucketArn::parse(&text)?.bucket {
        BucketName::Bucket(name) => Ok(name),
        BucketName::AccessPoint { .. } => {
            Err("expected the ARN of a bucket, and no access point".to_owned())
        }
    };
    let (arn, other) = (section.get(&TO_BUCKET_ARN).try_map(name), section.get(&TO_OTHER));
    let (arn, other) = (arn.optional(), other.check(|name| check_bucket(name)).optional());
    let prefix = section.get(&PREFIX).value();
    let delete = section.get(&DELETE).value();
    if arn.is_some() && other.is_some() {
        let message = "`backup_to_bucket_arn` and `non_aws_backup_to_bucket_name` are both set";
        section.problem(TO_OTHER.name(), message, "leave one of them out");
    }
    let is_other = section.has("non_aws_bucket_name");
    for (key, is_wrong, hint) in [
        (&TO_OTHER, other.is_some() && !is_other, "set `backup_to_bucket_arn`"),
        (&TO_BUCKET_ARN, arn.is_some() && is_other, "set `non_aws_backup_to_bucket_name`"),
    ] {
        if is_wrong {
            let message = format!("`{}` is not for this bucket", key.name());
            section.problem(key.name(), message, hint);
        }
    }
    let Some(bucket) = arn.or(other) else {
        if delete {
            let message = "`delete_after_backup` needs a bucket for the copies";
            section.problem(DELETE.name(), message, "set `backup_to_bucket_arn`");
        }
        return None;
    };
    match place {
        Place::Bucket(from) if matches!(from.bucket, BucketName::AccessPoint { .. }) => {
            let message = "objects of an access point cannot be copied";
            section.problem(
                TO_BUCKET_ARN.name(),
                message,
                "set `bucket_arn` to the bucket behind it",
            );
        }
        // A copy would be read, and copied.
        Place::Bucket(from) if from.bucket.text() == bucket && prefix.starts_with(&from.prefix) => {
            let message = "the copies would be read again: they are in the bucket that is listed, and \
                           `backup_to_bucket_prefix` begins with `bucket_list_prefix`";
            section.problem(PREFIX.name(), message, "choose another prefix, or another bucket");
        }
        Place::Bucket(_) | Place::Queue(_) => {}
    }
    if matches!(place, Place::Queue(_)) {
        let message =
            "copies must go where no notifications come from, or they are read and copied again";
        section.warning(
            "backup_to_bucket_arn",
            message,
            "another bucket, or a prefix that the notifications leave out",
        );
    }
    Some(Backup { bucket, prefix, delete })
}
