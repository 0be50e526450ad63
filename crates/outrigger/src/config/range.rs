//! Numbers of a configuration that are checked while they are read, so that an
//! error can name the line.

use serde::de::{Deserialize, Deserializer, Error, Unexpected, Visitor};
use std::fmt;

/// A whole number from `MIN` to `MAX`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(extend("minimum" = MIN, "maximum" = MAX)))]
pub(crate) struct Whole<const MIN: u64, const MAX: u64>(u64);

impl<const MIN: u64, const MAX: u64> Whole<MIN, MAX> {
    pub(crate) fn get(self) -> u64 {
        self.0
    }
}

impl<'de, const MIN: u64, const MAX: u64> Deserialize<'de> for Whole<MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Numbers<const MIN: u64, const MAX: u64>;
        impl<const MIN: u64, const MAX: u64> Visitor<'_> for Numbers<MIN, MAX> {
            type Value = u64;
            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(formatter, "a whole number from {MIN} to {MAX}")
            }
            fn visit_u64<E: Error>(self, number: u64) -> Result<u64, E> {
                let wrong = || E::invalid_value(Unexpected::Unsigned(number), &self);
                Some(number).filter(|number| (MIN..=MAX).contains(number)).ok_or_else(wrong)
            }
            fn visit_i64<E: Error>(self, number: i64) -> Result<u64, E> {
                match u64::try_from(number) {
                    Ok(number) => self.visit_u64(number),
                    Err(_) => Err(E::invalid_value(Unexpected::Signed(number), &self)),
                }
            }
        }
        deserializer.deserialize_u64(Numbers::<MIN, MAX>).map(Self)
    }
}

/// Cores, kept in thousandths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(try_from = "f64"))]
#[cfg_attr(test, schemars(extend("minimum" = 0.01, "maximum" = 1_024)))]
pub(crate) struct Cores(u32);

impl Cores {
    pub(crate) fn millis(self) -> u32 {
        self.0
    }
}

impl<'de> Deserialize<'de> for Cores {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Numbers;
        impl Visitor<'_> for Numbers {
            type Value = f64;
            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a number from 0.01 to 1024")
            }
            fn visit_f64<E: Error>(self, cores: f64) -> Result<f64, E> {
                let wrong = || E::invalid_value(Unexpected::Float(cores), &self);
                Some(cores).filter(|cores| (0.01..=1_024.0).contains(cores)).ok_or_else(wrong)
            }
            fn visit_i64<E: Error>(self, cores: i64) -> Result<f64, E> {
                match u16::try_from(cores) {
                    Ok(cores) => self.visit_f64(f64::from(cores)),
                    Err(_) => Err(E::invalid_value(Unexpected::Signed(cores), &self)),
                }
            }
        }
        let cores = deserializer.deserialize_f64(Numbers)?;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "checked: 10 to 1,024,000"
        )]
        let millis = (cores * 1_000.0).round() as u32;
        Ok(Self(millis))
    }
}
