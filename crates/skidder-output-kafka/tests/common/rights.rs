//! Rights of users, given as the broker's administrator, who is everybody without a name.
#![expect(unsafe_code, reason = "the safe binding knows topics and no rights")]

use rdkafka::ClientConfig;
use rdkafka::admin::AdminClient;
use rdkafka::client::DefaultClientContext;
use rdkafka_sys::bindings as sys;
use std::ffi::CString;
use std::ptr;

pub(crate) use sys::rd_kafka_AclOperation_t as Operation;
pub(crate) use sys::rd_kafka_ResourceType_t as Resource;

/// Lets `user` do something with a resource. From the first right on, those who have none may do nothing with it.
pub(crate) fn allow(brokers: &str, user: &str, resource: (Resource, &str), operation: Operation) {
    let admin: AdminClient<DefaultClientContext> =
        ClientConfig::new().set("bootstrap.servers", brokers).create().expect("a client");
    let client = admin.inner().native_ptr();
    let name = CString::new(resource.1).expect("no zero");
    let principal = CString::new(format!("User:{user}")).expect("no zero");
    // SAFETY: the client lives until the end; texts end with zero and are copied; what is made is destroyed once.
    unsafe {
        let mut right = sys::rd_kafka_AclBinding_new(
            resource.0,
            name.as_ptr(),
            sys::rd_kafka_ResourcePatternType_t::RD_KAFKA_RESOURCE_PATTERN_LITERAL,
            principal.as_ptr(),
            c"*".as_ptr(),
            operation,
            sys::rd_kafka_AclPermissionType_t::RD_KAFKA_ACL_PERMISSION_TYPE_ALLOW,
            ptr::null_mut(),
            0,
        );
        assert!(!right.is_null(), "a right");
        let queue = sys::rd_kafka_queue_new(client);
        sys::rd_kafka_CreateAcls(client, &raw mut right, 1, ptr::null(), queue);
        let answer = sys::rd_kafka_queue_poll(queue, 30_000);
        assert!(!answer.is_null(), "an answer");
        let code = sys::rd_kafka_event_error(answer);
        assert_eq!(code, sys::rd_kafka_resp_err_t::RD_KAFKA_RESP_ERR_NO_ERROR);
        let result = sys::rd_kafka_event_CreateAcls_result(answer);
        let mut count = 0;
        let results = sys::rd_kafka_CreateAcls_result_acls(result, &raw mut count);
        assert_eq!(count, 1);
        let error = sys::rd_kafka_acl_result_error(*results);
        assert!(error.is_null(), "the right is refused");
        sys::rd_kafka_event_destroy(answer);
        sys::rd_kafka_queue_destroy(queue);
        sys::rd_kafka_AclBinding_destroy(right);
    }
}
