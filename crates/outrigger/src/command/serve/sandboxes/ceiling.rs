//! What a sandbox may take: what is asked for, under what the configuration says.

use outrigger_api::limits::SANDBOX_IDLE_SECONDS_DEFAULT;
use outrigger_api::{CreateSandbox, ProblemCode};
use outrigger_sandbox::{CreateSpec, DiskOrigin, Lifetime, limits::LIFETIME_MS_MAX};
use outrigger_server::RequestError;
use std::fmt::Display;

/// An amount, if it is between the least that makes sense and the most that is allowed.
fn within<T: PartialOrd + Display + Copy>(
    name: &str,
    asked: Option<T>,
    (least, most): (T, T),
) -> Result<T, RequestError> {
    match asked {
        None => Ok(most),
        Some(asked) if asked >= least && asked <= most => Ok(asked),
        Some(asked) => {
            let text = format!("`{name}` of {asked}: {least} to {most} is allowed here");
            Err(RequestError::new(ProblemCode::InvalidRequest, text))
        }
    }
}

/// What a sandbox is made from.
pub(super) fn spec(
    ceiling: &CreateSpec,
    asked: &CreateSandbox,
    origin: DiskOrigin,
) -> Result<CreateSpec, RequestError> {
    let limits = asked.limits;
    let (memory, disk) = (ceiling.memory_bytes_max >> 20, ceiling.disk_bytes_max >> 20);
    let memory = within("limits.memory_mib", limits.memory_mib, (16, memory))?;
    let disk = within("limits.disk_mib", limits.disk_mib, (1, disk))?;
    let cpu = within("limits.cpu_millis", limits.cpu_millis, (10, ceiling.cpu_millis_max))?;
    let pids = within("limits.pids", limits.pids, (8, ceiling.pids_max))?;
    let Lifetime { idle_ms_max, age_ms_max } = ceiling.lifetime;
    let seconds = |ms: Option<u64>| ms.unwrap_or(LIFETIME_MS_MAX) / 1_000;
    let idle_usual = seconds(idle_ms_max).min(SANDBOX_IDLE_SECONDS_DEFAULT);
    let idle = asked.idle_seconds.or(Some(idle_usual));
    let idle = within("idle_seconds", idle, (1, seconds(idle_ms_max)))?;
    let age = match (asked.age_seconds, age_ms_max) {
        (None, none_or_all) => none_or_all,
        (asked, most) => Some(within("age_seconds", asked, (1, seconds(most)))? * 1_000),
    };
    Ok(CreateSpec {
        origin,
        memory_bytes_max: memory << 20,
        disk_bytes_max: disk << 20,
        cpu_millis_max: cpu,
        pids_max: pids,
        lifetime: Lifetime { idle_ms_max: Some(idle * 1_000), age_ms_max: age },
        ..ceiling.clone()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_above_the_ceiling_is_told_with_what_is_allowed() {
        let ceiling = CreateSpec::default();
        let asked = |json: &str| {
            let asked: CreateSandbox = serde_json::from_str(json).unwrap();
            spec(&ceiling, &asked, DiskOrigin::default()).map_err(|error| error.detail)
        };
        let usual = asked("{}").unwrap();
        let lifetime = Lifetime { idle_ms_max: Some(900_000), age_ms_max: None };
        assert_eq!(usual, CreateSpec { lifetime, ..ceiling.clone() });
        let small = asked(r#"{"limits":{"memory_mib":64,"pids":8},"age_seconds":60}"#).unwrap();
        assert_eq!((small.memory_bytes_max, small.pids_max), (64 << 20, 8));
        assert_eq!(small.lifetime.age_ms_max, Some(60_000));
        for (json, wanted) in [
            (r#"{"limits":{"memory_mib":4096}}"#, "`limits.memory_mib` of 4096: 16 to 2048 is"),
            (r#"{"limits":{"cpu_millis":9}}"#, "`limits.cpu_millis` of 9: 10 to 2000 is"),
            (r#"{"idle_seconds":0}"#, "`idle_seconds` of 0: 1 to 315360000 is"),
        ] {
            let text = asked(json).unwrap_err();
            assert!(text.starts_with(wanted), "{text}");
        }
    }
}
