//! Lines of databases and programs.

use super::Pattern;

pub(super) const PATTERNS: &[Pattern] = &[
    (
        "POSTGRESQL",
        r"(?:%{TIMESTAMP_ISO8601:timestamp}|%{DATESTAMP:timestamp}) %{TZ:timezone|event.timezone} %{DATA:user_id|user.name} %{GREEDYDATA:connection_id|postgresql.log.connection_id} %{POSINT:pid|process.pid:long}",
    ),
    (
        "REDISLOG",
        r"(?:\[%{POSINT:pid|process.pid:long}\]|%{POSINT:pid|process.pid:long}:%{WORD:role|redis.log.role}) %{REDISTIMESTAMP:timestamp} [.*#-] ",
    ),
    (
        "REDISMONLOG",
        r#"%{NUMBER:timestamp} \[%{INT:database|redis.database.id} (?:%{IP:client|client.ip}:%{POSINT:port|client.port:long}|unix:%{DATA:client|client.address}|lua)\] "%{WORD:command|redis.command.name}"(?: %{GREEDYDATA:params|redis.command.args})?"#,
    ),
    (
        "MONGO_LOG",
        r"%{SYSLOGTIMESTAMP:timestamp} \[%{WORD:component|mongodb.component}\] %{GREEDYDATA:message}",
    ),
    ("MONGO_WORDDASH", r"\b[\w-]+\b"),
    ("MONGO_QUERY", r"\{ .* \}"),
    (
        "MONGO_SLOWQUERY",
        r"%{WORD:query_type|mongodb.profile.op} %{MONGO_WORDDASH:database|mongodb.database}\.%{MONGO_WORDDASH:collection|mongodb.collection} %{WORD}: (?:%{MONGO_QUERY:query|mongodb.query.original}) ntoreturn:%{NONNEGINT:ntoreturn|mongodb.profile.ntoreturn:long} ntoskip:%{NONNEGINT:ntoskip|mongodb.profile.ntoskip:long} nscanned:%{NONNEGINT:nscanned|mongodb.profile.nscanned:long}(?:.*? nreturned:%{NONNEGINT:nreturned|mongodb.profile.nreturned:long})?(?:.*? %{INT:duration|mongodb.profile.duration:long}ms)?",
    ),
    ("MONGO3_SEVERITY", r"\w"),
    ("MONGO3_COMPONENT", r"-|%{WORD}"),
    (
        "MONGO3_LOG",
        r"%{TIMESTAMP_ISO8601:timestamp} %{MONGO3_SEVERITY:severity|log.level} %{MONGO3_COMPONENT:component|mongodb.component}%{SPACE}(?:\[%{DATA:context|mongodb.context}\])? %{GREEDYDATA:message}",
    ),
    ("JAVACLASS", r"(?:[A-Za-z$_][\w$]*\.)*[A-Za-z$_][\w$]*"),
    ("JAVAFILE", r"[\w $.-]+"),
    ("JAVAMETHOD", r"<(?:cl)?init>|[A-Za-z$_][\w$]*"),
    (
        "JAVASTACKTRACEPART",
        r"%{SPACE}at %{JAVACLASS:class|java.log.origin.class.name}\.%{JAVAMETHOD:method|log.origin.function}\(%{JAVAFILE:file|log.origin.file.name}(?::%{INT:line|log.origin.file.line:long})?\)",
    ),
    ("JAVATHREAD", r"[A-Z]{2}-Processor[0-9]+"),
    ("JAVALOGMESSAGE", r".*"),
    (
        "CATALINA7_LOG",
        r"%{CATALINA7_DATESTAMP:timestamp} %{JAVACLASS:class|java.log.origin.class.name}(?: %{JAVAMETHOD:method|log.origin.function})?\s*%{LOGLEVEL:loglevel|log.level}: %{JAVALOGMESSAGE:logmessage|message}",
    ),
    (
        "CATALINA8_LOG",
        r"%{CATALINA8_DATESTAMP:timestamp} %{LOGLEVEL:loglevel|log.level} \[%{DATA:thread|java.log.origin.thread.name}\] %{JAVACLASS:class|java.log.origin.class.name}\.%{JAVAMETHOD:method|log.origin.function} %{JAVALOGMESSAGE:logmessage|message}",
    ),
    ("CATALINALOG", r"%{CATALINA8_LOG}|%{CATALINA7_LOG}"),
    (
        "TOMCATLOG",
        r"%{TOMCAT_DATESTAMP:timestamp} \| %{LOGLEVEL:level|log.level} \| %{JAVACLASS:class|java.log.origin.class.name} - %{JAVALOGMESSAGE:logmessage|message}",
    ),
    ("RUBY_LOGLEVEL", r"DEBUG|FATAL|ERROR|WARN|INFO|ANY"),
    (
        "RUBY_LOGGER",
        r"[DFEWIA], \[%{TIMESTAMP_ISO8601:timestamp} #%{POSINT:pid|process.pid:long}\] +%{RUBY_LOGLEVEL:loglevel|log.level} -- +(?:%{DATA:progname|process.name})?: %{GREEDYDATA:message}",
    ),
    (
        // Of S3 and of ELB: https://docs.aws.amazon.com/AmazonS3/latest/userguide/LogFormat.html
        "S3_REQUEST_LINE",
        r"%{WORD:verb|http.request.method} %{NOTSPACE:request|url.original}(?: HTTP/%{NUMBER:httpversion|http.version})?",
    ),
    (
        "S3_ACCESS_LOG",
        r#"%{WORD:owner|aws.s3access.bucket_owner} %{NOTSPACE:bucket|aws.s3access.bucket} \[%{HTTPDATE:timestamp}\] (?:-|%{IP:clientip|client.ip}) (?:-|%{NOTSPACE:requester|client.user.id}) %{NOTSPACE:request_id|aws.s3access.request_id} %{NOTSPACE:operation|aws.s3access.operation} (?:-|%{NOTSPACE:key|aws.s3access.key}) (?:-|"(?:%{S3_REQUEST_LINE}|-)") (?:-|%{INT:response|http.response.status_code:long}) (?:-|%{NOTSPACE:error_code|aws.s3access.error_code}) (?:-|%{INT:bytes|aws.s3access.bytes_sent:long}) (?:-|%{INT:object_size|aws.s3access.object_size:long}) (?:-|%{INT:request_time_ms|aws.s3access.total_time:long}) (?:-|%{INT:turnaround_time_ms|aws.s3access.turn_around_time:long}) "(?:-|%{DATA:referrer|http.request.referrer})" "(?:-|%{DATA:agent|user_agent.original})" (?:-|%{NOTSPACE:version_id|aws.s3access.version_id})"#,
    ),
    (
        "ELB_ACCESS_LOG",
        r#"%{TIMESTAMP_ISO8601:timestamp} %{NOTSPACE:elb|aws.elb.name} %{IP:clientip|source.ip}:%{INT:clientport|source.port:long} (?:-|%{IP:backendip|aws.elb.backend.ip}:%{INT:backendport|aws.elb.backend.port:long}) %{NUMBER:request_processing_time|aws.elb.request_processing_time.sec:double} %{NUMBER:backend_processing_time|aws.elb.backend_processing_time.sec:double} %{NUMBER:response_processing_time|aws.elb.response_processing_time.sec:double} (?:-|%{INT:response|http.response.status_code:long}) (?:-|%{INT:backend_response|aws.elb.backend.http.response.status_code:long}) %{INT:received_bytes|http.request.body.bytes:long} %{INT:bytes|http.response.body.bytes:long} "(?:- - -|%{WORD:verb|http.request.method} %{NOTSPACE:request|url.original} (?:-|HTTP/%{NUMBER:httpversion|http.version}))"(?: "%{DATA:agent|user_agent.original}" (?:-|%{NOTSPACE:ssl_cipher|tls.cipher}) (?:-|%{NOTSPACE:ssl_protocol|aws.elb.ssl_protocol}))?"#,
    ),
];
