//! Containers that are listed: their pages for [`skidder_input_objects::poll`].

use crate::blobs::{Blobs, Wanted};
use crate::settings::{ContainerToRead, Settings};
use crate::store::{Clients, advice};
use skidder_azure::{Failure, List, Listing};
use skidder_input::{InputError, Intake};
use skidder_input_objects::{
    Bucket, Listed, Objects, Page, PageError, PageFuture, PollSettings, Poller, poll,
    registry_prefix,
};
use skidder_os::Fs;
use std::sync::Arc;

/// A container.
struct Pages {
    blobs: Arc<Blobs>,
    container: Arc<str>,
    prefix: String,
    /// Most blobs of a page; `None` for as many as the server gives.
    batch: Option<u16>,
}

/// Reads from containers until the input ends, or none is listed again.
pub(crate) async fn run(
    intake: &Intake,
    settings: Settings,
    fs: &Arc<dyn Fs>,
) -> Result<(), InputError> {
    let Settings { account, url, containers } = settings;
    let mut pollers = Vec::with_capacity(containers.len());
    for container in containers {
        pollers.push(poller(intake, (&account, &url), container, Arc::clone(fs))?);
    }
    poll(intake, pollers).await;
    Ok(())
}

fn poller(
    intake: &Intake,
    (account, url): (&str, &str),
    container: ContainerToRead,
    fs: Arc<dyn Fs>,
) -> Result<Poller<Pages>, InputError> {
    let polling = PollSettings {
        interval: container.interval,
        repeats: container.poll,
        start: container.start,
        ignore_older: None,
        workers: container.workers,
    };
    let (metrics, clock) = (Arc::clone(intake.metrics()), Arc::clone(intake.clock()));
    let name: Arc<str> = container.name.as_str().into();
    let selector = container.blobs.selector.clone();
    let blobs = Arc::new(Blobs {
        clients: Clients::new(container.service, metrics, clock, container.workers),
        bucket: format!("{account}/{name}"),
        url: format!("{url}/{name}"),
        reading: container.blobs,
    });
    let objects = Objects::new(intake.clone(), Arc::clone(&blobs), [selector], fs)?;
    let pages = Pages { blobs, container: name, prefix: container.prefix, batch: container.batch };
    Ok(Poller::new(objects, pages, polling))
}

impl Bucket for Pages {
    type Cloud = Blobs;

    fn name(&self) -> String {
        self.container.to_string()
    }

    fn registry_prefix(&self) -> String {
        registry_prefix(&self.blobs.bucket, &self.prefix)
    }

    fn page<'a>(&'a mut self, token: Option<&'a str>) -> PageFuture<'a, Wanted> {
        Box::pin(async move {
            let clients = &self.blobs.clients;
            let mut client = clients.take();
            let list = List {
                prefix: &self.prefix,
                marker: token,
                blobs_max: self.batch,
                metadata: false,
            };
            let listed = client.list(list).await;
            clients.give_back(client);
            match listed {
                Ok(Listing { blobs, next }) => {
                    // A directory has no content.
                    let blobs = blobs.into_iter().filter(|blob| !blob.is_directory);
                    let objects = blobs.map(|blob| self.listed(blob)).collect();
                    Ok(Page { objects, next })
                }
                Err(failure) => Err(PageError::Failed(self.advised(&failure))),
            }
        })
    }
}

impl Pages {
    fn listed(&self, blob: skidder_azure::Listed) -> Listed<Wanted> {
        let skidder_azure::Listed { name, etag, modified, .. } = blob;
        let wanted = Wanted { container: Arc::clone(&self.container), name, etag, modified };
        Listed { name: self.blobs.name_of(&wanted), modified, wanted }
    }

    /// Why there is no page, with a remedy.
    fn advised(&self, failure: &Failure) -> String {
        let Failure::Refused(refused) = failure else { return failure.to_string() };
        (**refused).clone().advised(advice(refused, &self.container)).to_string()
    }
}
