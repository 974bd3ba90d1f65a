//! Dates and times.

use super::Pattern;

pub(super) const PATTERNS: &[Pattern] = &[
    (
        "MONTH",
        r"\b(?:[Jj]an(?:uary)?|[Ff]eb(?:ruary)?|[Mm]ar(?:ch)?|[Aa]pr(?:il)?|[Mm]ay|[Jj]une?|[Jj]uly?|[Aa]ug(?:ust)?|[Ss]ept?(?:ember)?|[Oo]ct(?:ober)?|[Nn]ov(?:ember)?|[Dd]ec(?:ember)?)\b",
    ),
    ("MONTHNUM", r"0[1-9]|1[0-2]|[1-9]"),
    ("MONTHNUM2", r"0[1-9]|1[0-2]"),
    ("MONTHDAY", r"0[1-9]|[12][0-9]|3[01]|[1-9]"),
    (
        "DAY",
        r"(?:[Mm]on(?:day)?|[Tt]ue(?:sday)?|[Ww]ed(?:nesday)?|[Tt]hu(?:rsday)?|[Ff]ri(?:day)?|[Ss]at(?:urday)?|[Ss]un(?:day)?)",
    ),
    ("YEAR", r"[0-9]{4}|[0-9]{2}"),
    ("HOUR", r"2[0-3]|[01]?[0-9]"),
    ("MINUTE", r"[0-5][0-9]"),
    ("SECOND", r"(?:60|[0-5]?[0-9])(?:[:.,][0-9]+)?"),
    ("TIME", r"%{HOUR}:%{MINUTE}:%{SECOND}"),
    ("TZ", r"\b(?:[A-Z]{3,5})\b"),
    ("DATE_US", r"%{MONTHNUM}[/-]%{MONTHDAY}[/-]%{YEAR}"),
    ("DATE_EU", r"%{MONTHDAY}[./-]%{MONTHNUM}[./-]%{YEAR}"),
    ("DATE", r"%{DATE_US}|%{DATE_EU}"),
    ("DATESTAMP", r"%{DATE}[ -]%{TIME}"),
    ("DATESTAMP_RFC822", r"%{DAY} %{MONTH} %{MONTHDAY} %{YEAR} %{TIME} %{TZ}"),
    ("DATESTAMP_RFC2822", r"%{DAY}, %{MONTHDAY} %{MONTH} %{YEAR} %{TIME} %{ISO8601_TIMEZONE}"),
    ("DATESTAMP_OTHER", r"%{DAY} %{MONTH} +%{MONTHDAY} %{TIME} %{TZ} %{YEAR}"),
    ("DATESTAMP_EVENTLOG", r"%{YEAR}%{MONTHNUM2}%{MONTHDAY}%{HOUR}%{MINUTE}%{SECOND}"),
    ("ISO8601_TIMEZONE", r"Z|[+-]%{HOUR}(?::?%{MINUTE})?"),
    ("ISO8601_SECOND", r"%{SECOND}"),
    (
        "TIMESTAMP_ISO8601",
        r"%{YEAR}-%{MONTHNUM}-%{MONTHDAY}[T ]%{HOUR}:?%{MINUTE}(?::?%{SECOND})?(?:%{ISO8601_TIMEZONE})?",
    ),
    ("HTTPDATE", r"%{MONTHDAY}/%{MONTH}/%{YEAR}:%{TIME} %{INT}"),
    ("HTTPDERROR_DATE", r"%{DAY} %{MONTH} +%{MONTHDAY} %{TIME} %{YEAR}"),
    ("SYSLOGTIMESTAMP", r"%{MONTH} +%{MONTHDAY} %{TIME}"),
    ("HAPROXYTIME", r"%{HOUR}:%{MINUTE}(?::%{SECOND})?"),
    ("HAPROXYDATE", r"%{MONTHDAY}/%{MONTH}/%{YEAR}:%{HAPROXYTIME}"),
    ("REDISTIMESTAMP", r"%{MONTHDAY} %{MONTH} (?:%{YEAR} )?%{TIME}"),
    ("NGINXDATE", r"[0-9]{4}/%{MONTHNUM2}/%{MONTHDAY} %{TIME}"),
    ("CATALINA7_DATESTAMP", r"%{MONTH} %{MONTHDAY}, [0-9]{4} %{HOUR}:%{MINUTE}:%{SECOND} [AP]M"),
    ("CATALINA8_DATESTAMP", r"%{MONTHDAY}-%{MONTH}-[0-9]{4} %{HOUR}:%{MINUTE}:%{SECOND}"),
    ("CATALINA_DATESTAMP", r"%{CATALINA8_DATESTAMP}|%{CATALINA7_DATESTAMP}"),
    ("TOMCAT_DATESTAMP", r"%{TIMESTAMP_ISO8601}(?: %{ISO8601_TIMEZONE})?|%{CATALINA_DATESTAMP}"),
];
