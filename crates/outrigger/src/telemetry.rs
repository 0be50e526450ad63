//! Keys of the collector of traces.

use outrigger_gate::SecretPlace;

use crate::config::Config;
use crate::network::caller;

/// The variables in which keys of the collector are, each with the place that its key is sent to.
pub(crate) fn keyed(config: &Config) -> Vec<(String, SecretPlace)> {
    // What is wrong with it is told where it is used.
    let Ok(Some(collector)) = config.telemetry.collector() else { return Vec::new() };
    let names: Vec<_> =
        collector.headers_env.keys().map(|name| name.to_ascii_lowercase()).collect();
    let place =
        SecretPlace { headers: names, ..SecretPlace::new(caller::grant(&collector.server)) };
    collector.headers_env.into_values().map(|variable| (variable, place.clone())).collect()
}
