//! A case of the suite, and the table that each file of cases has.

use outrigger_sandbox::CreateSpec;
use std::pin::Pin;

use super::context::{Context, Outcome};
use super::need::Need;

type Run = fn(Context) -> Pin<Box<dyn Future<Output = Outcome> + Send>>;

/// A named case.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Case {
    pub(super) name: &'static str,
    pub(super) needs: &'static [Need],
    /// What its sandbox is made from, given what others are made from.
    pub(super) spec: fn(CreateSpec) -> CreateSpec,
    pub(super) run: Run,
}

/// A table of cases: which function each is, what it needs in brackets, and which
/// function adjusts its specification.
macro_rules! cases {
    ($group:literal: $($case:ident $([$($need:ident),+])? $(with $spec:ident)?,)*) => {
        pub(crate) const CASES: &[$crate::conformance::case::Case] = &[$(
            $crate::conformance::case::Case {
                name: concat!($group, "/", stringify!($case)),
                needs: &[$($($crate::conformance::need::Need::$need),+)?],
                spec: $crate::conformance::case::cases!(@spec $($spec)?),
                run: |context| Box::pin($case(context)),
            },
        )*];
    };
    (@spec) => { |spec| spec };
    (@spec $spec:ident) => { $spec };
}
pub(super) use cases;
