//! What the server writes about its own work, to standard error.

use apiserver::debug::Verbosity;
use clap::ValueEnum;
use std::io::IsTerminal;
use std::sync::Arc;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::reload::Handle;

/// How log lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A line for people, coloured on a terminal
    Text,
    /// A JSON object a line
    Json,
}

/// Starts logging; gives what changes how much is logged. The error names what is wrong with the filter.
pub fn start(level: &str, format: Format) -> Result<Verbosity, String> {
    let filter = EnvFilter::try_new(level).map_err(|e| format!("--log-level {level}: {e}"))?;
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    Ok(match format {
        Format::Text => {
            let builder = builder.with_ansi(std::io::stderr().is_terminal()).with_filter_reloading();
            let handle = builder.reload_handle();
            builder.init();
            verbosity(handle, level)
        }
        Format::Json => {
            let builder = builder.json().with_filter_reloading();
            let handle = builder.reload_handle();
            builder.init();
            verbosity(handle, level)
        }
    })
}

fn verbosity<S: 'static>(handle: Handle<EnvFilter, S>, started: &str) -> Verbosity {
    let started = started.to_owned();
    Arc::new(move |text| {
        let filter = EnvFilter::try_new(filter(text.trim(), &started)?).map_err(|e| e.to_string())?;
        handle.reload(filter).map_err(|e| e.to_string())
    })
}

/// The filter for a verbosity: a number as klog has it (0 is what the server was `started` with), or a filter as
/// `--log-level` takes it.
pub fn filter(text: &str, started: &str) -> Result<String, String> {
    let is_filter = text.contains('=') || ["off", "error", "warn", "info", "debug", "trace"].contains(&text);
    match text.parse::<i32>() {
        Ok(..=0) => Ok(started.to_owned()),
        Ok(1..=2) => Ok("info".to_owned()),
        Ok(3..=5) => Ok("debug".to_owned()),
        Ok(6..) => Ok("trace".to_owned()),
        Err(_) if is_filter => Ok(text.to_owned()),
        Err(_) => Err(format!("strconv.ParseInt: parsing {text:?}: invalid syntax")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verbosities_are_klogs_numbers_or_filters() {
        for (text, wanted) in [
            ("0", Ok("warn")),
            ("2", Ok("info")),
            ("4", Ok("debug")),
            ("9", Ok("trace")),
            ("debug", Ok("debug")),
            ("info,apiserver=debug", Ok("info,apiserver=debug")),
            ("x", Err("strconv.ParseInt: parsing \"x\": invalid syntax")),
        ] {
            assert_eq!(filter(text, "warn").as_deref().map_err(String::as_str), wanted);
        }
    }
}
