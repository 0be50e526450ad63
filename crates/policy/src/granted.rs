//! Authority as a value that is held, not a check that is remembered.

use crate::Verdict;

/// An effect that the rules permit now. Its only constructor is private to this
/// crate, and it implements neither `Deserialize` nor `Clone`, so that a journal
/// can't forge one and nobody can perform an effect twice on one judgement.
///
/// ```compile_fail
/// // The field is private: nobody else can mint one.
/// let forged = outrigger_policy::Granted { effect: "rm -rf" };
/// ```
///
/// ```compile_fail
/// // And none can be read from storage.
/// fn storable<T: serde::de::DeserializeOwned>() {}
/// storable::<outrigger_policy::Granted<String>>();
/// ```
#[derive(Debug)]
#[must_use = "a granted effect is there to be performed"]
pub struct Granted<T> {
    effect: T,
}

impl<T> Granted<T> {
    pub(crate) fn mint(effect: T) -> Self {
        Self { effect }
    }

    /// The effect, to look at.
    pub fn effect(&self) -> &T {
        &self.effect
    }

    /// The effect, to perform: spends the authority.
    pub fn into_effect(self) -> T {
        self.effect
    }
}

/// The rules do not permit the effect now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// What they say instead.
    pub verdict: Verdict,
}
