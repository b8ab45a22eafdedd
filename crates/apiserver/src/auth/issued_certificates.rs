//! Whether what a signer puts into the status of a request for a certificate is a chain of certificates in PEM form, with
//! the words of upstream's check.

use kinds::pem;
use x509_parser::prelude::{FromDer, X509Certificate};

/// What the block of a certificate is called.
const LABEL: &str = "CERTIFICATE";

/// Checks that a text in PEM form has certificates and nothing else; no text at all is in order.
pub(crate) fn check_certificates(text: &[u8]) -> Result<(), String> {
    if text.is_empty() {
        return Ok(());
    }
    let mut blocks = 0;
    for block in pem::blocks(&String::from_utf8_lossy(text)) {
        if block.label != LABEL {
            let found = object::go::quote(block.label);
            return Err(format!("only CERTIFICATE PEM blocks are allowed, found {found}"));
        }
        if block.has_headers {
            return Err("no PEM block headers are permitted".to_owned());
        }
        blocks += 1;
        let mut rest = block.content.as_slice();
        if rest.is_empty() {
            return Err("found CERTIFICATE PEM block containing 0 certificates".to_owned());
        }
        while !rest.is_empty() {
            (rest, _) = X509Certificate::from_der(rest).map_err(|_| "x509: malformed certificate".to_owned())?;
        }
    }
    if blocks == 0 {
        return Err("must contain at least one CERTIFICATE PEM block".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;

    const GOOD: &str = "-----BEGIN CERTIFICATE-----
MIIBLjCB4aADAgECAhQaXnH2m0uY/omMTx0t+188yn/L/DAFBgMrZXAwDDEKMAgG
A1UEAwwBYTAgFw0yNjEyMDEwNDI5MzRaGA8yMTI2MTEwNzA0MjkzNFowDDEKMAgG
A1UEAwwBYTAqMAUGAytlcAMhAIPeyVnKJxCp7cgXt+i9FlIWkMt1NYeerX/NbInx
wddro1MwUTAdBgNVHQ4EFgQUahKXJwA1ma3TgSKTCVAgSZfLtbkwHwYDVR0jBBgw
FoAUahKXJwA1ma3TgSKTCVAgSZfLtbkwDwYDVR0TAQH/BAUwAwEB/zAFBgMrZXAD
QQB5ssJGTzSzd62d8IERGjuSlLxfnU3U9Dp7NSkVia0RAgPFQwDYTms8TrHQd9UB
jOVBcwydAvP/mCml3awQyu4N
-----END CERTIFICATE-----
";

    #[test]
    fn a_status_takes_certificates_only() {
        let good = GOOD.to_owned();
        let der = pem::blocks(GOOD).next().unwrap().content;
        let twice = STANDARD.encode(der.repeat(2));
        let block = |label: &str, content: &str| format!("-----BEGIN {label}-----\n{content}\n-----END {label}-----\n");
        let none = "must contain at least one CERTIFICATE PEM block";
        for (text, answer) in [
            (String::new(), ""),
            (good.clone(), ""),
            (format!("words\n{good}\nmore\n{good}words"), ""),
            (block("CERTIFICATE", &twice), ""),
            ("words".to_owned(), none),
            (block("CERTIFICATE", "!"), none),
            ("-----BEGIN CERTIFICATE-----\nAAAA\n-----END X-----\n".to_owned(), none),
            ("-----BEGIN CERTIFICATE-----\nAAAA\n".to_owned(), none),
            (block("X", "AAAA"), "only CERTIFICATE PEM blocks are allowed, found \"X\""),
            (format!("{good}{}", block("X", "AAAA")), "only CERTIFICATE PEM blocks are allowed, found \"X\""),
            (block("CERTIFICATE", "Key: value\n\nAAAA"), "no PEM block headers are permitted"),
            (block("CERTIFICATE", ""), "found CERTIFICATE PEM block containing 0 certificates"),
            (block("CERTIFICATE", "AAAA"), "x509: malformed certificate"),
        ] {
            assert_eq!(check_certificates(text.as_bytes()).err().unwrap_or_default(), answer, "{text}");
        }
    }
}
