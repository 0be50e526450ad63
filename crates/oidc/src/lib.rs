//! Who somebody is, as their OpenID provider says.
//!
//! Owns the client's side of the code flow with PKCE: where a browser is sent, what is asked when
//! it comes back, what an ID token must be to be believed, and what its claims say. Ways to the
//! provider's servers are handed in, with a placeholder instead of the client's secret. Must never
//! believe what no key of the provider signed, nor decide what a person may do.
//!
//! Read first: [`IssuerClient`], `token.rs`.

#![forbid(unsafe_code)]

mod admission;
mod claims;
mod client;
mod error;
mod exchange;
mod fetch;
mod keys;
pub mod limits;
mod metadata;
mod token;

pub use admission::Admission;
pub use claims::{NameClaim, TokenClaims};
pub use client::{ClientSettings, IssuerAccess, IssuerClient, IssuerConnection, IssuerServers};
pub use error::Error;
pub use exchange::{AuthorizationRequest, CodeExchange, LoginAttempt};
