//! Clients of stores: those that no answer uses, and what is measured of all.

use crate::store::{StoreError, StoreFuture};
use crate::taking::Content;
use bytes::Bytes;
use skidder_input::InputMetrics;
use skidder_net::cloud::{self, Meter, Sender, Signer};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Clients of type `C` that no answer uses, each of the place `P`. They keep their connections.
#[derive(Debug)]
pub struct Idle<P, C> {
    /// The last one was used last.
    clients: Mutex<VecDeque<(P, C)>>,
    most: usize,
}

impl<P, C> Idle<P, C> {
    /// At most so many are kept.
    pub fn new(most: usize) -> Self {
        Self { clients: Mutex::default(), most }
    }

    /// That of a place which was used last; `None` if there is none.
    pub fn take(&self, is_wanted: impl Fn(&P) -> bool) -> Option<C> {
        let mut clients = self.lock();
        let found = clients.iter().rposition(|(of, _)| is_wanted(of))?;
        clients.remove(found).map(|(_, client)| client)
    }

    /// A client that is not used any more. Beyond the bound the one that was not used for longest is closed.
    pub fn give_back(&self, place: P, client: C) {
        let mut clients = self.lock();
        clients.push_back((place, client));
        if clients.len() > self.most {
            clients.pop_front();
        }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<(P, C)>> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Adds the bytes of answers to the numbers of an input.
#[derive(Debug)]
pub struct Metered(pub Arc<InputMetrics>);

impl Meter for Metered {
    fn received(&self, bytes: u64) {
        self.0.bytes.add(bytes);
    }
}

impl<S: Signer> Content for cloud::Content<&Sender<S>> {
    fn piece(&mut self, bytes_max: usize) -> StoreFuture<'_, Option<Bytes>> {
        Box::pin(async move {
            let piece = cloud::Content::piece(self, bytes_max).await;
            piece.map_err(|failure| StoreError::Passing(failure.to_string()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_client_of_a_place_that_was_used_last_comes_first_and_the_oldest_goes() {
        let idle = Idle::new(2);
        let take = |place| idle.take(|of| *of == place);
        assert_eq!(take("a"), None);
        idle.give_back("a", 1);
        idle.give_back("a", 2);
        idle.give_back("b", 3);
        assert_eq!([take("a"), take("a"), take("b")], [Some(2), None, Some(3)]);
    }
}
