//! XXH32 with a state that can be stored: the checksum of lz4 frames goes on over a checkpoint.

const PRIME_1: u32 = 0x9e37_79b1;
const PRIME_2: u32 = 0x85eb_ca77;
const PRIME_3: u32 = 0xc2b2_ae3d;
const PRIME_4: u32 = 0x27d4_eb2f;
const PRIME_5: u32 = 0x1656_67b1;

/// Bytes that are hashed at once.
const STRIPE_BYTES: usize = 16;

/// Bytes of a stored state.
pub(super) const STATE_BYTES: usize = 8 + STRIPE_BYTES + STRIPE_BYTES;

/// A hash being computed, with seed 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Xxh32 {
    lanes: [u32; 4],
    total: u64,
    /// The last `total % 16` bytes.
    rest: [u8; STRIPE_BYTES],
}

impl Xxh32 {
    pub(super) fn new() -> Self {
        let lanes = [PRIME_1.wrapping_add(PRIME_2), PRIME_2, 0, 0_u32.wrapping_sub(PRIME_1)];
        Self { lanes, total: 0, rest: [0; STRIPE_BYTES] }
    }

    pub(super) fn of(bytes: &[u8]) -> u32 {
        let mut hash = Self::new();
        hash.update(bytes);
        hash.finish()
    }

    pub(super) fn update(&mut self, mut bytes: &[u8]) {
        let have = (self.total % STRIPE_BYTES as u64) as usize;
        self.total += bytes.len() as u64;
        if have > 0 {
            let taken = bytes.len().min(STRIPE_BYTES - have);
            self.rest[have..have + taken].copy_from_slice(&bytes[..taken]);
            bytes = &bytes[taken..];
            if have + taken < STRIPE_BYTES {
                return;
            }
            let stripe = self.rest;
            self.stripe(&stripe);
        }
        let (stripes, rest) = bytes.as_chunks::<STRIPE_BYTES>();
        for stripe in stripes {
            self.stripe(stripe);
        }
        self.rest[..rest.len()].copy_from_slice(rest);
    }

    fn stripe(&mut self, stripe: &[u8; STRIPE_BYTES]) {
        for (lane, word) in self.lanes.iter_mut().zip(stripe.as_chunks::<4>().0) {
            let word = u32::from_le_bytes(*word);
            *lane =
                lane.wrapping_add(word.wrapping_mul(PRIME_2)).rotate_left(13).wrapping_mul(PRIME_1);
        }
    }

    pub(super) fn finish(&self) -> u32 {
        let mut hash = if self.total >= STRIPE_BYTES as u64 {
            let [a, b, c, d] = self.lanes;
            a.rotate_left(1)
                .wrapping_add(b.rotate_left(7))
                .wrapping_add(c.rotate_left(12))
                .wrapping_add(d.rotate_left(18))
        } else {
            PRIME_5
        };
        hash = hash.wrapping_add(self.total as u32);
        let rest = &self.rest[..(self.total % STRIPE_BYTES as u64) as usize];
        let (words, bytes) = rest.as_chunks::<4>();
        for word in words {
            let word = u32::from_le_bytes(*word).wrapping_mul(PRIME_3);
            hash = hash.wrapping_add(word).rotate_left(17).wrapping_mul(PRIME_4);
        }
        for byte in bytes {
            let word = u32::from(*byte).wrapping_mul(PRIME_5);
            hash = hash.wrapping_add(word).rotate_left(11).wrapping_mul(PRIME_1);
        }
        hash = (hash ^ hash >> 15).wrapping_mul(PRIME_2);
        hash = (hash ^ hash >> 13).wrapping_mul(PRIME_3);
        hash ^ hash >> 16
    }

    pub(super) fn to_bytes(&self) -> [u8; STATE_BYTES] {
        let mut bytes = [0; STATE_BYTES];
        bytes[..8].copy_from_slice(&self.total.to_le_bytes());
        for (at, lane) in self.lanes.iter().enumerate() {
            bytes[8 + at * 4..][..4].copy_from_slice(&lane.to_le_bytes());
        }
        bytes[8 + STRIPE_BYTES..].copy_from_slice(&self.rest);
        bytes
    }

    pub(super) fn from_bytes(bytes: &[u8; STATE_BYTES]) -> Self {
        let lane =
            |at: usize| u32::from_le_bytes(std::array::from_fn(|index| bytes[8 + at * 4 + index]));
        Self {
            lanes: std::array::from_fn(lane),
            total: u64::from_le_bytes(std::array::from_fn(|index| bytes[index])),
            rest: std::array::from_fn(|index| bytes[8 + STRIPE_BYTES + index]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values_come_out() {
        // From the specification of xxHash and from `xxhsum -H32`.
        assert_eq!(Xxh32::of(b""), 0x02cc_5d05);
        assert_eq!(Xxh32::of(b"a"), 0x550d_7456);
        assert_eq!(Xxh32::of(b"abc"), 0x32d1_53ff);
        assert_eq!(Xxh32::of(b"Nobody inspects the spammish repetition"), 0xe229_3b2f);
    }

    #[test]
    fn pieces_and_stored_states_make_no_difference() {
        let bytes: Vec<u8> = (0..=255).collect();
        for cut in 0..bytes.len() {
            let mut hash = Xxh32::new();
            hash.update(&bytes[..cut]);
            let mut hash = Xxh32::from_bytes(&hash.to_bytes());
            hash.update(&bytes[cut..]);
            assert_eq!(hash.finish(), Xxh32::of(&bytes), "cut at {cut}");
        }
    }
}
