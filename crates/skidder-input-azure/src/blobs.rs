//! Blobs of a container for [`skidder_input_objects`]: how they are asked for, and what their events have.

use crate::ids;
use crate::settings::BlobReading;
use crate::store::{Began, BlobStore, Clients};
use skidder_event::Map;
use skidder_input_objects::{
    AfterFirst, Cloud, First, Range, Reading, StoreFuture, begin_ids, registry_name,
};
use skidder_os::Timestamp;
use std::path::Path;
use std::sync::Arc;

/// The blobs of one container, in one run of the input.
pub(crate) struct Blobs {
    pub(crate) clients: Arc<Clients>,
    /// Account and container, for the registry.
    pub(crate) bucket: String,
    /// The URL of the container as events have it.
    pub(crate) url: String,
    pub(crate) reading: BlobReading,
}

/// A blob that is to be read, as a listing shows it.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    pub(crate) container: Arc<str>,
    pub(crate) name: String,
    /// The only content that is meant; empty if the server has none.
    pub(crate) etag: String,
    pub(crate) modified: Option<Timestamp>,
}

impl skidder_input_objects::Wanted for Wanted {
    fn key(&self) -> &str {
        &self.name
    }

    fn bucket(&self) -> String {
        self.container.to_string()
    }
}

impl Cloud for Blobs {
    type Wanted = Wanted;

    fn begin<'a>(&'a self, wanted: &'a Wanted, _: usize) -> StoreFuture<'a, First> {
        Box::pin(async move {
            let etag = Some(&*wanted.etag).filter(|etag| !etag.is_empty());
            let whole = Range { from: 0, to: None };
            let began = self.clients.begin(&wanted.name, whole, etag).await?;
            Ok(self.first(wanted, began))
        })
    }
}

impl Blobs {
    /// The name of a blob in the registry.
    pub(crate) fn name_of(&self, wanted: &Wanted) -> String {
        // The `etag` is Azure's; another server could have any text there.
        registry_name(&self.bucket, &wanted.name, &wanted.etag.replace('@', "%40"))
    }

    fn first(&self, wanted: &Wanted, began: Began) -> First {
        let Began { head, pieces } = began;
        let content_type = self.reading.content_type(&head.content_type).to_owned();
        let mut fields = self.fields(wanted, &content_type);
        let modified = wanted.modified.or(head.modified);
        let beginning = ids::beginning(&head.kind, modified, &wanted.container, &wanted.name);
        begin_ids(&mut fields, &beginning);
        // As in Filebeat, the name stands there as it is.
        let url = format!("{}/{}", self.url, wanted.name);
        let rest = BlobStore {
            clients: Arc::clone(&self.clients),
            blob: wanted.name.clone(),
            etag: head.etag.clone(),
        };
        let reading = Reading {
            key: self.name_of(wanted),
            path: Arc::from(Path::new(&url)),
            fields: Arc::new(fields),
            store: Box::new(AfterFirst::new(head.size, Box::new(pieces), rest)),
        };
        First { reading, version: head.etag, content_type }
    }

    /// What all events of a blob have.
    fn fields(&self, wanted: &Wanted, content_type: &str) -> Map {
        let (mut container, mut blob) = (Map::new(), Map::new());
        container.insert_constant("name", &*wanted.container);
        blob.insert_constant("name", wanted.name.as_str());
        if !content_type.is_empty() {
            blob.insert_constant("content_type", content_type);
        }
        let (mut storage, mut azure, mut cloud) = (Map::new(), Map::new(), Map::new());
        storage.insert_constant("container", container);
        storage.insert_constant("blob", blob);
        azure.insert_constant("storage", storage);
        cloud.insert_constant("provider", "azure");
        let mut fields = Map::new();
        fields.insert_constant("azure", azure);
        fields.insert_constant("cloud", cloud);
        fields
    }
}
