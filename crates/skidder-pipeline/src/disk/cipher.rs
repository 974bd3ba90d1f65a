//! Encryption of payloads (`queue.disk.encryption`): AES-256-GCM, with a key of its own for each frame.
//!
//! The key of a frame is made of the user's and of a random salt that stands behind the payload (HKDF, RFC 5869), so that
//! no pair of key and nonce comes twice, whatever was written again after a failure. What a frame is bound to (its queue,
//! its segment, its place) is authenticated with it: no frame can stand for another.

use super::format::{FrameHeader, FrameKey, KeyId, Place};
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::digest::{SHA256, digest};
use ring::hkdf::{HKDF_SHA256, Salt};
use ring::rand::{SecureRandom as _, SystemRandom};
use std::fmt;
use std::io;
use std::num::NonZeroU32;

/// Bytes of a key.
const KEY_BYTES: usize = 32;

/// Random bytes behind each payload.
const SALT_BYTES: usize = 16;

/// Bytes that a payload has more on the disk: the tag and the salt.
pub(crate) const OVERHEAD: usize = 16 + SALT_BYTES;

/// What keys are made for, so that the same bytes make another key elsewhere.
const FRAME_PURPOSE: &[u8] = b"skidder queue.disk frame";
const NAME_PURPOSE: &[u8] = b"skidder queue.disk name of the key";

/// The key of an encrypted queue.
#[derive(Clone, PartialEq, Eq)]
pub struct DiskQueueKey {
    bytes: [u8; KEY_BYTES],
    id: KeyId,
}

impl DiskQueueKey {
    /// Takes 32 random bytes: no password, as nothing here makes it harder to try many.
    pub fn new(bytes: [u8; KEY_BYTES]) -> Self {
        let hash = digest(&SHA256, &[NAME_PURPOSE, &bytes].concat());
        let first = hash.as_ref().iter().take(4).fold(0, |sum, &byte| sum << 8 | u32::from(byte));
        Self { bytes, id: KeyId(NonZeroU32::new(first).unwrap_or(NonZeroU32::MIN)) }
    }

    /// Its name in headers: says whether a key is the right one, and nothing of the key.
    pub(crate) fn id(&self) -> KeyId {
        self.id
    }

    /// Encrypts a payload, which grows by [`OVERHEAD`].
    pub(crate) fn seal(
        &self,
        frame: &FrameKey,
        place: Place,
        rows: u32,
        payload: &mut Vec<u8>,
    ) -> io::Result<()> {
        let mut salt = [0; SALT_BYTES];
        let failed = |_| io::Error::other("the system gives no random bytes");
        SystemRandom::new().fill(&mut salt).map_err(failed)?;
        let key = self.key_of(&salt);
        let bound = Aad::from(bound(frame, place, rows));
        key.seal_in_place_append_tag(nonce(), bound, payload)
            .map_err(|_| io::Error::other("a payload is too long to be encrypted"))?;
        payload.extend_from_slice(&salt);
        Ok(())
    }

    /// Decrypts the payload of a frame with this key's name; returns whether it is as it was written.
    pub(crate) fn open(
        &self,
        frame: &FrameKey,
        header: &FrameHeader,
        payload: &mut Vec<u8>,
    ) -> bool {
        let Some((_, salt)) = payload.split_last_chunk::<SALT_BYTES>() else { return false };
        let key = self.key_of(salt);
        payload.truncate(payload.len() - SALT_BYTES);
        let bound = Aad::from(bound(frame, header.place, header.rows));
        let Ok(len) = key.open_in_place(nonce(), bound, payload).map(|plain| plain.len()) else {
            return false;
        };
        payload.truncate(len);
        true
    }

    fn key_of(&self, salt: &[u8; SALT_BYTES]) -> LessSafeKey {
        let made = Salt::new(HKDF_SHA256, salt).extract(&self.bytes);
        let made = made.expand(&[FRAME_PURPOSE], &AES_256_GCM);
        LessSafeKey::new(UnboundKey::from(made.expect("HKDF makes up to 8160 bytes")))
    }
}

/// The key of a frame: `None` if it is not encrypted, an error if this is not the one.
pub(crate) fn of<'a>(
    known: Option<&'a DiskQueueKey>,
    header: &FrameHeader,
) -> io::Result<Option<&'a DiskQueueKey>> {
    match (known, header.key) {
        (_, None) => Ok(None),
        (Some(known), Some(wanted)) if known.id == wanted => Ok(Some(known)),
        _ => {
            let message = "it is encrypted, and `encryption` has not the key of it";
            Err(io::Error::new(io::ErrorKind::InvalidData, message))
        }
    }
}

impl fmt::Debug for DiskQueueKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("DiskQueueKey(…)")
    }
}

/// A key encrypts one payload.
fn nonce() -> Nonce {
    Nonce::assume_unique_for_key([0; NONCE_LEN])
}

/// What a frame is bound to.
fn bound(frame: &FrameKey, place: Place, rows: u32) -> [u8; 44] {
    let mut out = [0; 44];
    out[..16].copy_from_slice(&frame.queue);
    out[16..24].copy_from_slice(&frame.segment.to_le_bytes());
    out[24..32].copy_from_slice(&place.sequence.to_le_bytes());
    out[32..40].copy_from_slice(&place.event.to_le_bytes());
    out[40..].copy_from_slice(&rows.to_le_bytes());
    out
}
