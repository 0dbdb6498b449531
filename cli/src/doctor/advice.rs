//! Contains the advice for each possible failure. If the service reference does not define a status, the advice
//! suggests what to check first, and names at most a possible cause.

use tallyfold::Code;

/// Returns the advice for an error of the core.
pub(crate) fn of_code(code: Code, status: Option<u16>) -> &'static str {
    if let Some(advice) = status.and_then(of_status) {
        return advice;
    }
    let found = BY_CODE.iter().find(|(known, _)| *known == code);
    // The default is never used: a test checks that there is advice for each code.
    found.map_or("Report this as a bug in tallyfold.", |(_, advice)| advice)
}

/// Returns the advice for a status, if there is advice that is more specific than the advice for the code.
fn of_status(status: u16) -> Option<&'static str> {
    Some(match status {
        404 => {
            "Check the address: it must be the base address, without the path of an endpoint such as /v1.1, and with a prefix \
             if your operator has named one."
        }
        405 => {
            "Check the address: the server there does not accept this method, so it may be another server."
        }
        407 => PROXY_CREDENTIALS,
        _ => return None,
    })
}

/// The advice for a proxy that requires a name and a password.
pub(crate) const PROXY_CREDENTIALS: &str = "Put the name and password that the proxy requires into its address: http://NAME:PASSWORD@proxy.example:3128.";

/// Returns the advice for a network failure, by its name in the core.
pub(crate) fn of_trouble(name: &str) -> &'static str {
    let name = if name.starts_with("PROXY_") { "ProxyError" } else { name };
    let found = BY_TROUBLE.iter().find(|(known, _)| *known == name);
    found.map_or(BROKEN, |(_, advice)| advice)
}

const BROKEN: &str = "Try again in a minute; if the failure persists, check what is between here and the server: a firewall, a proxy, a load balancer.";

const DIFFERENT_BODY: &str = "The response is not what the service's reference describes: check that the address is your deployment's, \
     and that no proxy changes responses; then show the operator this message.";

const OTHER_VERSION: &str = "The API is in Beta and its responses may have changed: look for a newer version of tallyfold, then show this message to \
     the operator of the service.";

const LARGE: &str = "Request less at once: a shorter range, or fewer dimensions (--by).";

const LIMIT: &str = "The response is larger than tallyfold's limits allow: use shorter windows (--window) or fewer dimensions (--by).";

const NOT_HERE: &str =
    "Report this as a bug in tallyfold: no check of this command should cause this error.";

const SETTING: &str = "Correct the setting that the message names; `tallyfold init` writes a configuration that explains each setting.";

