//! `tallyfold sandbox` through the binary: what it answers pages of browsers.

#![allow(clippy::unwrap_used, clippy::panic, reason = "these are tests")]

mod support;

use support::{Service, fetch};

#[test]
fn pages_of_any_origin_may_call_it() {
    let service = Service::start();
    let path = format!("{}/v1.1/analytics/event_delivery", service.url());
    let asks = "origin: https://app.example\r\naccess-control-request-method: POST\r\n\
                access-control-request-headers: authorization,content-type\r\n";
    let preflight = fetch("OPTIONS", &path, asks).unwrap();
    assert_eq!(preflight.status, 204, "{preflight:?}");
    for header in [
        "access-control-allow-origin: *",
        "access-control-allow-methods: get, post",
        "access-control-allow-headers: authorization, content-type",
        "access-control-allow-private-network: true",
    ] {
        assert!(preflight.head.contains(header), "{header} {preflight:?}");
    }
    // A page must be able to read a refusal, too.
    let refused = fetch("POST", &path, "origin: https://app.example\r\n").unwrap();
    assert_eq!(refused.status, 401, "{refused:?}");
    for header in [
        "access-control-allow-origin: *",
        "access-control-expose-headers: date, retry-after",
    ] {
        assert!(refused.head.contains(header), "{header} {refused:?}");
    }
}
