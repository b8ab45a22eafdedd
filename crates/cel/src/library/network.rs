//! Libraries of Kubernetes on URLs, IP addresses and CIDRs.

use super::{Library, Version};
use crate::env::{FunctionDecl, OverloadDecl};
use crate::types::Type;

/// URLs.
pub(super) fn url() -> Library {
    use Type::{Bool, String};
    let url = || Type::object("kubernetes.URL");
    let part =
        |name: &str, id: &str, result: Type| FunctionDecl::new(name, [OverloadDecl::member(id, [url()], result)]);
    let functions = vec![
        FunctionDecl::new("url", [OverloadDecl::global("string_to_url", [String], url())]),
        part("getScheme", "url_get_scheme", String),
        part("getHost", "url_get_host", String),
        part("getHostname", "url_get_hostname", String),
        part("getPort", "url_get_port", String),
        part("getEscapedPath", "url_get_escaped_path", String),
        part("getQuery", "url_get_query", Type::map(String, Type::list(String))),
        FunctionDecl::new("isURL", [OverloadDecl::global("is_url_string", [String], Bool)]),
    ];
    Library::new("kubernetes.net.url", Version(1, 0), functions)
}

fn ip_type() -> Type {
    Type::opaque("net.IP", vec![])
}

fn cidr_type() -> Type {
    Type::opaque("net.CIDR", vec![])
}

/// IP addresses.
pub(super) fn ip() -> Library {
    use Type::{Bool, Int, String};
    let test = |name: &str, id: &str| FunctionDecl::new(name, [OverloadDecl::member(id, [ip_type()], Bool)]);
    let functions = vec![
        FunctionDecl::new("ip", [OverloadDecl::global("string_to_ip", [String], ip_type())]),
        FunctionDecl::new("family", [OverloadDecl::member("ip_family", [ip_type()], Int)]),
        FunctionDecl::new("ip.isCanonical", [OverloadDecl::global("ip_is_canonical", [String], Bool)]),
        test("isUnspecified", "ip_is_unspecified"),
        test("isLoopback", "ip_is_loopback"),
        test("isLinkLocalMulticast", "ip_is_link_local_multicast"),
        test("isLinkLocalUnicast", "ip_is_link_local_unicast"),
        test("isGlobalUnicast", "ip_is_global_unicast"),
        FunctionDecl::new("isIP", [OverloadDecl::global("is_ip", [String], Bool)]),
        FunctionDecl::new("string", [OverloadDecl::global("ip_to_string", [ip_type()], String)]),
    ];
    Library::new("kubernetes.net.ip", Version(1, 30), functions).with_types([ip_type()])
}

/// Networks in CIDR notation.
pub(super) fn cidr() -> Library {
    use Type::{Bool, Int, String};
    let functions = vec![
        FunctionDecl::new("cidr", [OverloadDecl::global("string_to_cidr", [String], cidr_type())]),
        FunctionDecl::new(
            "containsIP",
            [
                OverloadDecl::member("cidr_contains_ip_string", [cidr_type(), String], Bool),
                OverloadDecl::member("cidr_contains_ip_ip", [cidr_type(), ip_type()], Bool),
            ],
        ),
        FunctionDecl::new(
            "containsCIDR",
            [
                OverloadDecl::member("cidr_contains_cidr_string", [cidr_type(), String], Bool),
                OverloadDecl::member("cidr_contains_cidr", [cidr_type(), cidr_type()], Bool),
            ],
        ),
        FunctionDecl::new("ip", [OverloadDecl::member("cidr_ip", [cidr_type()], ip_type())]),
        FunctionDecl::new("prefixLength", [OverloadDecl::member("cidr_prefix_length", [cidr_type()], Int)]),
        FunctionDecl::new("masked", [OverloadDecl::member("cidr_masked", [cidr_type()], cidr_type())]),
        FunctionDecl::new("isCIDR", [OverloadDecl::global("is_cidr", [String], Bool)]),
        FunctionDecl::new("string", [OverloadDecl::global("cidr_to_string", [cidr_type()], String)]),
    ];
    Library::new("kubernetes.net.cidr", Version(1, 30), functions).with_types([cidr_type(), ip_type()])
}
