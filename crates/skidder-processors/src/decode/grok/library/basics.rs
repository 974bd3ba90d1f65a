//! Words, numbers, quoted texts, paths.

use super::Pattern;

pub(super) const PATTERNS: &[Pattern] = &[
    ("USERNAME", r"[0-9A-Za-z._-]+"),
    ("USER", r"%{USERNAME}"),
    ("EMAILLOCALPART", r"[0-9A-Za-z!#$%&'*+/=?^_`{|}~-]+(?:\.[0-9A-Za-z!#$%&'*+/=?^_`{|}~-]+)*"),
    ("EMAILADDRESS", r"%{EMAILLOCALPART}@%{HOSTNAME}"),
    ("INT", r"[+-]?[0-9]+"),
    ("BASE10NUM", r"[+-]?(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)"),
    ("NUMBER", r"%{BASE10NUM}"),
    ("BASE16NUM", r"[+-]?(?:0x)?[0-9A-Fa-f]+"),
    ("BASE16FLOAT", r"[+-]?(?:0x)?(?:[0-9A-Fa-f]+(?:\.[0-9A-Fa-f]*)?|\.[0-9A-Fa-f]+)"),
    ("POSINT", r"\b[1-9][0-9]*\b"),
    ("NONNEGINT", r"\b[0-9]+\b"),
    ("BOOL", r"\b(?i:true|false)\b"),
    ("WORD", r"\b\w+\b"),
    ("NOTSPACE", r"\S+"),
    ("SPACE", r"\s*"),
    ("DATA", r".*?"),
    ("GREEDYDATA", r".*"),
    ("QUOTEDSTRING", r#""(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|`(?:[^`\\]|\\.)*`"#),
    ("QS", r"%{QUOTEDSTRING}"),
    ("UUID", r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"),
    (
        "URN",
        r"(?i:urn):[0-9A-Za-z][0-9A-Za-z-]{0,31}:(?:%[0-9A-Fa-f]{2}|[0-9A-Za-z()+,.:=@;$_!*'/?#-])+",
    ),
    ("UNIXPATH", r"(?:/(?:[\w%!$@:.,+~=-]|\\.)*)+"),
    ("WINPATH", r"(?:[A-Za-z]:|\\)(?:\\[^\\?*]*)+"),
    ("PATH", r"%{UNIXPATH}|%{WINPATH}"),
    ("TTY", r"/dev/(?:pts/|tty)[0-9A-Za-z]*"),
    (
        "LOGLEVEL",
        r"(?i:trace|debug|notice|information|info|warning|warn|error|err|critical|crit|fatal|severe|alert|emergency|emerg|panic)",
    ),
];