#[rustfmt::skip]
const BY_CODE: &[(Code, &str)] = &[
    (Code::MissingArgument, "Set it as a flag, as an environment variable or in the configuration; `tallyfold init` writes one with comments."),
    (Code::UnknownArgument, SETTING),
    (Code::InvalidArgument, SETTING),
    (Code::InvalidRules, NOT_HERE),
    (Code::InvalidBaseAddress, "Write the address as https://host.example, followed only by a path prefix if your operator has named one."),
    (Code::InsecureBaseAddress, "Use https. Set --dangerously-allow-http only if nobody else uses the network between this machine and the server."),
    (Code::SecretInBrowser, NOT_HERE),
    (Code::InvalidTimestamp, NOT_HERE),
    (Code::InvalidWindow, NOT_HERE),
    (Code::UnknownDimension, NOT_HERE),
    (Code::RepeatedDimension, NOT_HERE),
    (Code::NoDimensions, NOT_HERE),
    (Code::InvalidPage, NOT_HERE),
    (Code::OverlappingCoverage, NOT_HERE),
    (Code::UnalignedWindow, NOT_HERE),
    (Code::IncompatibleTables, NOT_HERE),
    (Code::InvalidCheckpoint, NOT_HERE),
    (Code::MemoryLimit, LARGE),
    (Code::UnsupportedByFormat, NOT_HERE),
    (Code::OutOfOrder, NOT_HERE),
    (Code::TokenRefused, "Check the client id, the client secret and the audience with the operator of the service; the service does not report which of them it refused."),
    (Code::InvalidTokenResponse, "Check the address: the response is not what the service's reference describes for a token endpoint."),
    (Code::InvalidTokenLifetime, "Show the operator this message: the lifetime of the token can't be read."),
    (Code::TokenRejected, "Check the audience of this API: a token of one API is not valid for the other. Then check that the client id may use this API."),
    (Code::TokenProviderFailed, NOT_HERE),
    (Code::Redirected, "Set the address to where the redirect leads, if that is your deployment; if it leads to a login page, a proxy or gateway requires you to log in first."),
    (Code::Forbidden, "Ask the operator whether this client id has access: the Event Metrics API is in Beta and access is arranged with them. A gateway or firewall in between may also have answered."),
    (Code::RateLimited, "Wait, and send fewer requests: lower --concurrency, or use fewer jobs at the same time."),
    (Code::RetryLater, "Wait for as long as the message states, or allow longer waits with --longest-retry-wait."),
    (Code::ServerError, "Wait and try again: the service, or a gateway in front of it, has failed. If the failure persists, ask the operator."),
    (Code::UnexpectedStatus, "Check the address, and show the operator this message: the reference does not show what this status means."),
    (Code::NetworkFailed, BROKEN),
    (Code::TimedOut, "Check whether a firewall drops packets in between; if the service is only slow, allow more time with --timeout 60s."),
    (Code::DeadlineExceeded, "Allow more time with --timeout 60s."),
    (Code::WrongContentType, DIFFERENT_BODY),
    (Code::WrongContentEncoding, "Check the proxy or gateway in between: it compresses in a way that was not requested."),
    (Code::HtmlResponse, "Open the address in a browser: the response is a web page, perhaps the login page of a proxy or gateway. Log in, or ask for an exemption from the login for this machine."),
    (Code::EmptyBody, DIFFERENT_BODY),
    (Code::TruncatedBody, BROKEN),
    (Code::InvalidJson, DIFFERENT_BODY),
    (Code::InvalidUtf8, DIFFERENT_BODY),
    (Code::LoneSurrogate, DIFFERENT_BODY),
    (Code::ByteOrderMark, DIFFERENT_BODY),
    (Code::TrailingBytes, DIFFERENT_BODY),
    (Code::DuplicateKey, DIFFERENT_BODY),
    (Code::MissingField, OTHER_VERSION),
    (Code::WrongType, OTHER_VERSION),
    (Code::InvalidCount, OTHER_VERSION),
    (Code::CountOverflow, OTHER_VERSION),
    (Code::InexactCount, NOT_HERE),
    (Code::SumOverflow, OTHER_VERSION),
    (Code::WindowMismatch, OTHER_VERSION),
    (Code::DimensionMismatch, OTHER_VERSION),
    (Code::RepeatedCombination, OTHER_VERSION),
    (Code::DepthLimit, DIFFERENT_BODY),
    (Code::StringLimit, LIMIT),
    (Code::KeyLimit, LIMIT),
    (Code::BodyLimit, LIMIT),
    (Code::GroupLimit, LIMIT),
    (Code::OutOfMemory, LARGE),
    (Code::WasmForbidden, NOT_HERE),
    (Code::Crashed, NOT_HERE),
    (Code::InvalidTable, NOT_HERE),
    (Code::WindowsNotAdditive, "Do not sum the counts of adjacent windows until the operator has explained the difference: such sums would be wrong."),
];

