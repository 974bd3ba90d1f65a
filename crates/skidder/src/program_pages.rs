//! Memory of the program itself: pages of code and constants that only the start needed.
//!
//! The kernel maps sixteen pages of a file for each that is touched, so that reading arguments and settings leaves most
//! of the program resident. What runs afterwards is a small part of it.

#![expect(unsafe_code, reason = "advice on the program's own pages is given by address")]

/// Lets the kernel take back all pages of code and constants; those that are needed again come back from the page
/// cache, a few hundred faults of less than a microsecond.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(crate) fn give_back() {
    unsafe extern "C" {
        // Defined by the linker: the first byte of the program, and the first one behind its code.
        static __executable_start: u8;
        static etext: u8;
    }
    let page = rustix::param::page_size();
    let start = (&raw const __executable_start).addr().next_multiple_of(page);
    let end = (&raw const etext).addr() / page * page;
    let Some(length) = end.checked_sub(start).filter(|length| *length > 0) else { return };
    // SAFETY: between these addresses lie read-only segments of the program, mapped from its file and never written to
    // (relocations concern pages behind `etext`), so that dropped pages are read again as they were. The linker leaves
    // no gap between the segments that belongs to others.
    let failed = unsafe {
        libc::madvise(std::ptr::without_provenance_mut(start), length, libc::MADV_DONTNEED)
    };
    if failed != 0 {
        let error = std::io::Error::last_os_error();
        tracing::debug!(%error, "pages of the program stay resident");
    }
}

/// Elsewhere the names of the linker differ.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(crate) fn give_back() {}

#[cfg(test)]
mod tests {
    use super::*;

    /// Resident pages that are mapped from files, from `/proc/self/statm` (proc(5), field 3).
    fn shared_pages() -> usize {
        let text = std::fs::read_to_string("/proc/self/statm").unwrap();
        text.split_whitespace().nth(2).unwrap().parse().unwrap()
    }

    #[test]
    fn the_program_goes_on_with_fewer_pages_of_itself() {
        // Code and constants that are used before and after.
        let text =
            || format!("{:?} {:>20.3e}", std::time::Duration::from_nanos(1_234_567), 1.5_f64);
        let before = (text(), shared_pages());
        give_back();
        let after = (shared_pages(), text());
        assert_eq!(before.0, after.1);
        assert!(after.0 < before.1, "{} pages before, {} after", before.1, after.0);
    }
}
