//! The extensions that the format knows: their short names, full names and types.
//!
//! From "ArcSight Common Event Format" version 25 of 2017-09-28 and 23 of 2016-05-16, with the
//! additions and types of Filebeat (x-pack/filebeat `processors/decode_cef/cef/keys.go`).

/// What the value of an extension is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Text.
    Text,
    /// A whole number of 32 bits.
    Integer,
    /// A whole number of 64 bits.
    Long,
    /// A number of 32 bits.
    Float,
    /// A number of 64 bits.
    Double,
    /// An address of IPv4 or IPv6.
    Address,
    /// A hardware address.
    MacAddress,
    /// A time.
    Time,
}

/// An extension that the format knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// Its full name.
    pub name: &'static str,
    /// What its value is.
    pub kind: Kind,
}

/// The extension of a short name, in whatever case that is written.
pub fn known(key: &[u8]) -> Option<Known> {
    let mut small = [0; KEY_BYTES_MAX];
    let small = small.get_mut(..key.len())?;
    small.copy_from_slice(key);
    small.make_ascii_lowercase();
    let found = KEYS.binary_search_by(|(short, ..)| short.as_bytes().cmp(small)).ok()?;
    let (_, name, kind) = KEYS[found];
    Some(Known { name, kind })
}

/// Bytes of the longest short name.
const KEY_BYTES_MAX: usize = 40;

