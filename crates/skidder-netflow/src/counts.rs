//! What was decoded, and what could not be.

/// Counters of a decoder, from its beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Packets that were decoded to their end.
    pub packets: u64,
    /// Packets that were damaged, or of a version that is not configured. What came before the damage was decoded.
    pub errors: u64,
    /// Flows, records of options, and sFlow's counters of interfaces.
    pub flows: u64,
    /// Sets of data whose template was not known when they came. Those that wait for it are among them.
    pub without_template: u64,
    /// Of these, sets that were decoded later, when their template came.
    pub decoded_later: u64,
    /// Of these, sets that were given up: their template did not come in time, there was no room to wait, or they turned out
    /// to be damaged.
    pub given_up: u64,
    /// Templates that an exporter sent and that were not kept, for want of room.
    pub templates_refused: u64,
    /// Templates that were forgotten: not used for `expiration_timeout`, or their exporter began anew.
    pub templates_forgotten: u64,
    /// How often an exporter began to count anew.
    pub resets: u64,
    /// Samples and records of sFlow in a format that is not decoded, and sampled packets without the header of IP
    /// that they should have.
    pub skipped: u64,
    /// Datagrams of sFlow that are missing in the numbers of their agent. Those that come late are among them.
    pub lost: u64,
}
