//! Which fields of ECS the extensions of CEF become, as in Filebeat (x-pack/filebeat
//! `processors/decode_cef/keys.ecs.go`).

/// How a value becomes that of an ECS field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    /// As it is.
    Same,
    /// A list of it.
    List,
    /// A hardware address in capitals with dashes.
    MacAddress,
    /// `inbound` of 0, `outbound` of 1, and an error of everything else.
    Direction,
    /// Only if it begins as a URL does.
    Url,
    /// In small letters.
    Lowercase,
}

/// Full names of extensions in their order, fields of ECS.
pub(super) const EXTENSIONS: &[(&str, &str, How)] = &[
    ("agentAddress", "agent.ip", How::Same),
    ("agentDnsDomain", "agent.name", How::Same),
    ("agentHostName", "agent.name", How::Same),
    ("agentId", "agent.id", How::Same),
    ("agentMacAddress", "agent.mac", How::MacAddress),
    ("agentReceiptTime", "event.created", How::Same),
    ("agentType", "agent.type", How::Same),
    ("agentVersion", "agent.version", How::Same),
    ("applicationProtocol", "network.application", How::Same),
    ("bytesIn", "source.bytes", How::Same),
    ("bytesOut", "destination.bytes", How::Same),
    ("customerExternalID", "organization.id", How::Same),
    ("customerURI", "organization.name", How::Same),
    ("destinationAddress", "destination.ip", How::Same),
    ("destinationDnsDomain", "destination.domain", How::Same),
    ("destinationGeoLatitude", "destination.geo.location.lat", How::Same),
    ("destinationGeoLongitude", "destination.geo.location.lon", How::Same),
    ("destinationHostName", "destination.domain", How::Same),
    ("destinationMacAddress", "destination.mac", How::MacAddress),
    ("destinationPort", "destination.port", How::Same),
    ("destinationProcessId", "destination.process.pid", How::Same),
    ("destinationProcessName", "destination.process.name", How::Same),
    ("destinationServiceName", "destination.service.name", How::Same),
    ("destinationTranslatedAddress", "destination.nat.ip", How::Same),
    ("destinationTranslatedPort", "destination.nat.port", How::Same),
    ("destinationUserId", "destination.user.id", How::Same),
    ("destinationUserName", "destination.user.name", How::Same),
    ("destinationUserPrivileges", "destination.user.group.name", How::Same),
    ("deviceAction", "event.action", How::Same),
    ("deviceAddress", "observer.ip", How::List),
    ("deviceDirection", "network.direction", How::Direction),
    ("deviceDnsDomain", "observer.hostname", How::Same),
    ("deviceHostName", "observer.hostname", How::Same),
    ("deviceMacAddress", "observer.mac", How::MacAddress),
    ("devicePayloadId", "event.id", How::Same),
    ("deviceProcessId", "process.pid", How::Same),
    ("deviceProcessName", "process.name", How::Same),
    ("deviceReceiptTime", "@timestamp", How::Same),
    ("deviceTimeZone", "event.timezone", How::Same),
    ("endTime", "event.end", How::Same),
    ("eventId", "event.id", How::Same),
    ("eventOutcome", "event.outcome", How::Same),
    ("fileCreateTime", "file.created", How::Same),
    ("fileId", "file.inode", How::Same),
    ("fileModificationTime", "file.mtime", How::Same),
    ("filePath", "file.path", How::Same),
    ("filePermission", "file.group", How::Same),
    ("fileSize", "file.size", How::Same),
    ("fileType", "file.type", How::Same),
    ("filename", "file.name", How::Same),
    ("message", "message", How::Same),
    ("requestClientApplication", "user_agent.original", How::Same),
    ("requestContext", "http.request.referrer", How::Url),
    ("requestMethod", "http.request.method", How::Same),
    ("requestUrl", "url.original", How::Same),
    ("sourceAddress", "source.ip", How::Same),
    ("sourceDnsDomain", "source.domain", How::Same),
    ("sourceGeoLatitude", "source.geo.location.lat", How::Same),
    ("sourceGeoLongitude", "source.geo.location.lon", How::Same),
    ("sourceHostName", "source.domain", How::Same),
    ("sourceMacAddress", "source.mac", How::MacAddress),
    ("sourcePort", "source.port", How::Same),
    ("sourceProcessId", "source.process.pid", How::Same),
    ("sourceProcessName", "source.process.name", How::Same),
    ("sourceServiceName", "source.service.name", How::Same),
    ("sourceTranslatedAddress", "source.nat.ip", How::Same),
    ("sourceTranslatedPort", "source.nat.port", How::Same),
    ("sourceUserId", "source.user.id", How::Same),
    ("sourceUserName", "source.user.name", How::Same),
    ("sourceUserPrivileges", "source.user.group.name", How::Same),
    ("startTime", "event.start", How::Same),
    ("transportProtocol", "network.transport", How::Lowercase),
    ("type", "event.kind", How::Same),
];

/// Fields of ECS of the parts of the header, in their order; severity is a number there.
pub(super) const HEADER: [&str; 6] = [
    "observer.vendor",
    "observer.product",
    "observer.version",
    "event.code",
    "message",
    "event.severity",
];

/// The number of a severity, which is one already or a word.
pub(super) fn severity(text: &[u8]) -> Option<i64> {
    let words: [(&[u8], i64); 4] = [(b"low", 0), (b"medium", 4), (b"high", 7), (b"very-high", 9)];
    let word = words.iter().find(|(word, _)| text.eq_ignore_ascii_case(word));
    word.map(|(_, number)| *number).or_else(|| std::str::from_utf8(text).ok()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted() {
        assert!(EXTENSIONS.windows(2).all(|pair| pair[0].0 < pair[1].0));
    }

    #[test]
    fn severities_are_numbers_or_words() {
        assert_eq!(severity(b"Very-High"), Some(9));
        assert_eq!(severity(b"10"), Some(10));
        assert_eq!(severity(b"Unknown"), None);
    }
}