/// Short names in small letters and their order, full names, types.
const KEYS: &[(&str, &str, Kind)] = &[
    ("act", "deviceAction", Kind::Text),
    ("agentdnsdomain", "agentDnsDomain", Kind::Text),
    ("agentntdomain", "agentNtDomain", Kind::Text),
    ("agenttranslatedaddress", "agentTranslatedAddress", Kind::Address),
    ("agenttranslatedzoneexternalid", "agentTranslatedZoneExternalID", Kind::Text),
    ("agenttranslatedzoneuri", "agentTranslatedZoneURI", Kind::Text),
    ("agentzoneexternalid", "agentZoneExternalID", Kind::Text),
    ("agentzoneuri", "agentZoneURI", Kind::Text),
    ("agt", "agentAddress", Kind::Address),
    ("ahost", "agentHostName", Kind::Text),
    ("aid", "agentId", Kind::Text),
    ("amac", "agentMacAddress", Kind::MacAddress),
    ("app", "applicationProtocol", Kind::Text),
    ("art", "agentReceiptTime", Kind::Time),
    ("at", "agentType", Kind::Text),
    ("atz", "agentTimeZone", Kind::Text),
    ("av", "agentVersion", Kind::Text),
    ("c6a1", "deviceCustomIPv6Address1", Kind::Address),
    ("c6a1label", "deviceCustomIPv6Address1Label", Kind::Text),
    ("c6a2", "deviceCustomIPv6Address2", Kind::Address),
    ("c6a2label", "deviceCustomIPv6Address2Label", Kind::Text),
    ("c6a3", "deviceCustomIPv6Address3", Kind::Address),
    ("c6a3label", "deviceCustomIPv6Address3Label", Kind::Text),
    ("c6a4", "deviceCustomIPv6Address4", Kind::Address),
    ("c6a4label", "deviceCustomIPv6Address4Label", Kind::Text),
    ("cat", "deviceEventCategory", Kind::Text),
    ("catdt", "categoryDeviceType", Kind::Text),
    ("cfp1", "deviceCustomFloatingPoint1", Kind::Float),
    ("cfp1label", "deviceCustomFloatingPoint1Label", Kind::Text),
    ("cfp2", "deviceCustomFloatingPoint2", Kind::Float),
    ("cfp2label", "deviceCustomFloatingPoint2Label", Kind::Text),
    ("cfp3", "deviceCustomFloatingPoint3", Kind::Float),
    ("cfp3label", "deviceCustomFloatingPoint3Label", Kind::Text),
    ("cfp4", "deviceCustomFloatingPoint4", Kind::Float),
    ("cfp4label", "deviceCustomFloatingPoint4Label", Kind::Text),
    ("cn1", "deviceCustomNumber1", Kind::Long),
    ("cn1label", "deviceCustomNumber1Label", Kind::Text),
    ("cn2", "deviceCustomNumber2", Kind::Long),
    ("cn2label", "deviceCustomNumber2Label", Kind::Text),
    ("cn3", "deviceCustomNumber3", Kind::Long),
    ("cn3label", "deviceCustomNumber3Label", Kind::Text),
    ("cnt", "baseEventCount", Kind::Integer),
    ("cs1", "deviceCustomString1", Kind::Text),
    ("cs1label", "deviceCustomString1Label", Kind::Text),
    ("cs2", "deviceCustomString2", Kind::Text),
    ("cs2label", "deviceCustomString2Label", Kind::Text),
    ("cs3", "deviceCustomString3", Kind::Text),
    ("cs3label", "deviceCustomString3Label", Kind::Text),
    ("cs4", "deviceCustomString4", Kind::Text),
    ("cs4label", "deviceCustomString4Label", Kind::Text),
    ("cs5", "deviceCustomString5", Kind::Text),
    ("cs5label", "deviceCustomString5Label", Kind::Text),
    ("cs6", "deviceCustomString6", Kind::Text),
    ("cs6label", "deviceCustomString6Label", Kind::Text),
    ("customerexternalid", "customerExternalID", Kind::Text),
    ("customeruri", "customerURI", Kind::Text),
    ("destinationdnsdomain", "destinationDnsDomain", Kind::Text),
    ("destinationservicename", "destinationServiceName", Kind::Text),
    ("destinationtranslatedaddress", "destinationTranslatedAddress", Kind::Address),
    ("destinationtranslatedport", "destinationTranslatedPort", Kind::Integer),
    ("destinationtranslatedzoneexternalid", "destinationTranslatedZoneExternalID", Kind::Text),
    ("destinationtranslatedzoneuri", "destinationTranslatedZoneURI", Kind::Text),
    ("destinationzoneexternalid", "destinationZoneExternalID", Kind::Text),
    ("destinationzoneuri", "destinationZoneURI", Kind::Text),
    ("devicecustomdate1", "deviceCustomDate1", Kind::Time),
    ("devicecustomdate1label", "deviceCustomDate1Label", Kind::Text),
    ("devicecustomdate2", "deviceCustomDate2", Kind::Time),
    ("devicecustomdate2label", "deviceCustomDate2Label", Kind::Text),
    ("devicedirection", "deviceDirection", Kind::Integer),
    ("devicednsdomain", "deviceDnsDomain", Kind::Text),
    ("deviceexternalid", "deviceExternalId", Kind::Text),
    ("devicefacility", "deviceFacility", Kind::Text),
    ("deviceinboundinterface", "deviceInboundInterface", Kind::Text),
    ("devicentdomain", "deviceNtDomain", Kind::Text),
    ("deviceoutboundinterface", "deviceOutboundInterface", Kind::Text),
    ("devicepayloadid", "devicePayloadId", Kind::Text),
    ("deviceprocessname", "deviceProcessName", Kind::Text),
    ("devicetranslatedaddress", "deviceTranslatedAddress", Kind::Address),
    ("devicetranslatedzoneexternalid", "deviceTranslatedZoneExternalID", Kind::Text),
    ("devicetranslatedzoneuri", "deviceTranslatedZoneURI", Kind::Text),
    ("devicezoneexternalid", "deviceZoneExternalID", Kind::Text),
    ("devicezoneuri", "deviceZoneURI", Kind::Text),
    ("dhost", "destinationHostName", Kind::Text),
    ("dlat", "destinationGeoLatitude", Kind::Double),
    ("dlong", "destinationGeoLongitude", Kind::Double),
    ("dmac", "destinationMacAddress", Kind::MacAddress),
    ("dntdom", "destinationNtDomain", Kind::Text),
    ("dpid", "destinationProcessId", Kind::Integer),
    ("dpriv", "destinationUserPrivileges", Kind::Text),
    ("dproc", "destinationProcessName", Kind::Text),
    ("dpt", "destinationPort", Kind::Integer),
    ("dst", "destinationAddress", Kind::Address),
    ("dtz", "deviceTimeZone", Kind::Text),
    ("duid", "destinationUserId", Kind::Text),
    ("duser", "destinationUserName", Kind::Text),
    ("dvc", "deviceAddress", Kind::Address),
    ("dvchost", "deviceHostName", Kind::Text),
    ("dvcmac", "deviceMacAddress", Kind::MacAddress),
    ("dvcpid", "deviceProcessId", Kind::Integer),
    ("end", "endTime", Kind::Time),
    ("eventid", "eventId", Kind::Long),
    ("externalid", "externalId", Kind::Text),
    ("filecreatetime", "fileCreateTime", Kind::Time),
    ("filehash", "fileHash", Kind::Text),
    ("fileid", "fileId", Kind::Text),
    ("filemodificationtime", "fileModificationTime", Kind::Time),
    ("filepath", "filePath", Kind::Text),
    ("filepermission", "filePermission", Kind::Text),
    ("filetype", "fileType", Kind::Text),
    ("flexdate1", "flexDate1", Kind::Time),
    ("flexdate1label", "flexDate1Label", Kind::Text),
    ("flexnumber1", "deviceFlexNumber1", Kind::Long),
    ("flexnumber1label", "deviceFlexNumber1Label", Kind::Text),
    ("flexnumber2", "deviceFlexNumber2", Kind::Long),
    ("flexnumber2label", "deviceFlexNumber2Label", Kind::Text),
    ("flexstring1", "flexString1", Kind::Text),
    ("flexstring1label", "flexString1Label", Kind::Text),
    ("flexstring2", "flexString2", Kind::Text),
    ("flexstring2label", "flexString2Label", Kind::Text),
    ("fname", "filename", Kind::Text),
    ("fsize", "fileSize", Kind::Integer),
    ("in", "bytesIn", Kind::Long),
    ("mrt", "managerReceiptTime", Kind::Time),
    ("msg", "message", Kind::Text),
    ("oldfilecreatetime", "oldFileCreateTime", Kind::Time),
    ("oldfilehash", "oldFileHash", Kind::Text),
    ("oldfileid", "oldFileId", Kind::Text),
    ("oldfilemodificationtime", "oldFileModificationTime", Kind::Time),
    ("oldfilename", "oldFileName", Kind::Text),
    ("oldfilepath", "oldFilePath", Kind::Text),
    ("oldfilepermission", "oldFilePermission", Kind::Text),
    ("oldfilesize", "oldFileSize", Kind::Integer),
    ("oldfiletype", "oldFileType", Kind::Text),
    ("out", "bytesOut", Kind::Long),
    ("outcome", "eventOutcome", Kind::Text),
    ("proto", "transportProtocol", Kind::Text),
    ("rawevent", "rawEvent", Kind::Text),
    ("reason", "Reason", Kind::Text),
    ("request", "requestUrl", Kind::Text),
    ("requestclientapplication", "requestClientApplication", Kind::Text),
    ("requestcontext", "requestContext", Kind::Text),
    ("requestcookies", "requestCookies", Kind::Text),
    ("requestmethod", "requestMethod", Kind::Text),
    ("rt", "deviceReceiptTime", Kind::Time),
    ("shost", "sourceHostName", Kind::Text),
    ("slat", "sourceGeoLatitude", Kind::Double),
    ("slong", "sourceGeoLongitude", Kind::Double),
    ("smac", "sourceMacAddress", Kind::MacAddress),
    ("sntdom", "sourceNtDomain", Kind::Text),
    ("sourcednsdomain", "sourceDnsDomain", Kind::Text),
    ("sourceservicename", "sourceServiceName", Kind::Text),
    ("sourcetranslatedaddress", "sourceTranslatedAddress", Kind::Address),
    ("sourcetranslatedport", "sourceTranslatedPort", Kind::Integer),
    ("sourcetranslatedzoneexternalid", "sourceTranslatedZoneExternalID", Kind::Text),
    ("sourcetranslatedzoneuri", "sourceTranslatedZoneURI", Kind::Text),
    ("sourcezoneexternalid", "sourceZoneExternalID", Kind::Text),
    ("sourcezoneuri", "sourceZoneURI", Kind::Text),
    ("spid", "sourceProcessId", Kind::Integer),
    ("spriv", "sourceUserPrivileges", Kind::Text),
    ("sproc", "sourceProcessName", Kind::Text),
    ("spt", "sourcePort", Kind::Integer),
    ("src", "sourceAddress", Kind::Address),
    ("start", "startTime", Kind::Time),
    ("suid", "sourceUserId", Kind::Text),
    ("suser", "sourceUserName", Kind::Text),
    ("type", "type", Kind::Integer),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_every_name_fits() {
        assert!(KEYS.windows(2).all(|pair| pair[0].0 < pair[1].0));
        for (short, name, kind) in KEYS {
            assert!(short.len() <= KEY_BYTES_MAX, "{short}");
            let found = known(short.to_ascii_uppercase().as_bytes());
            assert_eq!(found, Some(Known { name, kind: *kind }));
        }
    }

    #[test]
    fn other_names_are_not_known() {
        for key in [
            "",
            "sourceAddress",
            "x",
            "an.extension.with.a.name.that.is.longer.than.any.that.is.known",
        ] {
            assert_eq!(known(key.as_bytes()), None, "{key}");
        }
    }
}
