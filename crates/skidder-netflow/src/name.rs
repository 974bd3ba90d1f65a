//! Names of fields as they are in events: the registry's `sourceIPv4Address` is `source_ipv4_address`.

/// The name that a field has in events. A name that has an underscore is only put into lower case.
pub fn snake_case(name: &str) -> String {
    if name == "VRFname" {
        // The one name in which a word follows an acronym in lower case.
        return "vrf_name".to_owned();
    }
    if name.contains('_') {
        return name.to_lowercase();
    }
    let mut words = String::with_capacity(name.len() + 4);
    // Capitals in a row until here. The first letter begins a word anyway.
    let mut capitals = 1;
    for letter in name.chars() {
        let mut lower = letter.to_lowercase();
        let small = lower.next().filter(|_| lower.next().is_none()).unwrap_or(letter);
        if small == letter {
            if capitals > 2 {
                // The last of them begins the word that goes on here: `IDTotal` is `id_total`.
                let first = words.pop();
                words.push('_');
                words.extend(first);
            }
            capitals = 0;
        } else {
            if capitals == 0 {
                words.push('_');
            }
            capitals += 1;
        }
        words.push(small);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acronyms_stay_together() {
        for (name, expected) in [
            ("octetDeltaCount", "octet_delta_count"),
            ("sourceIPv4Address", "source_ipv4_address"),
            ("postNATSourceIPv4Address", "post_nat_source_ipv4_address"),
            ("selectorIDTotalFlowsObserved", "selector_id_total_flows_observed"),
            ("VRFname", "vrf_name"),
            ("wlanSSID", "wlan_ssid"),
            ("FW_Event", "fw_event"),
            ("flowStartSysUpTime", "flow_start_sys_up_time"),
            ("postMCastOctetDeltaCount", "post_mcast_octet_delta_count"),
            ("a", "a"),
            ("", ""),
        ] {
            assert_eq!(snake_case(name), expected);
        }
    }
}
