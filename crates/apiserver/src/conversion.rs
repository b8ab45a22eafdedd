//! Conversion of custom resources by webhooks: the seam.

use object::Value;
use std::future::Future;
use std::pin::Pin;

/// Converts objects between the versions of a definition.
pub trait Converter: Send + Sync + 'static {
    /// Gives the object in the version `wanted` (`GROUP/VERSION`). The error is the text that the client is told.
    fn convert<'a>(
        &'a self,
        definition: &'a Value,
        object: Value,
        wanted: &'a str,
    ) -> Pin<Box<dyn Future<Output = Result<Value, String>> + Send + 'a>>;
}

/// Converts nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoConverter;

impl Converter for NoConverter {
    fn convert<'a>(
        &'a self,
        _definition: &'a Value,
        object: Value,
        _wanted: &'a str,
    ) -> Pin<Box<dyn Future<Output = Result<Value, String>> + Send + 'a>> {
        let text = |key: &str| object.str_at(&[key]).unwrap_or_default();
        let message = format!(
            "conversion webhook for {}, Kind={} failed: this server calls no webhooks",
            text("apiVersion"),
            text("kind")
        );
        Box::pin(std::future::ready(Err(message)))
    }
}
