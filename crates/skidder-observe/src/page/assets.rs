//! The page itself: its files, compiled in. It loads nothing from elsewhere.

/// A file of the page.
#[derive(Debug)]
pub(crate) struct Asset {
    /// Where it is served, below `/ui/`.
    name: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) text: &'static str,
}

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";

const ASSETS: &[Asset] = &[
    Asset { name: "", kind: HTML, text: include_str!("../../page/index.html") },
    Asset { name: "page.css", kind: CSS, text: include_str!("../../page/page.css") },
    Asset { name: "containers.js", kind: SCRIPT, text: include_str!("../../page/containers.js") },
    Asset { name: "core.js", kind: SCRIPT, text: include_str!("../../page/core.js") },
    Asset { name: "files.js", kind: SCRIPT, text: include_str!("../../page/files.js") },
    Asset { name: "letters.js", kind: SCRIPT, text: include_str!("../../page/letters.js") },
    Asset { name: "overview.js", kind: SCRIPT, text: include_str!("../../page/overview.js") },
    Asset { name: "page.js", kind: SCRIPT, text: include_str!("../../page/page.js") },
    Asset { name: "plan.js", kind: SCRIPT, text: include_str!("../../page/plan.js") },
    Asset { name: "plot.js", kind: SCRIPT, text: include_str!("../../page/plot.js") },
    Asset { name: "problems.js", kind: SCRIPT, text: include_str!("../../page/problems.js") },
    Asset { name: "search.js", kind: SCRIPT, text: include_str!("../../page/search.js") },
    Asset { name: "sources.js", kind: SCRIPT, text: include_str!("../../page/sources.js") },
    Asset { name: "tail.js", kind: SCRIPT, text: include_str!("../../page/tail.js") },
    Asset { name: "icon.svg", kind: SVG, text: include_str!("../../page/icon.svg") },
];

/// The page's policy: load its own files and request from its own server, nothing else. Nothing inline runs.
pub(crate) const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
    img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

impl Asset {
    pub(crate) fn find(name: &str) -> Option<&'static Self> {
        ASSETS.iter().find(|asset| asset.name == name)
    }

    /// Names this very text.
    pub(crate) fn tag(&self) -> String {
        format!("\"{:016x}\"", fnv(self.text.as_bytes()))
    }
}

/// FNV-1a of 64 bits: <https://datatracker.ietf.org/doc/html/draft-eastlake-fnv>.
fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_names_no_other_server_and_has_nothing_inline() {
        for asset in ASSETS {
            let text = asset.text.replace("http://www.w3.org/2000/svg", "");
            assert!(!text.contains("http://") && !text.contains("https://"), "{}", asset.name);
        }
        let html = Asset::find("").expect("the page").text;
        assert!(!html.contains(" style=") && !html.contains(" onclick"), "the policy forbids it");
        assert_eq!(fnv(b"a"), 0xaf63_dc4c_8601_ec8c);
    }
}
