//! What is said of requests for certificates, and by whom first.

#![allow(clippy::unwrap_used)]

mod support;

use apiserver::Options;
use support::Fixture;

const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";

#[tokio::test]
async fn what_is_no_request_is_invalid_before_anybody_forbids_it() {
    let f = Fixture::new(Options::default()).await;
    // A block of the right name with something else in it, in base64.
    let garbage =
        "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KQUFBQQotLS0tLUVORCBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0K";
    for (request, why) in [(garbage, "asn1: "), ("YWJj", "PEM block type must be CERTIFICATE REQUEST")] {
        for signer in ["kubernetes.io/kube-apiserver-client", "example.com/own"] {
            let body = format!(
                r#"{{"metadata":{{"name":"r"}},"spec":{{"request":"{request}","signerName":"{signer}","usages":["client auth"]}}}}"#
            );
            let (code, message) = f.message("POST", REQUESTS, &body).await;
            assert_eq!(code, 422, "{message}");
            assert!(message.contains("spec.request: Invalid value: []byte{") && message.contains(why), "{message}");
        }
    }
}
