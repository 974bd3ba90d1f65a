//! Names of Linux capabilities (<https://man7.org/linux/man-pages/man7/capabilities.7.html>), by their bits.

const NAMES: [&str; 41] = [
    "CAP_CHOWN",
    "CAP_DAC_OVERRIDE",
    "CAP_DAC_READ_SEARCH",
    "CAP_FOWNER",
    "CAP_FSETID",
    "CAP_KILL",
    "CAP_SETGID",
    "CAP_SETUID",
    "CAP_SETPCAP",
    "CAP_LINUX_IMMUTABLE",
    "CAP_NET_BIND_SERVICE",
    "CAP_NET_BROADCAST",
    "CAP_NET_ADMIN",
    "CAP_NET_RAW",
    "CAP_IPC_LOCK",
    "CAP_IPC_OWNER",
    "CAP_SYS_MODULE",
    "CAP_SYS_RAWIO",
    "CAP_SYS_CHROOT",
    "CAP_SYS_PTRACE",
    "CAP_SYS_PACCT",
    "CAP_SYS_ADMIN",
    "CAP_SYS_BOOT",
    "CAP_SYS_NICE",
    "CAP_SYS_RESOURCE",
    "CAP_SYS_TIME",
    "CAP_SYS_TTY_CONFIG",
    "CAP_MKNOD",
    "CAP_LEASE",
    "CAP_AUDIT_WRITE",
    "CAP_AUDIT_CONTROL",
    "CAP_SETFCAP",
    "CAP_MAC_OVERRIDE",
    "CAP_MAC_ADMIN",
    "CAP_SYSLOG",
    "CAP_WAKE_ALARM",
    "CAP_BLOCK_SUSPEND",
    "CAP_AUDIT_READ",
    "CAP_PERFMON",
    "CAP_BPF",
    "CAP_CHECKPOINT_RESTORE",
];

/// The names of the bits that are set in a hexadecimal number; a bit without a name is its number.
pub(super) fn names_of(digits: &str) -> Vec<String> {
    let bits = u64::from_str_radix(digits, 16).unwrap_or(0);
    let name =
        |bit: usize| NAMES.get(bit).map_or_else(|| bit.to_string(), |name| (*name).to_owned());
    (0..64).filter(|bit| bits >> bit & 1 == 1).map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_have_names() {
        assert_eq!(names_of("0000000000000021"), ["CAP_CHOWN", "CAP_KILL"]);
        assert_eq!(names_of("0000030000000000"), ["CAP_CHECKPOINT_RESTORE", "41"]);
        assert!(names_of("0000000000000000").is_empty() && names_of("x").is_empty());
        assert_eq!(names_of("000001ffffffffff").len(), 41);
    }
}
