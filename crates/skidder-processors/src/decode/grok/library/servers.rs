//! Lines of syslog, web servers and proxies.

use super::Pattern;

pub(super) const PATTERNS: &[Pattern] = &[
    ("PROG", r"[!-Z\\^-~]+"),
    ("SYSLOGPROG", r"%{PROG:program|process.name}(?:\[%{POSINT:pid|process.pid:long}\])?"),
    ("SYSLOGHOST", r"%{IPORHOST}"),
    (
        "SYSLOGFACILITY",
        r"<%{NONNEGINT:facility|log.syslog.facility.code:long}\.%{NONNEGINT:priority|log.syslog.priority:long}>",
    ),
    (
        "SYSLOGBASE",
        r"%{SYSLOGTIMESTAMP:timestamp} (?:%{SYSLOGFACILITY} )?%{SYSLOGHOST:logsource|host.hostname} %{SYSLOGPROG}:",
    ),
    (
        "SYSLOGBASE2",
        r"(?:%{SYSLOGTIMESTAMP:timestamp}|%{TIMESTAMP_ISO8601:timestamp8601|timestamp}) (?:%{SYSLOGFACILITY} )?%{SYSLOGHOST:logsource|host.hostname}(?: %{SYSLOGPROG}:)?",
    ),
    ("SYSLOGLINE", r"%{SYSLOGBASE2} %{GREEDYDATA:message}"),
    (
        "SYSLOGPAMSESSION",
        r"%{SYSLOGBASE} (?:%{GREEDYDATA:message})?%{WORD:pam_module|system.auth.pam.module}\(%{DATA:pam_caller|system.auth.pam.origin}\): session %{WORD:pam_session_state|system.auth.pam.session_state} for user %{USERNAME:username|user.name}(?: by %{GREEDYDATA:pam_by|})?",
    ),
    ("CRON_ACTION", r"[A-Z ]+"),
    (
        "CRONLOG",
        r"%{SYSLOGBASE} \(%{USER:user|user.name}\) %{CRON_ACTION:action|system.cron.action} \(%{DATA:message}\)",
    ),
    ("SYSLOG5424PRINTASCII", r"[!-~]+"),
    ("SYSLOG5424PRI", r"<%{NONNEGINT:syslog5424_pri|log.syslog.priority:long}>"),
    ("SYSLOG5424SD", r#"(?:\[[!-~]+(?: [!-~]+?="(?:[^"\\\]]|\\.)*")*\])+"#),
    (
        "SYSLOG5424BASE",
        r"%{SYSLOG5424PRI}%{NONNEGINT:syslog5424_ver|system.syslog.version} +(?:-|%{TIMESTAMP_ISO8601:syslog5424_ts|timestamp}) +(?:-|%{IPORHOST:syslog5424_host|host.hostname}) +(?:-|%{SYSLOG5424PRINTASCII:syslog5424_app|process.name}) +(?:-|%{SYSLOG5424PRINTASCII:syslog5424_proc|process.pid}) +(?:-|%{SYSLOG5424PRINTASCII:syslog5424_msgid|event.code}) +(?:-|%{SYSLOG5424SD:syslog5424_sd|system.syslog.structured_data})",
    ),
    ("SYSLOG5424LINE", r"%{SYSLOG5424BASE} +%{GREEDYDATA:syslog5424_msg|message}"),
    ("HTTPDUSER", r"%{EMAILADDRESS}|%{USER}"),
    (
        "HTTPD_COMMONLOG",
        r#"%{IPORHOST:clientip} %{HTTPDUSER:ident} %{HTTPDUSER:auth} \[%{HTTPDATE:timestamp}\] "(?:%{WORD:verb} %{NOTSPACE:request}(?: HTTP/%{NUMBER:httpversion})?|%{DATA:rawrequest})" (?:-|%{NUMBER:response}) (?:-|%{NUMBER:bytes})"#,
    ),
    ("HTTPD_COMBINEDLOG", r"%{HTTPD_COMMONLOG} %{QS:referrer} %{QS:agent}"),
    ("COMMONAPACHELOG", r"%{HTTPD_COMMONLOG}"),
    ("COMBINEDAPACHELOG", r"%{HTTPD_COMBINEDLOG}"),
    (
        "HTTPD20_ERRORLOG",
        r"\[%{HTTPDERROR_DATE:timestamp}\] \[%{LOGLEVEL:loglevel|log.level}\] (?:\[client %{IPORHOST:clientip|source.address}\] )?%{GREEDYDATA:message}",
    ),
    (
        "HTTPD24_ERRORLOG",
        r"\[%{HTTPDERROR_DATE:timestamp}\] \[(?:%{WORD:module|apache.error.module})?:%{LOGLEVEL:loglevel|log.level}\] \[pid %{POSINT:pid|process.pid:long}(?::tid %{INT:tid|process.thread.id:long})?\](?: \(%{POSINT:proxy_errorcode|apache.error.proxy.error.code}\)%{DATA:proxy_message|apache.error.proxy.error.message}:)?(?: \[client %{IPORHOST:clientip|source.address}(?::%{POSINT:clientport|source.port:long})?\])?(?: %{WORD:errorcode|error.code}:)? %{GREEDYDATA:message}",
    ),
    ("HTTPD_ERRORLOG", r"%{HTTPD20_ERRORLOG}|%{HTTPD24_ERRORLOG}"),
    (
        "NGINXACCESS",
        r#"%{IPORHOST:clientip|source.address} (?:-|%{HTTPDUSER:ident|nginx.access.user.identity}) (?:-|%{HTTPDUSER:auth|user.name}) \[%{HTTPDATE:timestamp}\] "(?:%{WORD:verb|http.request.method} %{NOTSPACE:request|url.original}(?: HTTP/%{NUMBER:httpversion|http.version})?|%{DATA:rawrequest|nginx.access.request})" %{INT:response|http.response.status_code:long} (?:-|%{INT:bytes|http.response.body.bytes:long})(?: "(?:-|%{DATA:referrer|http.request.referrer})" "(?:-|%{DATA:agent|user_agent.original})"(?: "(?:-|%{DATA:forwarded_for|nginx.access.forwarded_for})")?)?"#,
    ),
    (
        "NGINXERROR",
        r"%{NGINXDATE:timestamp} \[%{LOGLEVEL:loglevel|log.level}\] %{POSINT:pid|process.pid:long}#%{NONNEGINT:tid|process.thread.id:long}: (?:\*%{NONNEGINT:connection|nginx.error.connection_id:long} )?%{GREEDYDATA:message}",
    ),
    (
        "HAPROXYCAPTUREDREQUESTHEADERS",
        r"%{DATA:captured_request_headers|haproxy.http.request.captured_headers}",
    ),
    (
        "HAPROXYCAPTUREDRESPONSEHEADERS",
        r"%{DATA:captured_response_headers|haproxy.http.response.captured_headers}",
    ),
    (
        "HAPROXYURI",
        r"(?:%{URIPROTO:http_proto|url.scheme}://)?(?:%{USER:http_user|url.username}(?::[^@\s]*)?@)?(?:%{URIHOST:http_host|url.domain})?(?:%{URIPATHPARAM:http_request|url.path})?",
    ),
    (
        "HAPROXYHTTPREQUESTLINE",
        r"<BADREQ>|%{WORD:http_verb|http.request.method} %{NOTSPACE:http_request|url.original}(?: HTTP/%{NUMBER:http_version|http.version})?",
    ),
    (
        "HAPROXYHTTPBASE",
        r#"%{IP:client_ip|source.address}:%{INT:client_port|source.port:long} \[%{HAPROXYDATE:accept_date|haproxy.request_date}\] %{NOTSPACE:frontend_name|haproxy.frontend_name} %{NOTSPACE:backend_name|haproxy.backend_name}/(?:<NOSRV>|%{NOTSPACE:server_name|haproxy.server_name}) %{INT:time_request|haproxy.http.request.time_wait_ms:long}/%{INT:time_queue|haproxy.total_waiting_time_ms:long}/%{INT:time_backend_connect|haproxy.connection_wait_time_ms:long}/%{INT:time_backend_response|haproxy.http.request.time_wait_without_data_ms:long}/(?:\+)?%{INT:time_duration|haproxy.total_time_ms:long} %{INT:http_status_code|http.response.status_code:long} (?:\+)?%{INT:bytes_read|source.bytes:long} (?:-|%{DATA:captured_request_cookie|haproxy.http.request.captured_cookie}) (?:-|%{DATA:captured_response_cookie|haproxy.http.response.captured_cookie}) %{NOTSPACE:termination_state|haproxy.termination_state} %{INT:actconn|haproxy.connections.active:long}/%{INT:feconn|haproxy.connections.frontend:long}/%{INT:beconn|haproxy.connections.backend:long}/%{INT:srvconn|haproxy.connections.server:long}/(?:\+)?%{INT:retries|haproxy.connections.retries:long} %{INT:srv_queue|haproxy.server_queue:long}/%{INT:backend_queue|haproxy.backend_queue:long}(?: \{%{HAPROXYCAPTUREDREQUESTHEADERS}\})?(?: \{%{HAPROXYCAPTUREDRESPONSEHEADERS}\})? "(?:%{HAPROXYHTTPREQUESTLINE})""#,
    ),
    (
        "HAPROXYHTTP",
        r"(?:%{SYSLOGTIMESTAMP:syslog_timestamp|timestamp}|%{TIMESTAMP_ISO8601:timestamp8601|timestamp}) %{IPORHOST:syslog_server|host.hostname} %{SYSLOGPROG}: %{HAPROXYHTTPBASE}",
    ),
    (
        "HAPROXYTCP",
        r"(?:%{SYSLOGTIMESTAMP:syslog_timestamp|timestamp}|%{TIMESTAMP_ISO8601:timestamp8601|timestamp}) %{IPORHOST:syslog_server|host.hostname} %{SYSLOGPROG}: %{IP:client_ip|source.address}:%{INT:client_port|source.port:long} \[%{HAPROXYDATE:accept_date|haproxy.request_date}\] %{NOTSPACE:frontend_name|haproxy.frontend_name} %{NOTSPACE:backend_name|haproxy.backend_name}/(?:<NOSRV>|%{NOTSPACE:server_name|haproxy.server_name}) %{INT:time_queue|haproxy.total_waiting_time_ms:long}/%{INT:time_backend_connect|haproxy.connection_wait_time_ms:long}/(?:\+)?%{INT:time_duration|haproxy.total_time_ms:long} (?:\+)?%{INT:bytes_read|source.bytes:long} %{NOTSPACE:termination_state|haproxy.termination_state} %{INT:actconn|haproxy.connections.active:long}/%{INT:feconn|haproxy.connections.frontend:long}/%{INT:beconn|haproxy.connections.backend:long}/%{INT:srvconn|haproxy.connections.server:long}/(?:\+)?%{INT:retries|haproxy.connections.retries:long} %{INT:srv_queue|haproxy.server_queue:long}/%{INT:backend_queue|haproxy.backend_queue:long}",
    ),
    (
        "SQUID3",
        r"%{NUMBER:timestamp} +%{NUMBER:duration|squid.request.duration:long} %{IP:client_address|source.ip} %{WORD:cache_result|event.action}/(?:0+|%{NONNEGINT:status_code|http.response.status_code:long}) %{NUMBER:bytes|http.response.bytes:long} %{WORD:request_method|http.request.method} %{NOTSPACE:url|url.original} (?:-|%{NOTSPACE:user|user.name}) %{WORD:hierarchy_code|squid.hierarchy_code}/(?:-|%{IPORHOST:server|destination.address}) (?:-|%{NOTSPACE:content_type|http.response.mime_type})",
    ),
];

/// In the fields of ECS a `-` is no value, and quotes are not part of one.
pub(super) const ECS: &[Pattern] = &[
    (
        "HTTPD_COMMONLOG",
        r#"%{IPORHOST:source.address} (?:-|%{HTTPDUSER:apache.access.user.identity}) (?:-|%{HTTPDUSER:user.name}) \[%{HTTPDATE:timestamp}\] "(?:%{WORD:http.request.method} %{NOTSPACE:url.original}(?: HTTP/%{NUMBER:http.version})?|%{DATA})" (?:-|%{INT:|http.response.status_code:long}) (?:-|%{INT:|http.response.body.bytes:long})"#,
    ),
    (
        "HTTPD_COMBINEDLOG",
        r#"%{HTTPD_COMMONLOG} "(?:-|%{DATA:http.request.referrer})" "(?:-|%{DATA:user_agent.original})""#,
    ),
];