#[rustfmt::skip]
const BY_TROUBLE: &[(&str, &str)] = &[
    ("ENOTFOUND", "Check the spelling of the hostname, the network of this machine, and whether its name server knows the host (`getent hosts NAME`)."),
    ("ECONNREFUSED", "Check the port; if it is right, the server is down or a firewall refuses the connection: ask the operator of the server."),
    ("ECONNRESET", "Check what is between here and the server: a firewall, a proxy or a load balancer ends the connection."),
    ("EHOSTUNREACH", "Check the network of this machine, its VPN and its routes: there is no route to the server."),
    ("ENETUNREACH", "Check the network of this machine, its VPN and its routes: there is no route to the server."),
    ("EACCES", "Check the firewall of this machine, and what its sandbox permits (systemd, SELinux, a container's policy): the operating system refuses the connection."),
    ("ProxyError", "Check the address of the proxy and what it allows; the variable NO_PROXY exempts hosts from it."),
    ("SSLError", "Check that the server speaks https at this port; otherwise the address needs http:// or another port."),
    ("RemoteProtocolError", "If requests before this one were answered, something ends the connection: the server, a proxy or a load balancer; try again. Otherwise check the port: what answers there does not speak HTTP."),
    ("DecodingError", "Check the proxy or gateway in between: the compressed response is damaged."),
    ("CERT_HAS_EXPIRED", "Ask the operator of the server to renew its certificate; check the clock of this machine too."),
    ("CERT_NOT_YET_VALID", "Check the clock of this machine: by this clock, the certificate is not valid yet."),
    ("ERR_TLS_CERT_ALTNAME_INVALID", "Use a hostname that the certificate contains, or ask the operator of the server for a certificate that contains the hostname you use."),
    ("UNABLE_TO_GET_ISSUER_CERT_LOCALLY", "If your company has its own certificate authority, or a proxy that intercepts TLS, set its certificate file with --ca-file (or ca_file in the configuration). If neither is the case, the server does not send its intermediate certificate: ask its operator."),
    ("CERT_REVOKED", "Do not continue: the certificate was revoked. Ask the operator of the server for a new one."),
    ("CERT_UNTRUSTED", "If your company has its own certificate authority, set its certificate file with --ca-file; otherwise ask the operator of the server for a certificate that can be verified."),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_code_has_one_line_of_advice() {
        for code in Code::ALL {
            let lines = BY_CODE.iter().filter(|(known, _)| known == code).count();
            assert_eq!(lines, 1, "{code}");
        }
        assert_eq!(BY_CODE.len(), Code::ALL.len());
    }

    /// Reads the names from the source code, so that the test notices a new name without advice.
    #[test]
    fn every_network_failure_has_one_line_of_advice() {
        let source = include_str!("../host/network.rs");
        let given: BTreeSet<&str> = source
            .split('"')
            .skip(1)
            .step_by(2)
            .filter(|text| {
                text.ends_with("Error") || text.contains("CERT_") || text.starts_with('E')
            })
            .collect();
        assert!(given.len() >= 15, "{given:?}");
        let advised: BTreeSet<&str> = BY_TROUBLE.iter().map(|(name, _)| *name).collect();
        assert_eq!(given, advised);
        for (name, _) in source
            .match_indices("\"PROXY_")
            .map(|(at, _)| source[at + 1..].split_once('"').unwrap())
        {
            assert_eq!(of_trouble(name), of_trouble("ProxyError"), "{name}");
        }
        assert_eq!(advised.len(), BY_TROUBLE.len());
    }

    #[test]
    fn advice_is_one_line_of_whole_sentences() {
        let by_code = BY_CODE.iter().map(|(_, advice)| *advice);
        let by_trouble = BY_TROUBLE.iter().map(|(_, advice)| *advice);
        let by_status = [404, 405, 407].map(|status| of_code(Code::UnexpectedStatus, Some(status)));
        for advice in by_code.chain(by_trouble).chain(by_status) {
            assert!(advice.ends_with('.') && !advice.contains('\n'), "{advice}");
            assert!(advice.starts_with(|first: char| first.is_ascii_uppercase()), "{advice}");
            assert!(!advice.contains("  "), "{advice}");
        }
    }

    #[test]
    fn advice_for_a_status_is_more_specific() {
        assert!(of_code(Code::UnexpectedStatus, Some(404)).contains("base address"));
        assert_eq!(
            of_code(Code::UnexpectedStatus, Some(418)),
            of_code(Code::UnexpectedStatus, None)
        );
        assert_eq!(of_code(Code::TokenRejected, Some(401)), of_code(Code::TokenRejected, None));
    }
}
